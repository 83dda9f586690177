"""What planner and executor are told, and how the planner's answer is read while it is still being written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolloop.messages import ModelMessage, Turn, UserMessage
from toolloop.output import Output
from toolloop.partial_output import finished
from toolloop.plan_guard import objects_in
from toolloop.providers._exchanges import Exchange, exchanges
from toolloop.providers.base import ModelRequest, ToolSpec

ACCOUNT = "planner-executor"
"""Account of the turns made here: no adapter may take their ``native`` for its own."""

_PLANNER = """\
You can use tools, but you do not call them yourself: you write a plan, and somebody else carries it out and gives you the
results. Plan only the next step.
- To use tools, list them under "calls", each with its "task": what it shall do, in plain words, with every name, number and
  text it needs. Whoever fills in the parameters sees nothing but your task and the user's last message.
- To answer the user, leave "calls" empty and write the whole answer under "answer".
- Use only these tools. Results of earlier calls are in the conversation: do not ask for them again.

Tools:
{tools}

Example of using a tool: {{"calls": [{{"tool": "{example}", "task": "..."}}], "answer": ""}}
Example of answering: {{"calls": [], "answer": "..."}}"""
_ANSWER_FORM = '\n\nThe text under "answer" must itself be JSON that fits this schema: {}'
_EXECUTOR = """\
You turn a task into the parameters of one tool. Take values from the task, and from the user's message where the task leaves
one out. Never invent a value; leave out optional parameters that are not mentioned."""
_PROSE = (
    'these are words and no plan. Write the JSON object: the tools to use under "calls", or, if this was your answer to the '
    'user, the whole of it under "answer"'
)
_OPENING = re.compile(r'[^{]*\{\s*"calls"\s*:\s*\[\s*\]\s*,\s*"answer"\s*:\s*"', re.DOTALL)
_LONGEST_OPENING = 2_000
_END = re.compile(r'(?:[^"\\]|\\.)*?(")', re.DOTALL)


def plan_schema(names: Sequence[str], *, strict_names: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of a plan; without ``strict_names`` it takes unknown tools, to say so in better words."""
    tool: dict[str, Any] = {"type": "string"}
    if strict_names:
        tool["enum"] = list(names)
    step = {
        "type": "object",
        "properties": {"tool": tool, "task": {"type": "string"}},
        "required": ["tool", "task"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        # "calls" first: an answer can be streamed once it is clear that there are none.
        "properties": {"calls": {"type": "array", "items": step}, "answer": {"type": "string"}},
        "required": ["calls", "answer"] if strict_names else ["calls"],
        "additionalProperties": False,
    }


def plan_parse(text: str, form: Output) -> tuple[Any, str]:
    """Read the plan in what a planner wrote.

    Behind a plan with calls may be others, written before there were results: they are left out. Behind an answer there
    may be none but the same again, as nobody can tell which one is meant.

    Returns:
        The plan and "", or None and what is wrong, in words a planner can repair.
    """
    if "{" not in text:
        return None, _PROSE
    plans = [found for found in objects_in(text) if is_plan(found)]
    if not plans:
        return form.parse(text)
    first = plans[0]
    if not first["calls"] and any(other != first for other in plans[1:]):
        return None, "there is more than one plan in it: write exactly one JSON object"
    plan, problem = form.parse(json.dumps(first))
    if not problem and not first["calls"] and makes_calls(str(first.get("answer", ""))):
        return None, 'there is a plan within "answer": list the tools to use under "calls"'
    return plan, problem


def is_plan(value: Mapping[str, Any]) -> bool:
    """Tell whether an object has the form of a plan."""
    steps = value.get("calls")
    if not isinstance(steps, list) or not set(value) <= {"calls", "answer"}:
        return False
    return all(isinstance(step, dict) and "tool" in step for step in steps)


def answer_in_plan(value: Mapping[str, Any]) -> str | None:
    """Return the answer in a plan, "" for one that makes calls or has none; None for what is no plan."""
    if not is_plan(value) or not (value["calls"] or "answer" in value):
        return None
    answer = value.get("answer")
    return "" if value["calls"] or not isinstance(answer, str) else answer


def makes_calls(text: str) -> bool:
    """Tell whether a text holds a plan that makes calls."""
    return any(is_plan(found) and found["calls"] for found in objects_in(text))


def is_answer_alone(text: str, answer: str) -> bool:
    """Tell whether a plan that cannot be read holds an answer and nothing else: only what came behind it is broken."""
    return not any(map(is_plan, objects_in(text))) and not makes_calls(answer)


def planner_system(request: ModelRequest) -> str:
    """Return the planner's system prompt."""
    tools = "\n".join(tool_described(spec) for spec in request.tools)
    text = _PLANNER.format(tools=tools, example=request.tools[0].name)
    if request.response_schema is not None:
        text += _ANSWER_FORM.format(json.dumps(request.response_schema.schema, ensure_ascii=False))
    return f"{request.system}\n\n{text}" if request.system else text


def tool_described(spec: ToolSpec) -> str:
    """Return a tool in one line, for a model that plans with it."""
    names = ", ".join(spec.parameters.get("properties", {})) or "nothing"
    return f"- {spec.name}: {' '.join(spec.description.split())} Needs to know: {names}."


def executor_system() -> str:
    """Return the executor's system prompt."""
    return _EXECUTOR


def executor_task(spec: ToolSpec, task: str, messages: Sequence[ModelMessage]) -> str:
    """Return what the executor is asked for one call."""
    said = next((m.text for m in reversed(messages) if isinstance(m, UserMessage) and not m.notice), "")
    schema = json.dumps(spec.parameters, ensure_ascii=False)
    return (
        f"Tool: {spec.name}\nWhat it does: {spec.description}\nSchema of its parameters: {schema}\n\n"
        f"The user's last message: {said}\n\nTask: {task}"
    )


def plain_history(messages: Sequence[ModelMessage], *, as_plans: bool) -> list[ModelMessage]:
    """Write a history without calls and results, for a model that knows neither.

    Args:
        as_plans: show earlier turns in the form the planner must keep to; otherwise as plain text.
    """
    plain: list[ModelMessage] = []
    for part in exchanges(messages):
        if isinstance(part, UserMessage):
            plain.append(part)
            continue
        text = _as_plan(part) if as_plans else _as_words(part)
        if text:
            plain.append(Turn(part.turn.provider, part.turn.model, text=text))
        if part.results:
            results = "\n\n".join(
                f"[{'Error' if result.is_error else 'Result'} of {result.name}]\n{result.content}"
                for result in part.results
            )
            files = tuple(file for result in part.results for file in result.parts)
            plain.append(UserMessage(results, notice=True, parts=files))
    return plain


def _as_plan(part: Exchange) -> str:
    turn = part.turn
    if turn.stop == "refusal":
        return ""
    if turn.native and turn.account == ACCOUNT and part.whole:
        return str(turn.native[0].get("text", ""))
    steps = [{"tool": call.name, "task": f"with {call.raw or '{}'}"} for call in part.calls]
    if not steps and not turn.text:
        return ""
    return json.dumps({"calls": steps, "answer": turn.text}, ensure_ascii=False)


def _as_words(part: Exchange) -> str:
    turn = part.turn
    if turn.stop == "refusal":
        return ""
    used = "".join(f"\n[Used {call.name} with {call.raw or '{}'}]" for call in part.calls)
    return f"{turn.text}{used}".strip()


class AnswerReader:
    """Reads the answer out of a plan while it is being written, once the plan has said that it makes no calls.

    Attributes:
        text: the answer so far.
        emitted: characters that ``feed`` has given out.
        is_whole: the answer was written to its end.
    """

    def __init__(self) -> None:
        self.text = ""
        self.emitted = 0
        self.is_whole = False
        self._opening = ""
        self._held = ""
        self._state: Literal["opening", "answer", "over"] = "opening"

    def feed(self, delta: str) -> str:
        """Take a piece of the plan; return the piece of the answer in it."""
        if self._state == "over":
            return ""
        if self._state == "opening":
            self._opening += delta
            match = _OPENING.match(self._opening)
            if match is None:
                if len(self._opening) > _LONGEST_OPENING:
                    self._state = "over"
                return ""
            delta, self._state = self._opening[match.end() :], "answer"
        raw = self._held + delta
        end = _END.match(raw)
        if end is not None:
            raw, self._held, self._state = raw[: end.start(1)], "", "over"
            self.is_whole = True
        else:
            at = finished(raw)
            raw, self._held = raw[:at], raw[at:]
        try:
            piece = str(json.loads(f'"{raw}"', strict=False))
        except ValueError:
            self._state = "over"  # Not JSON after all; the whole text is judged when it is there.
            return ""
        self.text += piece
        self.emitted = len(self.text)
        return piece

"""A plan: its form, the tool that takes it, what is said to the model about it, and one made without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolloop.json_reading import extract_json
from toolloop.messages import ToolCall
from toolloop.planner_prompts import tool_described
from toolloop.providers.base import ToolSpec
from toolloop.tools.context import ToolOutput
from toolloop.tools.tool import Tool
from toolloop.tools.validation import problems_find

PLAN_TOOL = "plan"
PLAN_KEYS = ("schema_version", "reasoning", "steps")
SCHEMA_VERSION = "1.0"
_DESCRIPTION = (
    "Write down how you will answer the question: the steps, each one an action with one of your other tools. An empty list "
    "of steps means that you can answer with what is known already."
)
_ASK = """\
[Make a plan before anything else: call `{plan}`. Each step is one action with one of the tools below; several calls of that
tool for one purpose are one step. Plan at most {most} steps, no more than the question needs, and none for the answer itself,
which you write at the end. Put into `inputs` what is known now, and leave out what an earlier step must find. Use the
conversation so far: do not look up again what it holds. Where no tool is needed, give no steps.{again}

Tools:
{tools}]"""
_REFUSED = "\nYour last plan could not be used: {why}"
_AGAIN = "\nA step of your plan failed: {why}\nPlan what is left to do in another way; what was found so far stays."
_ACT = """\
[Step {number} of {count} of your plan, with the tool {action}: {description}
Planned inputs: {inputs}
Carry out this step and no other: make its call, or several at once. Take what earlier steps have found into account.{replan}]"""
_REPLAN = f" When the plan does not fit any more, call `{PLAN_TOOL}` with the steps that are left instead."
_ANSWER = (
    "[The plan is carried out. Answer the user's question now, from everything that was found above. Say plainly what failed "
    "or could not be found.]"
)
_RULE = "Made by a fixed rule, without a language model: search for {what}."
_SENTENCE = re.compile(r"(?<=\?)\s+")
_RULE_STEPS = 3


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step. ``action`` names a tool; ``inputs`` are its arguments as far as they were known."""

    action: str
    description: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for an answer, and why."""

    steps: tuple[PlanStep, ...]
    reasoning: str = ""
    schema_version: str = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the arguments of a call of the plan tool."""
        steps = [
            {"action": s.action, "description": s.description, "inputs": dict(s.inputs)} for s in self.steps
        ]
        return {"schema_version": self.schema_version, "reasoning": self.reasoning, "steps": steps}


def plan_tool(max_steps: int = 8) -> Tool:
    """Return the tool by which a plan is written down; put it into the toolset of a planned run, and of no other.

    Args:
        max_steps: longer plans are refused in words.
    """

    async def write(**plan: Any) -> ToolOutput:
        written = plan_read(plan).to_json()
        count = len(written["steps"])
        said = "No steps are needed" if not count else f"{count} step{'' if count == 1 else 's'}"
        return ToolOutput(f"The plan is noted: {said.lower()}.", {"plan": written, "summary": said})

    return Tool(PLAN_TOOL, _DESCRIPTION, plan_schema(max_steps), write, context_parameter="")


def plan_schema(max_steps: int = 8) -> dict[str, Any]:
    """Return the JSON Schema of a plan."""
    step = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "minLength": 1, "description": "Name of a tool."},
            "description": {"type": "string", "description": "What this step finds out or does."},
            "inputs": {"type": "object", "description": "Arguments of the tool, as far as known."},
        },
        "required": ["action", "description"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "schema_version": {"type": "string", "enum": [SCHEMA_VERSION]},
            "reasoning": {"type": "string", "description": "Why these steps, in a sentence or two."},
            "steps": {"type": "array", "items": step, "maxItems": max_steps},
        },
        "required": ["reasoning", "steps"],
        "additionalProperties": False,
    }


def plan_read(arguments: Mapping[str, Any]) -> Plan:
    """Read a plan from the arguments of a call that was accepted."""
    steps = tuple(
        PlanStep(str(s["action"]), str(s.get("description", "")), dict(s.get("inputs") or {}))
        for s in arguments.get("steps", ())
    )
    return Plan(steps, str(arguments.get("reasoning", "")))


def plan_in(text: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the plan that a model wrote as text instead of calling the tool, None when there is none."""
    try:
        value = extract_json(text)
    except ValueError:
        return None
    return None if problems_find(value, schema) else value


def no_answer(value: Mapping[str, Any]) -> str | None:
    """Return "" for a plan, in which there never is an answer, and None for any other object."""
    steps = value.get("steps")
    if not isinstance(steps, list) or not set(value) <= set(PLAN_KEYS):
        return None
    return "" if all(isinstance(step, dict) and "action" in step for step in steps) else None


def plan_problem(arguments: Mapping[str, Any], tools: Sequence[ToolSpec]) -> str:
    """Return what is wrong with the actions of a plan that has its form, "" for nothing."""
    names = [spec.name for spec in tools if not spec.deferred]
    unknown = {step.action for step in plan_read(arguments).steps} - {spec.name for spec in tools}
    if not unknown:
        return ""
    there = f"the tools are {', '.join(names)}" if names else "there are none: plan no steps"
    return f"no tool is called {', '.join(sorted(unknown))}; {there}"


def plan_by_rule(question: str, query: str, search: ToolSpec | None) -> Plan:
    """Return a plan without a model: a search for the question, or for each of several questions in it.

    Args:
        question: as it was asked.
        query: what to search for when it is one question.
        search: the tool to search with; None plans nothing.
    """
    if search is None or not query.strip():
        return Plan((), _RULE.format(what="nothing, as there is nothing to search with"))
    parts = [part.strip() for part in _SENTENCE.split(question.strip()) if part.strip()]
    queries = parts[:_RULE_STEPS] if len(parts) > 1 else [query]
    steps = tuple(PlanStep(search.name, f"Search for “{text}”", {"query": text}) for text in queries)
    what = "the question" if len(queries) == 1 else "each of its questions"
    return Plan(steps, _RULE.format(what=what))


def ask_text(tools: Sequence[ToolSpec], most: int, *, refused: str = "", failed: str = "") -> str:
    """Return what asks the model for a plan.

    Args:
        tools: what steps can use.
        most: steps a plan may have.
        refused, failed: why the last plan was not taken, or which step of it failed.
    """
    again = _REFUSED.format(why=refused) if refused else _AGAIN.format(why=failed) if failed else ""
    listed = "\n".join(tool_described(spec) for spec in tools if not spec.deferred)
    return _ASK.format(plan=PLAN_TOOL, most=most, tools=listed or "- none", again=again)


def act_text(plan: Plan, index: int, *, replan: bool) -> str:
    """Return what asks the model for a step of its plan."""
    step = plan.steps[index]
    return _ACT.format(
        number=index + 1,
        count=len(plan.steps),
        action=step.action,
        description=step.description,
        inputs=json.dumps(dict(step.inputs), ensure_ascii=False),
        replan=_REPLAN if replan else "",
    )


def answer_text() -> str:
    """Return what asks the model for the answer once its plan is carried out."""
    return _ANSWER


def unreadable(call_id: str, text: str) -> ToolCall:
    """Return a call of the plan tool that stands for words in which there was no plan; the loop refuses it."""
    problem = "there is no plan in it: call the tool with reasoning and steps"
    return ToolCall(call_id, PLAN_TOOL, None, text[:2_000], problem)

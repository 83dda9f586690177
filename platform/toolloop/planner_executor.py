"""Tool calling for models that have none: a planner decides in words, an executor fills in the parameters.

The planner is told what tools there are and answers with a plan: tools to use, each with its task in words, or the answer.
The executor, which may be a smaller model, turns each task into arguments that fit the tool's schema. Both write JSON, in
one of three modes. What the executor cannot do goes back to the planner. Outside, this is a provider like any other: the
loop, its limits and events, approvals and the journal work over it unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from toolloop.errors import MalformedResponse, ProviderError
from toolloop.events import (
    ProviderEvent,
    ReasoningDelta,
    StepReset,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnFinished,
)
from toolloop.messages import ModelMessage, ToolCall, Turn, UserMessage
from toolloop.output import Output, output_of, request_structured
from toolloop.plan_guard import INVALID_PLAN, words_only
from toolloop.planner_prompts import (
    ACCOUNT,
    AnswerReader,
    answer_in_plan,
    executor_system,
    executor_task,
    is_answer_alone,
    plain_history,
    plan_parse,
    plan_schema,
    planner_system,
)
from toolloop.providers._common import new_call_id
from toolloop.providers.base import ModelRequest, Provider, ToolSpec
from toolloop.providers.profiles import profile_for
from toolloop.service import NAMES
from toolloop.tokens import Usage

Mode = Literal["native", "json_schema", "manual"]


@dataclass(slots=True)
class _Spent:
    """What the model calls behind one turn have used."""

    usage: Usage = field(default_factory=Usage)
    deadline: float = 0.0
    output_cap: int | None = None

    def room(self) -> int | None:
        """Return the output tokens left for the next call."""
        if self.output_cap is None:
            return None
        return max(1, self.output_cap - self.usage.output_total)


@dataclass(slots=True)
class _Planned:
    """A plan and the calls made of it; ``problems`` says why it cannot be carried out."""

    turn: Turn
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class PlannerExecutor:
    """A provider that gives tools to models without them.

    Money and tokens: the turn reports the usage of all calls behind it, priced as the planner's model.

    Args:
        planner: asked with ``ModelRequest.model``.
        executor: fills in parameters; the planner itself when None.
        executor_model: its bare model name; the planner's when "".
        mode: how both are made to write JSON. ``native``: the provider enforces the schema, where the model's profile
            says it can. ``json_schema``: the schema goes along as a response format that need not be enforced, and in
            the prompt. ``manual``: in the prompt only; fences, chatter and small mistakes are repaired.
        executor_retries: further attempts at one call's parameters.
        planner_retries: further plans after one that could not be carried out.
    """

    def __init__(
        self,
        planner: Provider,
        *,
        executor: Provider | None = None,
        executor_model: str = "",
        mode: Mode = "native",
        executor_retries: int = 2,
        planner_retries: int = 2,
    ) -> None:
        self.name = planner.name
        self._planner, self._executor = planner, executor or planner
        self._executor_model, self._mode = executor_model, mode
        self._executor_retries, self._planner_retries = executor_retries, planner_retries

    async def aclose(self) -> None:
        """Close both providers."""
        try:
            await self._planner.aclose()
        finally:
            if self._executor is not self._planner:
                await self._executor.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``.

        Raises:
            MalformedResponse: the planner wrote no usable plan in all its attempts; words without a plan are none.
        """
        now = asyncio.get_running_loop().time()
        spent = _Spent(deadline=now + request.timeout_s, output_cap=request.max_output_tokens)
        # A planner has no search of its provider's for tools: those that load them stand in.
        # Several calls make up a turn, and an answer in the background would be of one of them.
        request = replace(request, tools=[spec for spec in request.tools if not spec.deferred], resume=None)
        planning = bool(request.tools) and request.tool_choice != "none"
        events = self._planned(request, spent) if planning else self._answered(request)
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    yield event
        except ProviderError as error:
            if spent.usage.requests:
                error.usage = spent.usage  # What was paid for must be counted, turn or no turn.
            raise

    async def _answered(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask for an answer in words: no tools may be called any more."""
        plain = replace(
            request, messages=plain_history(request.messages, as_plans=False), tools=(), tool_choice="auto"
        )
        stream = cast(AsyncGenerator[ProviderEvent, None], self._planner.stream(plain))
        form = request.response_schema
        if request.tools and (form is None or "calls" not in form.schema.get("properties", {})):
            # It has planned before, and some plan on when they are asked for the answer.
            stream = words_only(self._planner, plain, keys=("calls", "answer"), answer_in=answer_in_plan)
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TurnFinished):
                    event = TurnFinished(replace(event.turn, native=None, account=ACCOUNT))
                yield event

    async def _planned(self, request: ModelRequest, spent: _Spent) -> AsyncGenerator[ProviderEvent, None]:
        messages = plain_history(request.messages, as_plans=True)
        reader = AnswerReader()
        planned = _Planned(Turn(self.name, request.model))
        for attempt in range(self._planner_retries + 1):
            reader = AnswerReader()
            ask = self._plan_request(request, messages, spent)
            stream = cast(AsyncGenerator[ProviderEvent, None], self._planner.stream(ask))
            turn: Turn | None = None
            async with aclosing(stream):
                async for event in stream:
                    if isinstance(event, TextDelta):
                        if piece := reader.feed(event.text):
                            yield TextDelta(piece)
                    elif isinstance(event, ReasoningDelta):
                        yield event
                    elif isinstance(event, TurnFinished):
                        turn = event.turn
            if turn is None:
                raise MalformedResponse("the planner's stream ended before its turn")
            spent.usage += _counted(turn.usage)
            planned = await self._carried_out(request, turn, reader, spent)
            if not planned.problems:
                break
            is_last = attempt == self._planner_retries
            if is_last and (planned.calls or planned.text.strip()):
                break  # The loop refuses its calls one by one; an answer is an answer.
            if reader.emitted:
                yield StepReset(INVALID_PLAN)
            messages = [*messages, _said(turn), _feedback(planned.problems)]
        else:
            raise MalformedResponse(
                f"The planner {request.model!r} gave no plan that can be used in "
                f"{self._planner_retries + 1} attempts. The last one: {planned.problems[0]}",
                retryable=False,  # It was asked again already, and was told what was wrong.
            )
        for event in _shown(planned, reader.emitted):
            yield event
        yield TurnFinished(
            replace(
                planned.turn,
                provider=self.name,
                model=request.model,
                text=planned.text,
                tool_calls=tuple(planned.calls),
                stop="tools" if planned.calls else planned.turn.stop,
                # The plan as it was written: the planner's later calls see their own words.
                native=[{"type": "plan", "text": planned.turn.text}] if planned.calls else None,
                usage=spent.usage,
                account=ACCOUNT,
            )
        )

    def _plan_request(
        self, request: ModelRequest, messages: Sequence[ModelMessage], spent: _Spent
    ) -> ModelRequest:
        asked = replace(
            request,
            system=planner_system(request),
            messages=messages,
            tools=(),
            tool_choice="auto",
            response_schema=None,
        )
        form = output_of(plan_schema([spec.name for spec in request.tools]), "plan")
        return self._formed(asked, form, self._planner, spent)

    def _formed(self, request: ModelRequest, form: Output, provider: Provider, spent: _Spent) -> ModelRequest:
        """Add the form to a request, in the mode chosen, and what is left of time and tokens."""
        left = spent.deadline - asyncio.get_running_loop().time()
        request = replace(request, timeout_s=max(0.1, left), max_output_tokens=spent.room())
        profile = request.profile or profile_for(provider.name, request.model)
        if self._mode == "native":
            return request_structured(request, form, profile)
        prompted = request_structured(request, form, replace(profile, structured_output="never"))
        if self._mode == "manual":
            return prompted
        hint = replace(form.wire, schema=dict(form.schema), strict=False)
        return replace(prompted, response_schema=hint)

    async def _carried_out(
        self, request: ModelRequest, turn: Turn, reader: AnswerReader, spent: _Spent
    ) -> _Planned:
        """Make calls of a plan."""
        if turn.stop != "end":
            # Cut off, refused or filtered: there is no plan to trust. What was said stays.
            return _Planned(turn, text=reader.text if turn.stop != "refusal" else turn.text)
        form = output_of(plan_schema([spec.name for spec in request.tools], strict_names=False))
        plan, problem = plan_parse(turn.text, form)
        if problem and reader.is_whole and is_answer_alone(turn.text, reader.text):
            return _Planned(turn, text=reader.text)
        if problem:
            return _Planned(turn, problems=[problem])
        planned = _Planned(turn, text=plan.get("answer") or "")
        if reader.text and planned.text != reader.text:
            problem = "it can be read in two ways: write exactly one JSON object"
            return _Planned(turn, problems=[problem])
        known = {spec.name: spec for spec in request.tools}
        if request.tool_choice == "required" and not plan["calls"]:
            planned.problems.append("at least one tool must be used")
        if not plan["calls"] and not planned.text.strip():
            planned.problems.append("the plan has neither calls nor an answer")
        unknown = [step["tool"] for step in plan["calls"] if step["tool"] not in known]
        if unknown:
            names = ", ".join(known)
            planned.problems += [f"there is no tool {name!r}; there are: {names}" for name in unknown]
        for step in plan["calls"]:
            spec = known.get(step["tool"])
            if spec is None:
                # If the planner insists, the loop refuses it as it refuses any unknown tool.
                call = ToolCall(new_call_id(), step["tool"], {}, "{}")
            elif unknown:
                continue  # The plan will be written anew: its parameters need not be paid for.
            else:
                call = await self._filled_in(request, spec, step["task"], spent)
            planned.calls.append(call)
            if call.problem:
                planned.problems.append(f"{call.name}: no parameters could be made: {call.problem}")
        return planned

    async def _filled_in(self, request: ModelRequest, spec: ToolSpec, task: str, spent: _Spent) -> ToolCall:
        """Have the executor write the arguments of one call; ``problem`` is set when it could not."""
        if not spec.parameters.get("properties") and not spec.parameters.get("additionalProperties"):
            return ToolCall(new_call_id(), spec.name, {}, "{}")
        form = output_of(spec.parameters, spec.name)
        messages: list[ModelMessage] = [UserMessage(executor_task(spec, task, request.messages))]
        problem = ""
        is_same = self._executor is self._planner and not self._executor_model
        for _ in range(self._executor_retries + 1):
            asked = ModelRequest(
                model=self._executor_model or request.model,
                system=executor_system(),
                messages=messages,
                cache_key=request.cache_key,
                user_key=request.user_key,
                options={
                    "temperature": 0.0,
                    **{name: request.options[name] for name in NAMES if name in request.options},
                },
                profile=request.profile if is_same else None,
                meter=request.meter,
            )
            turn = await self._asked(self._formed(asked, form, self._executor, spent), spent)
            arguments, problem = form.parse(turn.text)
            if turn.stop != "end":
                problem = f"the executor stopped with {turn.stop}"
            if not problem:
                raw = json.dumps(arguments, ensure_ascii=False)
                return ToolCall(new_call_id(), spec.name, arguments, raw)
            messages = [*messages, _said(turn), _feedback([problem])]
        return ToolCall(new_call_id(), spec.name, None, "", problem)

    async def _asked(self, request: ModelRequest, spent: _Spent) -> Turn:
        stream = cast(AsyncGenerator[ProviderEvent, None], self._executor.stream(request))
        turn: Turn | None = None
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TurnFinished):
                    turn = event.turn
        if turn is None:
            raise MalformedResponse("the executor's stream ended before its turn")
        spent.usage += _counted(turn.usage)
        return turn


def _counted(usage: Usage) -> Usage:
    return usage if usage.requests else replace(usage, requests=1)


def _said(turn: Turn) -> Turn:
    """Return what a model wrote as a turn that any provider takes."""
    return Turn(turn.provider, turn.model, text=turn.text or "(nothing)")


def _feedback(problems: Sequence[str]) -> UserMessage:
    text = "\n".join(f"- {problem}" for problem in problems)
    return UserMessage(f"[This cannot be used:\n{text}\nWrite it again, complete.]", notice=True)


def _shown(planned: _Planned, emitted: int) -> list[ProviderEvent]:
    """Return the deltas of what was not streamed yet."""
    events: list[Any] = []
    if planned.text[emitted:]:
        events.append(TextDelta(planned.text[emitted:]))
    for call in planned.calls:
        events.append(ToolCallStarted(call.id, call.name))
        if call.raw:
            events.append(ToolArgumentsDelta(call.id, call.raw))
    return events

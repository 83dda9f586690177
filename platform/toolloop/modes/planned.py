"""A plan, its steps one by one, then the answer from all that they found."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import cast

from toolloop.events import ProviderEvent, TextDelta, TurnFinished
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.modes.asking import (
    Standing,
    answer_request,
    by_rule,
    call_events,
    call_make,
    noted,
    profile_of,
    standing,
    thinking,
)
from toolloop.modes.plan import (
    PLAN_KEYS,
    PLAN_TOOL,
    Plan,
    act_text,
    answer_text,
    ask_text,
    no_answer,
    plan_by_rule,
    plan_in,
    plan_problem,
    plan_read,
    unreadable,
)
from toolloop.output import Output
from toolloop.plan_guard import words_only
from toolloop.providers._common import new_call_id
from toolloop.providers._exchanges import exchanges
from toolloop.providers.base import ModelRequest, Provider, ToolSpec
from toolloop.providers.extractive import SEARCH_TOOL, search_query
from toolloop.tools.validation import problems_find

_ATTEMPTS = 2  # At a plan that can be used; then one is made by rule.
_WHY_CHARS = 500


@dataclass(slots=True)
class _Progress:
    """How far a run has come.

    Attributes:
        plan: the last one that was accepted.
        plans: how many were.
        done: its steps that were carried out, well or badly.
        refused: why the last attempt at a plan was not accepted, and ``attempts`` in a row.
        failed: why the last step failed, "" when it did not.
        turns: model turns of the run that made calls.
        answered: the last turn was an answer, which the loop has sent back.
    """

    plan: Plan | None = None
    plans: int = 0
    done: int = 0
    refused: str = ""
    attempts: int = 0
    failed: str = ""
    turns: int = 0
    answered: bool = False


class PlannedProvider:
    """A provider that makes a plan and carries it out; see the package's text.

    The first request has the model call the tool ``plan``; then it is asked for one step after the other, each a turn of
    calls; a step whose calls all fail leads to a new plan of what is left, as long as there may be one. In the end it is
    asked for the answer, without tools. What it says before that is shown as reasoning.

    Args:
        inner: the model, which calls tools; closed with this one.
        max_steps: of a plan; give ``plan_tool`` the same.
        max_replans: plans after the first one.
        no_model: ``inner`` is no language model: plan and calls are made by rule, and the plan says so.
        output: form the answer must have. Give the run the same one, ``asked_by_provider``.
    """

    def __init__(
        self,
        inner: Provider,
        *,
        max_steps: int = 8,
        max_replans: int = 1,
        no_model: bool = False,
        output: Output | None = None,
    ) -> None:
        self.name = inner.name
        self._inner, self._max_steps, self._max_replans = inner, max_steps, max_replans
        self._no_model, self._output = no_model, output

    async def aclose(self) -> None:
        """Close the model."""
        await self._inner.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``."""
        stood = standing(request.messages)
        async with aclosing(self._next(request, stood)) as events:
            async for event in events:
                yield event

    def _next(self, request: ModelRequest, stood: Standing) -> AsyncGenerator[ProviderEvent, None]:
        """Decide what comes next, from the history alone."""
        spec = next((tool for tool in request.tools if tool.name == PLAN_TOOL), None)
        if request.tool_choice == "none" or spec is None:
            return self._answer(request, note=False)
        at = _progress(stood.own)
        if at.answered:
            return self._answer(request, note=False)
        if at.plan is None and at.turns and not at.attempts:
            return self._answer(request)  # The plan was left out of a history that grew too long.
        may_replan = at.plans <= self._max_replans
        if at.plan is None or at.refused or (at.failed and may_replan):
            if at.attempts < _ATTEMPTS and not self._no_model:
                return self._plan(request, spec, at)
            if at.plan is None:
                return self._plan_by_rule(request, stood)
        if at.done >= len(at.plan.steps):
            return self._answer(request)
        return self._act(request, at.plan, at.done, replan=may_replan)

    def _answer(self, request: ModelRequest, *, note: bool = True) -> AsyncGenerator[ProviderEvent, None]:
        if note:
            request = noted(request, answer_text())
        asked = answer_request(request, self._output, profile_of(request, self._inner))
        if self._output is not None and "steps" in self._output.schema.get("properties", {}):
            return cast(AsyncGenerator[ProviderEvent, None], self._inner.stream(asked))
        return words_only(self._inner, asked, keys=PLAN_KEYS, answer_in=no_answer)

    async def _plan(
        self, request: ModelRequest, spec: ToolSpec, at: _Progress
    ) -> AsyncGenerator[ProviderEvent, None]:
        others = [tool for tool in request.tools if tool is not spec]
        text = ask_text(others, self._max_steps, refused=at.refused, failed=at.failed)
        asked = replace(noted(request, text), tools=(spec,), tool_choice="required")
        async with aclosing(thinking(self._inner, asked)) as events:
            async for event in events:
                if not isinstance(event, TurnFinished):
                    yield event
                    continue
                turn = event.turn
                made = tuple(call for call in turn.tool_calls if call.name == PLAN_TOOL)[-1:]
                if not made and _is_over(turn):
                    if turn.text:
                        yield TextDelta(turn.text)
                elif made != turn.tool_calls or not made:
                    if not made:
                        written = plan_in(turn.text, spec.parameters)
                        made = (
                            unreadable(new_call_id(), turn.text)
                            if written is None
                            else call_make(PLAN_TOOL, written),
                        )
                        for delta in call_events(made[0]):
                            yield delta
                    turn = _with_calls(turn, made)
                yield TurnFinished(_refused(turn, spec, others))

    def _plan_by_rule(self, request: ModelRequest, stood: Standing) -> AsyncGenerator[ProviderEvent, None]:
        search = next((tool for tool in request.tools if tool.name == SEARCH_TOOL), None)
        said = [m.text for m in stood.past if isinstance(m, UserMessage) and not m.notice]
        question = stood.question.text
        plan = plan_by_rule(question, search_query([*said, question]), search)
        return by_rule(request, self._inner, call_make(PLAN_TOOL, plan.to_json()))

    async def _act(
        self, request: ModelRequest, plan: Plan, index: int, *, replan: bool
    ) -> AsyncGenerator[ProviderEvent, None]:
        """Carry out a step: the model's calls, or the planned one where it makes none."""
        planned = call_make(plan.steps[index].action, plan.steps[index].inputs)
        if self._no_model:
            async with aclosing(by_rule(request, self._inner, planned)) as made:
                async for event in made:
                    yield event
            return
        tools = request.tools
        if not replan:
            tools = [tool for tool in tools if tool.name != PLAN_TOOL]
        asked = replace(
            noted(request, act_text(plan, index, replan=replan)), tools=tools, tool_choice="required"
        )
        async with aclosing(thinking(self._inner, asked)) as events:
            async for event in events:
                if isinstance(event, TurnFinished) and not event.turn.tool_calls:
                    if _is_over(event.turn):
                        if event.turn.text:
                            yield TextDelta(event.turn.text)
                    else:
                        for delta in call_events(planned):
                            yield delta
                        event = TurnFinished(_with_calls(event.turn, (planned,)))
                yield event


def _progress(own: Sequence[ModelMessage]) -> _Progress:
    at = _Progress()
    for part in exchanges(own):
        if isinstance(part, UserMessage):
            continue
        at.turns += bool(part.calls)
        at.answered = not part.calls and part.turn.stop != "pause"
        if not part.calls:
            continue
        plans = [
            (call, result)
            for call, result in zip(part.calls, part.results, strict=True)
            if call.name == PLAN_TOOL
        ]
        at.failed = at.refused = ""
        if not plans:
            at.done += 1
            at.failed = _failure(part.results)
            continue
        call, result = plans[-1]
        if result.is_error or call.arguments is None:
            at.refused, at.attempts = _shortened(result.content), at.attempts + 1
        else:
            at.plan, at.plans, at.done, at.attempts = plan_read(call.arguments), at.plans + 1, 0, 0
    return at


def _failure(results: Sequence[ToolResult]) -> str:
    """Return why a step failed; it has when none of its calls came to a good end."""
    if not results or not all(result.is_error for result in results):
        return ""
    return _shortened(f"{results[0].name}: {results[0].content}")


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WHY_CHARS else f"{text[:_WHY_CHARS]} …"


def _is_over(turn: Turn) -> bool:
    """Tell whether a turn ends the run, or is asked again by the loop, whatever was wanted of it."""
    return turn.stop in ("refusal", "filter", "context", "error", "pause")


def _refused(turn: Turn, spec: ToolSpec, others: Sequence[ToolSpec]) -> Turn:
    """Return the turn with a plan of steps that no tool can do marked, so that the loop refuses it in words."""
    made = turn.tool_calls
    if not made or made[0].arguments is None or problems_find(made[0].arguments, spec.parameters):
        return turn  # The loop says what is wrong with its form.
    problem = plan_problem(made[0].arguments, others)
    return _with_calls(turn, (replace(made[0], arguments=None, problem=problem),)) if problem else turn


def _with_calls(turn: Turn, calls: tuple[ToolCall, ...]) -> Turn:
    """Return the turn with these calls in place of its own; the provider's own form does not hold any more."""
    return replace(turn, tool_calls=calls, stop="tools", native=None)

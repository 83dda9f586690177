"""Another model with tools of its own answers inside a run: its calls are calls of the run, its money is the run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from runs.providers import loop_model
from runs.reservations import RunReservations
from toolloop.deferred import Decision, ParkCall
from toolloop.events import RunFinished, ToolFinished, TurnFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage, message_from_json
from toolloop.metering import UsageEvent
from toolloop.providers.base import Provider
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput, Toolset
from toolloop.tools.guards import asked_mark

HELPING = "run_helping"
"""Key of ``ToolContext.data`` under which a run gives its tools a ``SharedRun``."""
_STANDS = "helper"
"""Key in the state of a parked call: how far the helper has come."""


@dataclass(frozen=True, slots=True)
class SharedRun:
    """What a run shares with its subagents: its reservations, and who writes down what a request used at a step."""

    reservations: RunReservations
    report: Callable[[int, UsageEvent], None]
    metadata: Mapping[str, Any]


async def helper_ask(
    context: ToolContext,
    *,
    provider: Provider,
    model: str,
    system: str,
    question: str,
    tools: Iterable[Tool],
    kept: Iterable[Tool] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    options: Mapping[str, Any] | None = None,
) -> str:
    """Have a helper answer a question from within a tool.

    Args:
        context: the tool's own; its ``data`` is what the helper's calls get.
        provider: adapter for the helper's model; the caller closes it.
        model: routing name.
        tools: tools of the run that the helper may call; policy, approvals, journal and limits of the run hold.
        kept: tools that have no effect and are run here (a plan's).

    Returns:
        The helper's answer.

    Raises:
        ParkCall: one of its calls waits for a decision. Its state holds what the helper has said and found, so that it
            goes on from there: the model is not asked again, and what was decided about is what runs.
        ToolError: it gave no answer.
    """
    helping: SharedRun = context.data[HELPING]
    said, waits = _begun(context.decision)
    said = said or [UserMessage(question)]
    made = _made(said)
    toolset = Toolset([*kept, *(_passed_on(tool, context, made, limits) for tool in tools)])
    bare, profile = loop_model(provider, model)
    end: RunFinished | None = None
    events = run_loop(
        LoopInput(
            model=bare,
            system=system,
            history=list(said),
            first_step=sum(isinstance(message, Turn) for message in said),
            decisions={waits: Decision("approve", state={})} if waits else {},
            toolset=toolset,
            limits=limits,
            options=options,
        ),
        LoopServices(
            provider=provider,
            profile=profile,
            on_usage=lambda event: helping.report(context.step, event),
            usage_metadata=helping.metadata,
            reservations=helping.reservations,
        ),
    )
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, TurnFinished):
                said.append(event.turn)
            elif isinstance(event, ToolFinished):
                said.append(event.result)
            elif isinstance(event, RunFinished):
                end = event
    if end is None:
        raise RuntimeError("the loop ended without RunFinished")
    if end.status == "parked":
        waiting = end.pending[0]
        stands = {"said": [message.to_json() for message in said], "waits": waiting.call.id}
        state = {**(waiting.state or {}), _STANDS: stands}
        raise ParkCall(waiting.kind, waiting.reason, state, waiting.approval)
    if end.status != "completed" or not end.text.strip():
        raise ToolError(f"It gave no answer: {end.error_message or end.stop}", "fatal")
    return end.text


def _begun(decision: Decision | None) -> tuple[list[ModelMessage], str]:
    """Return what a helper had said and found when it had to wait, and the id of its call that is decided about."""
    state = None if decision is None else decision.state
    stands = state.get(_STANDS) if isinstance(state, dict) else None
    if stands is None:
        return [], ""
    return [message_from_json(message) for message in stands["said"]], stands["waits"]


def _made(said: Iterable[ModelMessage]) -> dict[str, int]:
    """Count the calls that have come back, by what they asked for."""
    said = list(said)
    ended = {message.call_id for message in said if isinstance(message, ToolResult)}
    calls = (call for turn in said if isinstance(turn, Turn) for call in turn.tool_calls)
    return dict(Counter(_key(c.name, c.arguments) for c in calls if c.id in ended))


def _key(name: str, arguments: Mapping[str, Any] | None) -> str:
    return asked_mark([name, arguments])[:12]


def _passed_on(tool: Tool, context: ToolContext, made: dict[str, int], limits: Limits) -> Tool:
    """Return a tool whose calls become calls of the run.

    A call is known by what it asks for, so that a helper that is asked again gets the results of its earlier calls, and
    never those of others.
    """

    async def call(**arguments: Any) -> ToolOutput:
        key = _key(tool.name, arguments)
        made[key] = made.get(key, 0) + 1
        result = await context.call(tool.name, arguments, call_id=f"{context.call_id}.{key}{made[key]}")
        if result.is_error:
            raise ToolError(result.content)
        return ToolOutput(result.content, result.payload, result.parts)

    return Tool(
        tool.name,
        tool.description,
        tool.parameters,
        call,
        sequential=tool.sequential,
        timeout_s=limits.total_seconds,
        context_parameter="",
    )

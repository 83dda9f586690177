"""Another model with tools of its own answers inside a run: its calls are calls of the run, its money is the run's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from runs.providers import loop_model
from runs.purse import BudgetPurse
from toolloop.deferred import ParkCall
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.metering import UsageEvent
from toolloop.providers.base import Provider
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput, Toolset

HELPING = "run_helping"
"""Key of ``ToolContext.data`` under which a run gives its tools a ``Helping``."""


@dataclass(frozen=True, slots=True)
class Helping:
    """What a run shares with those who help it: its purse, and who writes down what a request used at a step."""

    purse: BudgetPurse
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
        ParkCall: one of its calls waits for a decision; asked again, the helper gets the results that were there.
        ToolError: it gave no answer.
    """
    helping: Helping = context.data[HELPING]
    made: dict[str, int] = {}
    toolset = Toolset([*kept, *(_passed_on(tool, context, made, limits) for tool in tools)])
    bare, profile = loop_model(provider, model)
    end: RunFinished | None = None
    events = run_loop(
        provider=provider,
        model=bare,
        profile=profile,
        system=system,
        history=[UserMessage(question)],
        toolset=toolset,
        limits=limits,
        options=options,
        on_usage=lambda event: helping.report(context.step, event),
        usage_metadata=helping.metadata,
        purse=helping.purse,
    )
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, RunFinished):
                end = event
    if end is None:
        raise RuntimeError("the loop ended without RunFinished")
    if end.status == "parked":
        waiting = end.pending[0]
        raise ParkCall(waiting.kind, waiting.reason, waiting.state, waiting.approval)
    if end.status != "completed" or not end.text.strip():
        raise ToolError(f"It gave no answer: {end.error_message or end.stop}", "fatal")
    return end.text


def _passed_on(tool: Tool, context: ToolContext, made: dict[str, int], limits: Limits) -> Tool:
    """Return a tool whose calls become calls of the run.

    A call is known by what it asks for, so that a helper that is asked again gets the results of its earlier calls, and
    never those of others.
    """

    async def call(**arguments: Any) -> ToolOutput:
        text = json.dumps([tool.name, arguments], sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        made[key] = made.get(key, 0) + 1
        result = await context.call(
            tool.name, arguments, call_id=f"{context.call_id}.{key}{made[key]}"
        )
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

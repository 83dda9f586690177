"""Plan calls without running them, show them, then run the chosen ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from toolloop.calls import CallRunner
from toolloop.deferred import Decision
from toolloop.errors import ProviderError
from toolloop.interrupts import Interrupted, Interrupter
from toolloop.journal import NullJournal
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, message_from_json
from toolloop.metering import UsageHook, UsageReporter
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.profiles import Profile, profile_for
from toolloop.retries import TurnFailed
from toolloop.tokens import Usage
from toolloop.tools.runtime import call_prepare, error_result, run_in_thread
from toolloop.tools.toolset import Toolset
from toolloop.turns import TurnRunner
from toolloop.usage import ProfileLookup, Spending


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call the model wants to make; ``problem`` says why it could not run as it stands."""

    call: ToolCall
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a model wants to do.

    Attributes:
        turn: the model's turn; put it into the history before the results.
        calls: its calls, checked.
        usage: tokens it took, attempts that failed included.
    """

    turn: Turn
    calls: tuple[PlannedCall, ...]
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """Return the intent as JSON values."""
        return {
            "turn": self.turn.to_json(),
            "problems": [planned.problem for planned in self.calls],
            "usage": self.usage.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Intent:
        """Rebuild the intent that ``to_json`` wrote. Raises ValueError when it holds no turn."""
        turn = message_from_json(data["turn"])
        if not isinstance(turn, Turn):
            raise ValueError("an intent holds a model turn")
        pairs = zip(turn.tool_calls, data["problems"], strict=True)
        calls = tuple(PlannedCall(call, problem) for call, problem in pairs)
        return cls(turn, calls, Usage.from_json(data["usage"]))


async def calls_plan(
    *,
    provider: Provider,
    model: str,
    history: Sequence[ModelMessage],
    toolset: Toolset,
    system: str = "",
    limits: Limits = Limits(),  # noqa: B008 - frozen
    options: Mapping[str, Any] | None = None,
    cache_key: str = "",
    user_key: str = "",
    profile: Profile | None = None,
    profiles: ProfileLookup | None = None,
    on_usage: UsageHook | None = None,
    usage_metadata: Mapping[str, Any] | None = None,
) -> Intent:
    """Ask a model once which calls it would make; none is run.

    Arguments as for ``LoopInput`` and ``LoopServices``; of the limits, those of one model call apply.

    Raises:
        ProviderError: no turn could be had. ``retryable`` says whether trying later may help, ``usage`` what was paid for.
    """
    spending = Spending(
        limits,
        profile or profile_for(provider.name, model),
        provider=provider.name,
        model=model,
        reporter=UsageReporter(on_usage, provider=provider.name, model=model, metadata=usage_metadata),
        profiles=profiles,
    )
    interrupter = Interrupter(None)
    turns = TurnRunner(
        provider=provider,
        limits=limits,
        journal=NullJournal(),
        interrupter=interrupter,
        settle=spending.settle,
        settle_broken=spending.settle_broken,
    )
    seconds = limits.request_timeout_s if limits.max_seconds is None else limits.max_seconds
    request = ModelRequest(
        model=model,
        system=system,
        messages=list(history),
        tools=toolset.specs(),
        max_output_tokens=limits.max_output_tokens,
        timeout_s=seconds,
        cache_key=cache_key,
        user_key=user_key,
        options=options or {},
        profile=profile,
    )
    end = asyncio.get_running_loop().time() + seconds
    interrupter.open()
    try:
        async with aclosing(turns.run(0, request, soft=end, hard=end)) as events:
            async for _ in events:
                pass
    except TurnFailed as failure:
        error = ProviderError(failure.message, code=failure.code, retryable=failure.retryable)
        error.usage = spending.usage
        raise error from failure
    except Interrupted as interrupted:
        text = f"The model did not answer within {seconds:g} s."
        error = ProviderError(text, code="deadline", retryable=True)
        error.usage = spending.usage
        raise error from interrupted
    finally:
        interrupter.close()
    turn = turns.turn
    if turn is None:
        raise ProviderError("The model gave no turn.", code="malformed_response", retryable=True)
    cut = "" if turn.stop in ("tools", "end", "pause") else "the turn was cut off"
    planned = []
    for call in turn.tool_calls:
        checked = call_prepare(call, toolset)
        problem = checked.content if isinstance(checked, ToolResult) else cut
        planned.append(PlannedCall(call, problem))
    return Intent(turn, tuple(planned), spending.usage)


async def calls_run(
    intent: Intent,
    toolset: Toolset,
    *,
    chosen: Collection[str] | None = None,
    context: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    mock_tools: bool = False,
) -> list[ToolResult]:
    """Run the chosen calls of an intent.

    Choosing a call approves it. Calls with a problem get an error result, as in the loop, and so do those that were not
    chosen: every call has its result, in call order, so that turn and results can go on as a history.

    Args:
        intent: from ``calls_plan``, reloaded perhaps; arguments are checked again.
        chosen: ids of calls; all when None.
        context, limits, mock_tools: as for ``LoopInput``.
    """
    ids = {call.id for call in intent.turn.tool_calls} if chosen is None else set(chosen)
    unchosen = {
        call.id: error_result(call, "rejected", f"{call.name} was not run: it was not chosen.")
        for call in intent.turn.tool_calls
        if call.id not in ids
    }
    cut = {
        p.call.id: error_result(p.call, "truncated", f"{p.call.name} was not run: {p.problem}.")
        for p in intent.calls
        if intent.turn.stop not in ("tools", "end", "pause") and p.call.id in ids
    }
    interrupter = Interrupter(None)
    runner = CallRunner(
        toolset=toolset,
        limits=limits,
        journal=NullJournal(),
        interrupter=interrupter,
        context=context or {},
        run_blocking=run_in_thread,
        decisions={call_id: Decision("approve") for call_id in ids},
        mock=mock_tools,
    )
    interrupter.open()
    if limits.max_seconds is not None:
        interrupter.deadline_set(asyncio.get_running_loop().time() + limits.max_seconds)
    try:
        answers = runner.answer(0, intent.turn, {**unchosen, **cut}, decided=True)
        async with aclosing(answers) as events:
            async for _ in events:
                pass
    finally:
        interrupter.close()
    found = {result.call_id: result for result in runner.results}
    for pending in runner.pending:
        text = f"{pending.call.name} waits for an answer from outside. {pending.reason}".strip()
        found[pending.call.id] = error_result(pending.call, "pending", text)
    return [found[call.id] for call in intent.turn.tool_calls]

"""Where the loop writes what it is about to do and what it did, so that a killed run can go on.

The loop calls a journal from one place, one call at a time, also while tools run in parallel. What a journal raises ends
the run at once and reaches the caller of ``run_loop`` unchanged: a run that cannot be recorded must not go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall, ToolResult, Turn

if TYPE_CHECKING:
    from toolloop.tools.tool import Tool, Verdict


class Journal(Protocol):
    """Called by the loop at fixed points; an implementation stores each fact before it returns."""

    async def turn_started(self, step: int) -> None:
        """A model call is about to be made (nothing of this step was paid for yet)."""

    async def turn_finished(self, step: int, turn: Turn) -> None:
        """The turn is complete; its calls, if any, have not run."""

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """Decide about a call just before it runs.

        Returns:
            None to run it now, or the result to use instead: the stored one of an earlier attempt, or an error result
            (not permitted; a tool with side effects that was already started and whose outcome is unknown).
            A result given here counts as stored: ``call_finished`` does not follow for it.
            ``tool`` is None for a name the toolset does not know; the loop answers those with an error by itself.
        """

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        """The call has ended, well or badly.

        Comes without ``call_started`` for a call that never ran: bad or truncated arguments, a limit, a stop.
        """


class FilingJournal(Journal, Protocol):
    """A journal that takes the files of results; the loop looks for the method, so it may be left out."""

    async def result_shown(self, step: int, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return what the model is given of a result with ``parts``; ``call_finished`` follows with that."""


class ParkingJournal(Journal, Protocol):
    """A journal that is told of parked calls as well; the loop looks for the method, so it may be left out."""

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        """The call waits for a decision and has no result. It may have been started: a tool can park itself.

        When the run goes on, ``call_started`` comes (again) for it.
        """


class KnowingJournal(Journal, Protocol):
    """A journal that knows what an earlier attempt's calls have called; the loop looks for the method, so it may be left out."""

    def calls_made(self, step: int, call_id: str) -> Mapping[str, tuple[str, Any]]:
        """Return the calls that a call has made: by id, the tool's name and the arguments as it gave them.

        With it a tool that runs again after a crash finds each of its calls by what it asks for, also where it makes
        several at once and they come in another order. It must be quick.
        """


class JudgingJournal(Journal, Protocol):
    """A journal that is told what the policy said about calls; the loop looks for the method, so it may be left out."""

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """The policy was asked about a call, before it is started, parked or refused. It must be quick.

        Comes again for a call that waited, or whose turn had to wait for others.
        """


class RememberingJournal(Journal, Protocol):
    """A journal that keeps the ids of answers in the background; the loop looks for the methods, so they may be left out.

    With them a run that goes on after its worker's death fetches such an answer instead of paying for it twice.
    """

    async def response_started(self, step: int, response_id: str) -> None:
        """The provider answers in the background under this id; store it before returning."""

    def response_of(self, step: int) -> str | None:
        """Return the id that an earlier attempt has stored for this step, "" for none; None where none can be stored.

        It must be quick.
        """


class NullJournal:
    """Keeps nothing: for plain use without resume."""

    async def turn_started(self, step: int) -> None:
        return None

    async def turn_finished(self, step: int, turn: Turn) -> None:
        return None

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        return None

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        return None

"""Get one model turn from a provider: stream it, ask again where ``retries`` allows it, end it when time is up."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import cast

from toolloop.errors import MalformedResponse, ProviderError, ProviderUnavailable, ToolloopError
from toolloop.events import (
    Event,
    ProviderEvent,
    ReasoningDelta,
    StepReset,
    TextDelta,
    ToolArgumentsDelta,
    TurnFinished,
)
from toolloop.interrupts import Interrupted, Interrupter
from toolloop.journal import Journal, RememberingJournal
from toolloop.limits import Limits
from toolloop.messages import Turn
from toolloop.metering import Meter
from toolloop.providers.base import ModelRequest, Provider
from toolloop.retries import TurnFailed, retry_wait

logger = logging.getLogger(__name__)


class _Resume:
    """See ``toolloop.providers.base.Resume``: keeps the id for further attempts at the step, and in a journal that can."""

    def __init__(self, journal: Journal, step: int, is_over: Callable[[], bool]) -> None:
        self._journal, self._step, self._is_over = journal, step, is_over
        known = getattr(journal, "response_of", None)
        found: str | None = None if known is None else known(step)
        self.response_id = found or ""
        self._is_kept = found is not None

    def is_given_up(self) -> bool:
        # A process that goes down is followed by another, if the journal can tell that one.
        return self._is_over() or not self._is_kept

    async def started(self, response_id: str) -> None:
        self.response_id = response_id
        if self._is_kept:
            await cast(RememberingJournal, self._journal).response_started(self._step, response_id)


class TurnRunner:
    """Makes the model calls of one run.

    Args:
        settle: told usage, turn and seconds of every call that came to its end, also of one that is asked again.
        settle_broken: told of every call that we ended ourselves, because of a stop, the deadline or a reader that went
            away: its request, its meter, and how many characters had come.
        admit: asked for the money of each call, with the request and whether it is for the final answer; returns the
            request as it may be made.

    Attributes:
        turn: the turn of the current step, once it is complete.
        partial: text deltas streamed in the current step.
        visible: whether anything of the current attempt was streamed.
        requests: made so far, failed ones included; a resumed run sets it to what it made before.
    """

    def __init__(
        self,
        *,
        provider: Provider,
        limits: Limits,
        journal: Journal,
        interrupter: Interrupter,
        settle: Callable[..., None],
        settle_broken: Callable[..., None],
        admit: Callable[[ModelRequest, bool], Awaitable[ModelRequest]] | None = None,
    ) -> None:
        self._provider, self._limits, self._journal = provider, limits, journal
        self._interrupter, self._settle = interrupter, settle
        self._settle_broken, self._admit = settle_broken, admit
        self._unsettled = False  # A call is under way, and nobody has counted it yet.
        self._error: ProviderError | None = None
        self._meter = Meter()
        self.visible = False
        self.requests = 0
        self.turn: Turn | None = None
        self.partial: list[str] = []

    @property
    def text(self) -> str:
        """Return the step's text, as far as it has come."""
        return "".join(self.partial) if self.turn is None else self.turn.text

    def clear(self) -> None:
        """Forget the current step."""
        self.turn = None
        self.partial.clear()

    async def run(
        self, step: int, request: ModelRequest, *, soft: float | None, hard: float | None, final: bool = False
    ) -> AsyncGenerator[Event, None]:
        """Stream one turn into ``self.turn``.

        Args:
            step: number for the events.
            request: the model call.
            soft: time of the event loop until which text must come: what has begun by then is most likely the answer.
            hard: time until which the turn must be complete once it has.
            final: it is the final answer.

        Yields:
            The provider's events; ``StepReset`` before streaming anew what was visible already.

        Raises:
            Interrupted: stopped, or out of time.
            NothingReserved: there is no money for it.
            TurnFailed: no turn will be had.
        """
        await self._journal.turn_started(step)
        failures = 0
        resume = None
        if request.options.get("background"):
            resume = _Resume(self._journal, step, lambda: bool(self._interrupter.cause))
        while True:
            self._interrupter.deadline_set(soft)
            self._error, self.visible = None, False
            admitted = request
            if self._admit is not None:
                admit = functools.partial(self._admit, request, final)
                admitted = await self._interrupter.run(admit)
            self.requests += 1
            meter, streamed = Meter(), 0
            self._meter = meter
            asked = replace(admitted, meter=meter, resume=resume)
            stream = cast(AsyncGenerator[ProviderEvent, None], self._provider.stream(asked))
            try:
                while (event := await self._advance(stream)) is not None:
                    self.visible = True
                    if isinstance(event, TextDelta):
                        if not self.partial:
                            self._interrupter.deadline_set(hard)
                        self.partial.append(event.text)
                        streamed += len(event.text)
                    elif isinstance(event, ReasoningDelta):
                        streamed += len(event.text)
                    elif isinstance(event, ToolArgumentsDelta):
                        streamed += len(event.delta)
                    elif isinstance(event, StepReset):
                        self.partial.clear()
                        self._interrupter.deadline_set(soft)
                    yield event if step == 0 else replace(event, step=step)
            finally:
                # Also when the reader goes away or the task is cancelled: what was sent is paid for.
                if self._unsettled:
                    self._unsettled = False
                    self._settle_broken(asked, meter, streamed, is_stopped=self._is_stopped)
                await stream.aclose()
            if self.turn is not None:
                await self._journal.turn_finished(step, self.turn)
                yield TurnFinished(self.turn, step)
                return
            failures += 1
            error = self._error or ProviderUnavailable("the stream ended before its turn")
            wait_s = retry_wait(
                error, failures=failures, requests=self.requests, limits=self._limits, deadline=soft
            )
            await self._interrupter.run(functools.partial(asyncio.sleep, wait_s))
            if self.visible:
                self.partial.clear()
                yield StepReset(error.code, step)

    @property
    def _is_stopped(self) -> bool:
        return self._interrupter.cause == "stop"

    async def _advance(self, stream: AsyncGenerator[ProviderEvent, None]) -> ProviderEvent | None:
        """Return the next delta, or None at the end: then ``turn`` or ``_error`` is set, or the stream broke off."""
        event: ProviderEvent | None
        self._unsettled = self._unsettled or not self._interrupter.cause
        try:
            event = await self._interrupter.run(stream.__anext__)
        except StopAsyncIteration:
            event = None
        except Interrupted:
            raise
        except ProviderError as error:
            if error.usage is not None:
                self._unsettled = False
                self._settle(error.usage, None, self._meter.seconds, is_stopped=self._is_stopped)
            if self._interrupter.cause:  # The adapter took our cancellation for a failure of its own.
                raise Interrupted(self._interrupter.cause) from error
            self._unsettled = False  # What the provider broke off and did not count is not charged for.
            self._error = error
            return None
        except ToolloopError as error:
            self._unsettled = False
            raise TurnFailed(error.code, str(error), retryable=False) from error
        except Exception as error:
            self._unsettled = False
            logger.exception("provider %s violated its contract", self._provider.name)
            text = f"The {self._provider.name} adapter failed ({type(error).__name__})."
            raise TurnFailed("internal_error", text, retryable=False) from error
        if not isinstance(event, TurnFinished):
            if event is None:
                self._unsettled = False
            return event
        self._unsettled = False
        self._settle(event.turn.usage, event.turn, self._meter.seconds)
        if event.turn.stop == "error":
            self._error = MalformedResponse(event.turn.stop_detail or "the turn is unusable")
        else:
            self.turn = event.turn
        return None

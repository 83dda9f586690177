"""One gate for all requests to a model: when it refuses for their number, they wait together and come back one by one.

A single refusal among answers concerns the request it was given to, and the loop's own retry waits for that. When
refusals gather, the door is closed for everybody until the time the provider named; then one request tries it, and each
answer lets one more in, so that the number under way doubles with each round trip and nobody storms the door.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from toolloop.errors import RateLimited
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.providers.base import ModelRequest, Provider

WINDOW, CLOSE_AT = 20, 0.3
"""So many last outcomes are looked at; this share of refusals among them closes the gate."""
DEFAULT_WAIT_S = 2.0


class RateGate:
    """Lets requests of one event loop through.

    Args:
        most: requests under way at once while all is well.

    Attributes:
        refusals: rate limits met so far.
        closings: how often the gate was closed.
    """

    def __init__(self, most: int) -> None:
        self._most, self._limit = most, float(most)
        self._under_way = 0
        self._closed_until = 0.0
        self._outcomes: deque[bool] = deque(maxlen=WINDOW)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.refusals = self.closings = 0

    @property
    def waits_s(self) -> float:
        """Seconds until the gate opens, 0 while it is open."""
        return max(0.0, self._closed_until - asyncio.get_running_loop().time())

    async def enter(self) -> None:
        """Wait for a place; who came first has the first one."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # The place was given to it meanwhile.
                self._under_way -= 1
                self._let_in()
            raise

    def leave(self, *, refused: bool | None, retry_after_s: float | None = None) -> None:
        """Give the place back.

        Args:
            refused: whether the provider refused for a rate limit; None when that says nothing (another error).
            retry_after_s: what the provider asked to wait.
        """
        self._under_way -= 1
        if refused is False:
            self._outcomes.append(False)
            self._limit = min(self._most, self._limit + 1)
        elif refused:
            self.refusals += 1
            self._outcomes.append(True)
            few = len(self._outcomes) < WINDOW // 2
            share = sum(self._outcomes) / len(self._outcomes)
            if self._limit <= 1 or (not few and share >= CLOSE_AT):
                self._close(DEFAULT_WAIT_S if retry_after_s is None else retry_after_s)
        self._let_in()

    def _let_in(self) -> None:
        """Give places to those who wait, or see to it that this happens when the gate opens."""
        if wait := self.waits_s:
            if self._timer is None and self._waiting:
                self._timer = asyncio.get_running_loop().call_later(wait, self._opened)
            return
        while self._waiting and self._under_way < int(self._limit):
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self._under_way += 1
                turn.set_result(None)

    def _opened(self) -> None:
        self._timer = None
        self._let_in()

    def _close(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        if until > self._closed_until:
            self._closed_until = until
            self.closings += 1
        self._limit = 1
        self._outcomes.clear()


class GatedProvider:
    """A provider behind a gate. Closing it leaves the provider open: others share it."""

    def __init__(self, inner: Provider, gate: RateGate) -> None:
        self._inner, self._gate = inner, gate
        self.name = inner.name

    async def stream(self, request: ModelRequest) -> AsyncIterator[ProviderEvent]:
        """See ``toolloop.providers.base.Provider``. The place is held until the turn is complete."""
        await self._gate.enter()
        refused: bool | None = None
        retry_after: float | None = None
        try:
            events = cast(AsyncGenerator[ProviderEvent, None], self._inner.stream(request))
            async with aclosing(events) as stream:
                async for event in stream:
                    if isinstance(event, TurnFinished):
                        refused = False
                    yield event
        except RateLimited as error:
            refused, retry_after = True, error.retry_after_s
            raise
        finally:
            self._gate.leave(refused=refused, retry_after_s=retry_after)

    async def aclose(self) -> None:
        """Do nothing; who made the provider closes it."""

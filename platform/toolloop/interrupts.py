"""End the await a run is in when someone asks it to stop or its time is over, without cost per streamed delta."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

T = TypeVar("T")
Cause = Literal["", "stop", "deadline"]


class Interrupted(Exception):
    """The await was ended by us; ``cause`` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class Interrupter:
    """Runs one await at a time and ends it on a stop event or a deadline.

    It cancels the awaiting task itself, as ``asyncio.timeout`` does, so that no task is made per await: a stream of
    thousands of deltas pays an attribute or two for each. Use it from one task at a time.

    Args:
        stop: ends everything from the moment it is set; must be set in the loop's own thread.
    """

    def __init__(self, stop: asyncio.Event | None) -> None:
        self._stop = stop
        self._deadline_passed = False
        self._waiting: asyncio.Task[object] | None = None
        self._cancelled = False
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def cause(self) -> Cause:
        """Return why awaits end now, "" while they do not."""
        if self._stop is not None and self._stop.is_set():
            return "stop"
        return "deadline" if self._deadline_passed else ""

    def open(self) -> None:
        """Begin to watch; call ``close`` in the end."""
        if self._stop is not None:
            self._watcher = asyncio.create_task(self._watch(self._stop))

    def close(self) -> None:
        """Watch no longer."""
        self.deadline_set(None)
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None

    def deadline_set(self, when: float | None) -> None:
        """End awaits from this time of the event loop's clock on; None for no deadline. Replaces an earlier one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._deadline_passed = False
        if when is not None:
            self._timer = asyncio.get_running_loop().call_at(when, self._deadline_fire)

    async def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Await what ``make`` returns.

        Raises:
            Interrupted: when stop or deadline came first; the awaitable was cancelled.
        """
        cause = self.cause
        if cause:
            raise Interrupted(cause)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("run() needs a running asyncio task")
        before = task.cancelling()
        self._waiting, self._cancelled = task, False
        try:
            return await make()
        except asyncio.CancelledError:
            # uncancel() counts back to where it was when the only request was ours; more is someone else's wish.
            if self._cancelled:
                self._cancelled = False
                if task.uncancel() <= before:
                    raise Interrupted(self.cause) from None
            raise
        finally:
            self._waiting = None
            if self._cancelled:
                # What was awaited ended by itself, or with an error, although we had cancelled it.
                task.uncancel()

    async def _watch(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._fire()

    def _deadline_fire(self) -> None:
        self._deadline_passed = True
        self._fire()

    def _fire(self) -> None:
        if self._waiting is not None and not self._cancelled:
            self._cancelled = True
            self._waiting.cancel()

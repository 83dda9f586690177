"""Threads for the blocking functions of tools: few, reused with their database connections, and never waited for.

A plain thread pool would not do: a function cannot be ended from outside, so a few tools that hang would take all its
threads, and the pool would hold up the end of the process. Here a call that nobody waits for any more (its tool timed
out, its run was stopped) gives its place back at once; its thread goes on alone, and ends when it is through.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from django.db import connection, connections

from tenancy.database.waiting import connections_let_go

log = structlog.get_logger(__name__)
R = TypeVar("R")

PLACES = 16
IDLE_S = 10.0
"""A thread, and with it its connection, ends when nothing came for so long."""


class _Call:
    """One function to run, and where its outcome goes."""

    def __init__(
        self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any]
    ) -> None:
        self._function, self._loop, self._done = function, loop, done
        self._context = contextvars.copy_context()

    def run(self, when_through: Callable[[], None]) -> None:
        """Run the function, call ``when_through``, and hand over the outcome."""
        value: Any = None
        error: BaseException | None = None
        try:
            connection.close_if_unusable_or_obsolete()
            value = self._context.run(self._let_go_after)
        except BaseException as caught:  # noqa: BLE001 - handed to the waiting task, whatever it is
            error = caught
        if isinstance(error, StopIteration | GeneratorExit):
            # A future refuses the one, and the other would close the coroutine that waits for it.
            error = RuntimeError(f"the function raised {type(error).__name__}")
        when_through()
        # The loop may be closed when the process is ending; then nobody waits for the outcome.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._tell, value, error)

    def _let_go_after(self) -> Any:
        try:
            return self._function()
        finally:
            connections_let_go()  # this thread may be idle for a while

    def _tell(self, value: Any, error: BaseException | None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(value)
        else:
            self._done.set_exception(error)


class BlockingThreads:
    """Runs blocking functions for one event loop.

    Args:
        places: most calls at once that somebody waits for; more wait for a place.
    """

    def __init__(self, places: int = PLACES) -> None:
        self._places = asyncio.Semaphore(places)
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    async def run(self, function: Callable[[], R]) -> R:
        """Run a function in a thread, with a copy of this task's context variables, and await what it returns.

        Raises:
            BaseException: what the function raised.
        """
        async with self._places:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[R] = loop.create_future()
            self._start(_Call(function, loop, done))
            return await done

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            for _ in range(self._idle):
                self._calls.put(None)
            self._idle = 0

    def _start(self, call: _Call) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._calls.put(call)
                return
        self._calls.put(call)  # not as an argument, which a thread keeps for as long as it lives
        threading.Thread(target=self._work, name="lane-blocking", daemon=True).start()

    def _work(self) -> None:
        try:
            while (call := self._next()) is not None:
                # Idle before anybody hears of the outcome: who calls again at once finds this thread, and starts none.
                call.run(self._be_idle)
                del call  # and all of the run that its function knows, while this waits for the next one
        finally:
            connections.close_all()

    def _be_idle(self) -> None:
        with self._lock:
            self._idle += 1

    def _next(self) -> _Call | None:
        try:
            return self._calls.get(timeout=IDLE_S)
        except queue.Empty:
            with self._lock:
                if self._idle > 0:
                    self._idle -= 1
                    return None
            # A call was meant for this thread in the very moment it gave up.
            return self._calls.get()

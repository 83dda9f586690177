"""The loop lane: one long-lived event loop per worker process that carries many chat runs at once.

A django-q2 task hands its coroutine over and returns, which frees the queue's slot at once; from then on the job's
lease is what survives a crash. Keyed by pid, because a fork copies no threads. When the lane is full, ``reserve``
blocks: that worker then takes no further task.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import uvloop
from django.conf import settings
from django.db import connections

from jobs import registry
from jobs.blocking import BlockingThreads

DATABASE_THREADS = 3
"""Of each process. Four took 6 % more processor time than two or three, on two cores: each has a session of Postgres, with
caches that go cold while others run. With two, slow commits or a database far away would soon hold turns up."""
EXIT_HOOKS_S = 2.0
ANSWER_S = 1.0


class Lane:
    """An event loop in a thread, with its own few database threads, and others for blocking tools."""

    def __init__(self, slots: int) -> None:
        self.pid = os.getpid()
        self.loop = uvloop.new_event_loop()
        self.executor = ThreadPoolExecutor(DATABASE_THREADS, thread_name_prefix="lane-db")
        self.blocking = BlockingThreads()
        self._slots = threading.BoundedSemaphore(slots)
        self._futures: set[Future[Any]] = set()
        threading.Thread(target=self.loop.run_forever, name="loop-lane", daemon=True).start()

    def reserve(self) -> None:
        """Wait for a free slot and take it; ``submit`` uses it, ``release`` gives it back."""
        self._slots.acquire()

    def release(self) -> None:
        """Give back a slot that was reserved and is not used."""
        self._slots.release()

    def submit(self, coroutine: Coroutine[Any, Any, None]) -> Future[None]:
        """Start the coroutine on the lane, in a slot that was reserved for it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        self._futures.add(future)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: Future[Any]) -> None:
        self._futures.discard(future)
        self._slots.release()

    def drain(self, seconds: float, *, steps_s: float = 0.0) -> None:
        """Cancel what still runs and wait for it to write its state (jobs go back to the queue).

        Args:
            seconds: most that writing may take.
            steps_s: most that jobs may take first to come to the end of a step, where they leave by themselves
                (``JobContext.leave_at_step``); a step that is cut is done again, and paid for again.
        """
        until = time.monotonic() + steps_s
        while self._futures and time.monotonic() < until:
            time.sleep(0.02)
        for future in list(self._futures):
            future.cancel()
        until = time.monotonic() + seconds
        while self._busy() and time.monotonic() < until:
            time.sleep(0.02)
        closing = asyncio.run_coroutine_threadsafe(registry.run_before_exit(), self.loop)
        with contextlib.suppress(FutureTimeoutError):
            closing.result(timeout=EXIT_HOOKS_S)
        self.blocking.close()
        closed = self.executor.submit(connections.close_all)
        with contextlib.suppress(FutureTimeoutError):  # The server closes what a process leaves open.
            closed.result(timeout=ANSWER_S)

    def _busy(self) -> bool:
        # A cancelled concurrent future is done before its task has finished cleaning up: ask the loop.
        ask: Future[int] = asyncio.run_coroutine_threadsafe(_running(), self.loop)
        try:
            return ask.result(timeout=ANSWER_S) > 0
        except FutureTimeoutError:
            return (
                True  # On a crowded machine the loop answers late; a process that exits must go on exiting.
            )


async def _running() -> int:
    return sum(1 for t in asyncio.all_tasks() if not t.done()) - 1


_lane: Lane | None = None
_guard = threading.Lock()


def lane() -> Lane:
    """Return this process's lane, started at first use."""
    global _lane
    with _guard:
        if _lane is None or _lane.pid != os.getpid():
            _lane = Lane(settings.LOOP_SLOTS)
        return _lane


def drain_if_started(seconds: float = 3.0) -> None:
    """Drain this process's lane when it has one; called as the process exits."""
    if _lane is not None and _lane.pid == os.getpid():
        _lane.drain(seconds, steps_s=settings.DRAIN_SECONDS)

"""Let a run that is under way in this worker hear that it should stop, within well under a second."""

from __future__ import annotations

import asyncio
import weakref

from jobs.context import JobContext
from jobs.notify import STOP_CHANNEL, notify
from runs.actors import gone_of
from runs.hub import Waker, stops
from runs.models import Run

POLL_S = 0.5


def stop_topic(run_id: int) -> str:
    """Return the topic on which ``stop_tell`` calls the worker."""
    return f"run-stop:{run_id}"


def stop_tell(tenant_id: int, run_id: int, why: str) -> None:
    """Have the worker that carries a run look whether it should go on, when the current transaction commits."""
    notify(tenant_id, stop_topic(run_id), why, channel=STOP_CHANNEL)


async def stop_watch(ctx: JobContext, run: Run, stop: asyncio.Event, gone: asyncio.Event) -> None:
    """Set ``stop`` when somebody asks the run to stop, cancels its job, or another worker has taken it over.

    When its person or key has lost their access, ``gone`` is set before. Listens; while this process cannot listen, it asks
    the database every half second. Runs until cancelled.
    """
    async with stops.subscribe(ctx.tenant_id, stop_topic(run.pk)) as waker:
        rounds = _rounds.setdefault(asyncio.get_running_loop(), _Rounds())
        rounds.add(ctx, waker)
        try:
            while not stop.is_set():
                await waker.wait(None)
                if ctx.lost.is_set() or ctx.cancelled.is_set() or await ctx.in_db(_is_requested, run.pk):
                    stop.set()
                elif await ctx.in_db(gone_of, run) is not None:
                    gone.set()
                    stop.set()
        finally:
            rounds.remove(waker)


class _Rounds:
    """Looks every half second after all runs of an event loop, which cost a timer and a task each to look by themselves.

    Those are woken whose job has ended without them, which the heartbeat's thread tells no loop; and all, while this process
    can't listen.
    """

    def __init__(self) -> None:
        self._watched: dict[Waker, JobContext] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, ctx: JobContext, waker: Waker) -> None:
        self._watched[waker] = ctx
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POLL_S, self._look)

    def remove(self, waker: Waker) -> None:
        del self._watched[waker]
        if not self._watched and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(POLL_S, self._look)
        is_deaf = not stops.here.is_listening
        for waker, ctx in self._watched.items():
            if is_deaf or ctx.lost.is_set() or ctx.cancelled.is_set():
                waker.wake()


_rounds: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Rounds] = weakref.WeakKeyDictionary()


def _is_requested(run_id: int) -> bool:
    """Tell whether the run should end: it was asked to, or it was deleted."""
    return not Run.objects.filter(pk=run_id, stop_requested_at=None).exists()

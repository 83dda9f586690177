"""Let a run that is under way in this worker hear that it should stop, within well under a second."""

from __future__ import annotations

import asyncio

from jobs.context import JobContext
from runs.actors import gone_of
from runs.hub import hub
from runs.models import Run

POLL_S = 0.5


def stop_topic(run_id: int) -> str:
    """Return the topic on which ``run_stop`` calls the worker (its own: ``run:<id>`` rings at every flush)."""
    return f"run-stop:{run_id}"


async def stop_watch(ctx: JobContext, run: Run, stop: asyncio.Event, gone: asyncio.Event) -> None:
    """Set ``stop`` when somebody asks the run to stop, cancels its job, or another worker has taken it over.

    When its person or key has lost their access, ``gone`` is set before. Listens; while this process cannot listen, it asks
    the database every half second. Runs until cancelled.
    """
    async with hub.subscribe(ctx.tenant_id, stop_topic(run.pk)) as waker:
        while not stop.is_set():
            woken = await waker.wait(POLL_S)
            if ctx.lost.is_set() or ctx.cancelled.is_set():
                stop.set()
            elif woken or not hub.here.is_listening:
                if await ctx.in_db(_is_requested, run.pk):
                    stop.set()
                elif await ctx.in_db(gone_of, run) is not None:
                    gone.set()
                    stop.set()


def _is_requested(run_id: int) -> bool:
    """Tell whether the run should end: it was asked to, or it was deleted."""
    return not Run.objects.filter(pk=run_id, stop_requested_at=None).exists()

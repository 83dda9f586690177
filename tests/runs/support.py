"""A run with a job that a made-up worker holds, so that tests can play the worker, kill it and take over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from jobs.blocking import BlockingThreads
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job as job_kind
from runs.models import Run, RunEvent
from runs.services import run_create
from runs.transcript import Transcript, transcript_of
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S

# As in a lane, all runs share the threads of tools: each thread keeps its connection while it is idle, and a test that
# makes a hundred runs would have as many open.
_BLOCKING: dict[Executor, BlockingThreads] = {}


@job_kind("test.run", lane="loop")
async def run_nothing(ctx: JobContext, **payload: Any) -> None:
    """The kind of these runs' jobs; tests do their work themselves."""


def make_run(cast: Cast, model: str = "scripted/test", kind: str = "test.run") -> tuple[Run, Job]:
    """Return a queued run and its queued job."""
    with tenant_scope(cast.tenant.pk):
        run = run_create(tenant=cast.tenant, actor=cast.actor("member"), kind=kind, model=model)
        job = Job.objects.create(tenant=cast.tenant, kind=kind, lane="loop")
        run.job = job
        run.save(update_fields=["job"])
    return run, job


def take(job: Job, worker: str, executor: Executor | None = None) -> JobContext:
    """Claim the job for a worker, whoever had it before (as after an expired lease)."""
    with tenant_scope(job.tenant_id):
        job.refresh_from_db()
        job.status, job.worker = JobStatus.RUNNING, worker
        job.attempts += 1
        job.lease_expires_at = timezone.now() + timedelta(seconds=30)
        job.save()
    blocking = None if executor is None else _BLOCKING.setdefault(executor, BlockingThreads())
    return JobContext(job, executor, blocking)


def blocking_end(executor: Executor) -> None:
    """Let the threads for blocking tools end that went with these database threads."""
    if (threads := _BLOCKING.pop(executor, None)) is not None:
        threads.close()


def events_of(run: Run) -> list[tuple[int, str, dict[str, Any]]]:
    """Return all stored events, in order."""
    with tenant_scope(run.tenant_id):
        rows = RunEvent.objects.filter(run=run).order_by("seq")
        return list(rows.values_list("seq", "kind", "data"))


def transcript(run: Run) -> Transcript:
    """Return what a watcher sees."""
    return transcript_of(events_of(run))


async def until(run: Run, kind: str) -> None:
    """Wait until an event of this kind is stored."""
    async with asyncio.timeout(PATIENCE_S):
        while kind not in await sync_to_async(kinds_of)(run):  # noqa: ASYNC110 - another thread writes it
            await asyncio.sleep(0.005)


def kinds_of(run: Run) -> Sequence[str]:
    """Return the kinds of the stored events."""
    return [kind for _, kind, _ in events_of(run)]

"""Run jobs: claim by conditional UPDATE, enter the tenant scope, always record how it ended.

``run_cpu`` and ``run_loop`` are what queue entries name. An entry is only a wake-up: it may come twice, late or not at
all, and the claim decides.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.conf import settings
from django.db import connection, transaction

from basics.errors import DomainError
from jobs import registry
from jobs.context import (
    JobCancelled,
    JobContext,
    JobInterrupted,
    JobPostponed,
    LeaseLost,
    failure_of,
)
from jobs.heartbeat import heartbeat, worker_name
from jobs.lane import lane
from jobs.models import Job, JobStatus
from jobs.queue import ProcessLock, SharedFlag
from jobs.services import BACKOFF_S, job_end, job_requeue, wake
from tenancy.database.columns import Columns
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)

_JOB = Columns(Job, "jobs_job")
_CLAIM = (
    "UPDATE jobs_job SET status = 'running', worker = %s, attempts = attempts + 1, "
    "started_at = now(), lease_expires_at = now() + make_interval(secs => %s) "
    "WHERE id = %s AND status = 'queued' AND run_after <= clock_timestamp()"
)
DRAIN_S = 60.0  # how long one queue entry may go on with further jobs of the cpu lane


def claim(tenant_id: int, job_id: int) -> Job | None:
    """Take a queued job for this process, or return None when somebody else has it or it has ended.

    One conditional UPDATE: of two processes that claim at once, one gets the row. The attempt is counted here, so a
    crash counts. Its commit is not waited for: whatever the job then makes durable makes the claim durable before it.
    """
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            f"{_CLAIM} RETURNING {_JOB}, set_config('synchronous_commit', 'off', true)",
            [worker_name(), settings.JOB_LEASE_S, job_id],
        )
        row = cursor.fetchone()
    return None if row is None else _JOB.take(iter(row))


def run_loop(tenant_id: int, job_id: int) -> None:
    """Start a job of the loop lane and return at once; the queue's slot is free again.

    It is claimed when there is room for it: what only waits for room must not count as under way when the worker dies.
    """
    here = lane()
    here.reserve()
    try:
        job = claim(tenant_id, job_id)
        if job is None:
            here.release()
            return
    except BaseException:
        here.release()
        raise
    context = JobContext(job, here.executor, here.blocking)
    heartbeat().add(context)
    here.submit(_run_coroutine(context, job))


def run_cpu(tenant_id: int, job_id: int) -> None:
    """Run a job of the cpu lane, then others that wait, as long as a cpu slot is free on this machine.

    Slots are one fewer than the worker processes, so that one process always takes chat runs. Without a free slot the
    job stays queued: whoever holds a slot takes it next.
    """
    with _cpu_slot() as is_free:
        if not is_free:
            return
        began = time.monotonic()
        job = claim(tenant_id, job_id)
        while True:
            if job is not None:
                _run_cpu_job(job)
                if _stopping():
                    return
            following = _next_cpu_job()
            if following is None:
                return
            if time.monotonic() - began > DRAIN_S:
                with tenant_scope(following.tenant_id):
                    wake(following)
                return
            job = claim(following.tenant_id, following.pk)


def run_here(tenant_id: int, job_id: int) -> Job:
    """Run one queued job in this process and wait for its end (commands, when no worker is alive).

    Raises:
        LeaseLost: somebody else has claimed it.
    """
    job = claim(tenant_id, job_id)
    if job is None:
        raise LeaseLost(f"job {job_id} is not waiting any more")
    if registry.get(job.kind).lane == "cpu":
        _run_cpu_job(job)
    else:
        here = lane()
        context = JobContext(job, here.executor, here.blocking)
        heartbeat().add(context)
        here.reserve()
        here.submit(_run_coroutine(context, job)).result()
    with tenant_scope(tenant_id):
        job.refresh_from_db()
    return job


def _run_cpu_job(job: Job) -> None:
    context = JobContext(job)
    if _stopping():
        context.interrupted.set()
    heartbeat().add(context)
    structlog.contextvars.bind_contextvars(job=job.pk, kind=job.kind)
    try:
        with tenant_scope(job.tenant_id):
            error: BaseException | None = None
            try:
                context.check()
                registry.get(job.kind).handler(context, **job.payload)
            except Exception as raised:  # noqa: BLE001 - recorded in the job's row by _finish
                error = raised
            _finish(context, job, error)
    finally:
        heartbeat().remove(context)
        structlog.contextvars.unbind_contextvars("job", "kind")


async def _run_coroutine(context: JobContext, job: Job) -> None:
    with tenant_scope(job.tenant_id):
        error: BaseException | None = None
        cancelled = False
        try:
            context.check()
            await registry.get(job.kind).handler(context, **job.payload)
        except asyncio.CancelledError:
            # The lane drains because the process stops; the job goes on elsewhere.
            cancelled, error = True, JobInterrupted(f"the worker of job {job.pk} is shutting down")
        except Exception as raised:  # noqa: BLE001 - recorded in the job's row by _finish
            error = raised
        try:
            await context.in_db(_finish, context, job, error)
        finally:
            heartbeat().remove(context)
        if cancelled:
            raise asyncio.CancelledError


def _finish(context: JobContext, job: Job, error: BaseException | None) -> None:
    """Record the end of one attempt: done, cancelled, back to the queue, or failed for good."""
    if context.is_complete and error is None:
        return
    if isinstance(error, LeaseLost):
        log.warning("job_lease_lost", job=job.pk, kind=job.kind)
        return
    with transaction.atomic():
        row = (
            Job.objects.select_for_update()
            .filter(
                pk=job.pk, worker=context.worker, attempts=context.attempt, status=JobStatus.RUNNING
            )
            .first()
        )
        if row is None:
            log.warning("job_ended_elsewhere", job=job.pk, kind=job.kind)
        elif error is None:
            job_end(row, JobStatus.SUCCEEDED)
        elif isinstance(error, JobInterrupted):
            job_requeue(row, count_attempt=False)
        elif isinstance(error, JobPostponed):
            # Somebody who wanted it stopped meanwhile need not wait until it looks again.
            if row.cancel_requested_at is not None:
                job_end(row, JobStatus.CANCELLED, "cancelled", "Cancelled on request.")
            else:
                job_requeue(row, delay_s=error.delay_s, count_attempt=False)
        elif isinstance(error, JobCancelled):
            job_end(row, JobStatus.CANCELLED, "cancelled", "Cancelled on request.")
        elif isinstance(error, DomainError):
            log.info("job_refused", job=job.pk, kind=job.kind, code=error.code)
            job_end(row, JobStatus.FAILED, *failure_of(error))
        else:
            row.failures += 1
            row.save(update_fields=["failures"])
            if row.failures < row.max_attempts:
                log.warning("job_retry", job=job.pk, kind=job.kind, exc_info=error)
                job_requeue(row, delay_s=BACKOFF_S[min(row.failures, len(BACKOFF_S)) - 1])
            else:
                log.error("job_failed", job=job.pk, kind=job.kind, exc_info=error)
                job_end(row, JobStatus.FAILED, *failure_of(error))


def _next_cpu_job() -> Job | None:
    """Return a waiting job of the tenant that was served longest ago: one tenant's thousand files block nobody."""
    with platform_scope():
        waiting = Job.objects.raw(
            "SELECT j.* FROM jobs_job j WHERE j.status = 'queued' AND j.lane = 'cpu' "
            "AND j.run_after <= now() ORDER BY (SELECT max(started_at) FROM jobs_job s "
            "WHERE s.tenant_id = j.tenant_id AND s.lane = 'cpu') NULLS FIRST, j.id LIMIT 1"
        )
        return next(iter(waiting), None)


# Set by the worker command before it forks: the slots of the cpu lane, and whether the worker is stopping.
cpu_slots: list[ProcessLock] | None = None
stop_flag: SharedFlag | threading.Event = threading.Event()


def _stopping() -> bool:
    return bool(stop_flag.is_set())


@contextmanager
def _cpu_slot() -> Iterator[bool]:
    """Hold one of the cpu lane's slots; the kernel frees it when the process dies, however it dies."""
    if cpu_slots is None:  # not under the worker command: nothing to share
        yield True
        return
    for slot in cpu_slots:
        if slot.acquire(block=False):
            try:
                yield True
            finally:
                slot.release()
            return
    yield False

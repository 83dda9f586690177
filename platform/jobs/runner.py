"""Run jobs: claim by conditional UPDATE, enter the tenant scope, always record how it ended.

``run_cpu``, ``run_scan`` and ``run_loop`` are what queue entries name. An entry is only a wake-up: it may come twice, late or not at
all, and the claim decides.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from basics.errors import DomainError, TryAgain
from basics.metrics import JOBS_RETRIED
from basics.texts import gettext as _
from jobs import registry, slots
from jobs.context import (
    JobCancelled,
    JobContext,
    JobInterrupted,
    JobPostponed,
    JobYielded,
    LeaseLost,
    failure_of,
)
from jobs.fairness import next_turn, slice_of, work_count
from jobs.heartbeat import heartbeat, worker_name
from jobs.lane import lane
from jobs.models import Job, JobStatus
from jobs.queue import SharedFlag
from jobs.services import BACKOFF_S, job_end, job_requeue, wake
from tenancy.database.columns import Columns
from tenancy.database.cursors import not_waited
from tenancy.scope import tenant_scope
from toolloop.errors import ToolloopError

log = structlog.get_logger(__name__)

_JOB = Columns(Job, "jobs_job")
_CLAIM = (
    "UPDATE jobs_job SET status = 'running', worker = %s, attempts = attempts + 1, "
    "started_at = now(), lease_expires_at = now() + make_interval(secs => %s) "
    "WHERE tenant_id = own_tenant() AND id = %s AND status = 'queued' AND run_after <= statement_timestamp()"
)
WAITS_MOST_S = 24 * 3600.0  # for what does not answer; then the job fails with what it waited for
WAIT_MOST_S = 600.0  # between two tries
HAND_ON_S = 0.2  # a queue that ends still hands out entries for a moment: these must not come round and round
DRAIN_S = 60.0  # how long one queue entry may go on with further jobs of the cpu lane


def claim(tenant_id: int, job_id: int) -> Job | None:
    """Take a queued job for this process, or return None when somebody else has it or it has ended.

    One conditional UPDATE: of two processes that claim at once, one gets the row. The attempt is counted here, so a
    crash counts. Its commit is not waited for: whatever the job then makes durable makes the claim durable before it.
    """
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            f"{_CLAIM} RETURNING {_JOB}, {not_waited()}",
            [worker_name(), settings.JOB_LEASE_S, job_id],
        )
        row = cursor.fetchone()
    return None if row is None else _JOB.take(iter(row))


def run_loop(tenant_id: int, job_id: int) -> None:
    """Start a job of the loop lane and return at once; the queue's slot is free again.

    It is claimed when there is room for it: what only waits for room must not count as under way when the worker dies.
    A worker that ends claims nothing: it would take up again what it has just given back, and hold up its own end.
    """
    here = lane()
    here.reserve()
    job = None
    try:
        if not (is_ending := _stopping()):
            job = claim(tenant_id, job_id)
    finally:
        if job is None:
            here.release()
    if job is None:
        if is_ending:
            _hand_on(tenant_id, job_id)
        return
    following: list[Job] = []
    context = JobContext(job, here.executor, here.blocking, stopping=_stopping, following=following)
    heartbeat().add(context)
    here.submit(_run_coroutine(context, job, following))


def _hand_on(tenant_id: int, job_id: int) -> None:
    """Put the entry of a job that is not taken up here back into the queue underneath, for a worker that stays."""
    time.sleep(HAND_ON_S)
    with tenant_scope(tenant_id):
        for job in Job.objects.filter(pk=job_id, status=JobStatus.QUEUED):
            wake(job)


def run_cpu(tenant_id: int, job_id: int) -> None:
    """Work on jobs of the cpu lane, slice by slice, as long as a slot is free on this machine and something waits.

    Which job comes next is for ``jobs.fairness`` to say; the entry only says that there is one. Without a free slot the
    job stays queued: whoever holds a slot takes it at its turn. A small one may have the slot for small jobs.
    """
    if _stopping():
        _hand_on(tenant_id, job_id)
        return
    began = time.monotonic()
    while not _stopping() and (turn := next_turn()) is not None:
        if time.monotonic() - began > DRAIN_S:
            with tenant_scope(turn.tenant_id):
                wake(Job.objects.get(pk=turn.job_id))
            return
        with slots.regular() as is_free:
            if not is_free:
                break
            # Held for the whole of a queue of jobs. It is asked for again afterwards, because whoever came in the
            # meantime found it taken.
            _work(until=began + DRAIN_S)
    if slots.single is not None:
        slots.single.start(_work_regular, _regular_waits)
    if _small_waits():
        slots.small.start(_work_small, _small_waits)


def run_scan(tenant_id: int, job_id: int) -> None:
    """Have the machine's one slot for scans work on what waits for it, unless it is at work already."""
    if _stopping():
        _hand_on(tenant_id, job_id)
    else:
        slots.scans.start(_work_scans, _scan_waits)


def _regular_waits() -> bool:
    return not _stopping() and next_turn() is not None


def _work_regular() -> None:
    _work(most_s=settings.Q_CLUSTER["timeout"])


def _small_waits() -> bool:
    return not _stopping() and next_turn(is_small=True) is not None


def _work_small() -> None:
    _work(is_small=True)


def _scan_waits() -> bool:
    return not _stopping() and next_turn(lane="scan") is not None


def _work_scans() -> None:
    while not _stopping() and (turn := next_turn(lane="scan")) is not None:
        job = claim(turn.tenant_id, turn.job_id)
        if job is not None:
            _run_cpu_job(job, turn=slice_of(job))


def _work(*, is_small: bool = False, until: float = inf, most_s: float = inf) -> None:
    """Give out turns until nothing waits or the worker stops.

    Args:
        is_small: to small jobs only.
        until: by the clock, when no further turn is given: a queue entry has gone on for long enough.
        most_s: how long one turn may take, where django-q2's own limit does not reach (it counts for the main thread).
    """
    while not _stopping() and time.monotonic() <= until:
        turn = next_turn(is_small=is_small)
        if turn is None:
            return
        job = claim(turn.tenant_id, turn.job_id)
        if job is not None:
            with _ending_after(most_s, job):
                _run_cpu_job(job, turn=slice_of(job, is_small=is_small))


@contextmanager
def _ending_after(seconds: float, job: Job) -> Iterator[None]:
    """End this process when a job has not come back in so many seconds; it counts as the job's death.

    Nothing can stop a thread that hangs in a library. What else the process carried goes on in the next one.
    """
    if seconds == inf:
        yield
        return

    def end() -> None:
        log.error("job_hangs", job=job.pk, kind=job.kind, seconds=seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def run_here(tenant_id: int, job_id: int) -> Job:
    """Run one queued job in this process and wait for its end (commands, when no worker is alive).

    Raises:
        LeaseLost: somebody else has claimed it.
    """
    job = claim(tenant_id, job_id)
    if job is None:
        raise LeaseLost(f"job {job_id} is not waiting any more")
    if registry.get(job.kind).lane != "loop":
        _run_cpu_job(job)
    else:
        here = lane()
        context = JobContext(job, here.executor, here.blocking, stopping=_stopping)
        heartbeat().add(context)
        here.reserve()
        here.submit(_run_coroutine(context, job)).result()
    with tenant_scope(tenant_id):
        job.refresh_from_db()
    return job


def _run_cpu_job(job: Job, *, turn: Callable[[], bool] | None = None) -> None:
    context = JobContext(job, turn=turn)
    began = time.monotonic()
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
            if not isinstance(error, LeaseLost):
                work_count(job, time.monotonic() - began)
            _finish(context, job, error)
    finally:
        heartbeat().remove(context)
        structlog.contextvars.unbind_contextvars("job", "kind")


async def _run_coroutine(context: JobContext, job: Job, following: Sequence[Job] = ()) -> None:
    """Run a job of the loop lane, and those that its worker has taken with its end.

    Raises:
        asyncio.CancelledError: the lane drains; every job that had not ended is in the queue again.
    """
    cancelled = await _attempt(context, job)
    for later in following:
        theirs = context.next(later)
        if cancelled:
            theirs.interrupted.set()
        heartbeat().add(theirs)
        cancelled = await _attempt(theirs, later) or cancelled
    if cancelled:
        raise asyncio.CancelledError


async def _attempt(context: JobContext, job: Job) -> bool:
    """Run a job, record how it ended, and return whether it was cancelled with its lane."""
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
            if error is not None or not context.is_complete:  # else it has ended with its last rows
                await context.in_db(_finish, context, job, error)
        finally:
            heartbeat().remove(context)
    return cancelled


def _said(error: BaseException) -> dict[str, Any]:
    """Return how an error goes to the log: what was to be expected in one line, a fault of ours with its traceback."""
    if isinstance(error, registry.ExpectedFailure | ToolloopError):
        return {"error": type(error).__name__, "reason": str(error)[:300]}
    return {"exc_info": error}


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
            .filter(pk=job.pk, worker=context.worker, attempts=context.attempt, status=JobStatus.RUNNING)
            .first()
        )
        if row is None:
            log.warning("job_ended_elsewhere", job=job.pk, kind=job.kind)
        elif error is None:
            job_end(row, JobStatus.SUCCEEDED)
        elif isinstance(error, JobYielded) and row.cancel_requested_at is not None:
            job_end(row, JobStatus.CANCELLED, "cancelled", _("Cancelled on request."))
        elif isinstance(error, JobYielded):
            row.deaths = 0  # a slice is kept for good: a death from here on is another step's
            row.waits_since = None
            row.save(update_fields=["deaths", "waits_since"])
            job_requeue(row, count_attempt=False)
        elif isinstance(error, JobInterrupted):
            job_requeue(row, count_attempt=False)
        elif isinstance(error, JobPostponed):
            # Somebody who wanted it stopped meanwhile need not wait until it looks again.
            if row.cancel_requested_at is not None:
                job_end(row, JobStatus.CANCELLED, "cancelled", _("Cancelled on request."))
            else:
                job_requeue(row, delay_s=error.delay_s, count_attempt=False)
        elif isinstance(error, TryAgain) and (waited := _waited(row)) < WAITS_MOST_S:
            log.warning("job_waits", job=job.pk, kind=job.kind, code=error.code, reason=str(error)[:300])
            if row.cancel_requested_at is not None:
                job_end(row, JobStatus.CANCELLED, "cancelled", _("Cancelled on request."))
            else:
                delay_s = max(
                    error.retry_s, min(WAIT_MOST_S, waited / 10)
                )  # all of its work is done again each time
                job_requeue(row, delay_s=delay_s, count_attempt=False)
        elif isinstance(error, JobCancelled):
            job_end(row, JobStatus.CANCELLED, "cancelled", _("Cancelled on request."))
        elif isinstance(error, DomainError):
            log.info("job_refused", job=job.pk, kind=job.kind, code=error.code)
            job_end(row, JobStatus.FAILED, *failure_of(error))
        else:
            row.failures += 1
            row.save(update_fields=["failures"])
            if row.failures < row.max_attempts:
                log.warning("job_retry", job=job.pk, kind=job.kind, **_said(error))
                JOBS_RETRIED.add(job.kind)
                job_requeue(row, delay_s=BACKOFF_S[min(row.failures, len(BACKOFF_S)) - 1])
            else:
                log.error("job_failed", job=job.pk, kind=job.kind, **_said(error))
                job_end(row, JobStatus.FAILED, *failure_of(error))


def _waited(row: Job) -> float:
    """Return for how many seconds a job has waited for something that does not answer, and note the first time."""
    since = row.waits_since
    if since is None:
        since = row.waits_since = timezone.now()
        row.save(update_fields=["waits_since"])
    return (timezone.now() - since).total_seconds()


# Set by the worker command before it forks: whether the worker is stopping.
stop_flag: SharedFlag | threading.Event = threading.Event()


def _stopping() -> bool:
    return bool(stop_flag.is_set())

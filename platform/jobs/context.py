"""What a running job is given: who it is for, whether it may go on, and where it tells how far it is."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connection, models, transaction
from django.utils import timezone

from basics.errors import refusal_of
from basics.metrics import JOBS_ENDED
from basics.texts import gettext as _
from jobs.blocking import BlockingThreads
from jobs.models import Job, JobStatus
from jobs.notify import notify

P = ParamSpec("P")
R = TypeVar("R")

# By hand, because every answer ends with both.
_OWN = "tenant_id = %s AND id = %s AND worker = %s AND attempts = %s AND status = 'running'"
_HOLD = f"SELECT id FROM jobs_job WHERE {_OWN} FOR UPDATE"  # noqa: S608 - a constant
_ADVANCED = f"UPDATE jobs_job SET deaths = 0 WHERE {_OWN} RETURNING id"  # noqa: S608 - a constant
_COMPLETE = f"""
UPDATE jobs_job SET status = 'succeeded', finished_at = clock_timestamp(), lease_expires_at = NULL
WHERE {_OWN} RETURNING id
"""  # noqa: S608 - a constant
COMPLETE = """
UPDATE jobs_job SET status = 'succeeded', finished_at = clock_timestamp(), lease_expires_at = NULL
WHERE tenant_id = own_tenant() AND id = %(job)s AND worker = %(worker)s AND attempts = %(attempt)s AND status = 'running'
RETURNING id
"""
"""What ends a job as a part of another statement, which then calls ``JobContext.completed``; a row only from its holder."""


class JobEnded(Exception):
    """Base of the reasons for which a job must stop where it is."""


class JobCancelled(JobEnded):
    """Somebody asked for it to be cancelled."""


class LeaseLost(JobEnded):
    """Another worker has taken it over: nothing may be written any more."""


class JobInterrupted(JobEnded):
    """This worker shuts down: the job goes back to the queue."""


class JobPostponed(JobEnded):
    """What the job needs is not there yet: it goes back to the queue and holds no worker meanwhile.

    Args:
        delay_s: seconds before it looks again.
    """

    def __init__(self, delay_s: float) -> None:
        super().__init__(f"looks again in {delay_s:g} s")
        self.delay_s = delay_s


class JobYielded(JobEnded):
    """A slice is over and others wait: the job goes back to the queue with all it has committed, until its next turn."""


class JobContext:
    """Handed to a job's handler as its first argument.

    Attributes:
        job_id, tenant_id, user_id: whose work this is (``user_id`` None for the platform's own).
        attempt: 1 for the first claim, one more after each crash or retry.
        deaths: workers that died in a row before this attempt, while the step that is now under way was.
        worker: name of the process that holds the lease; with ``attempt`` it fences every write of the job.
    """

    PROGRESS_EVERY_S = 0.25

    def __init__(
        self,
        job: Job,
        executor: Executor | None = None,
        blocking: BlockingThreads | None = None,
        turn: Callable[[], bool] | None = None,
        stopping: Callable[[], bool] | None = None,
        following: list[Job] | None = None,
    ) -> None:
        """Make the context of a claimed job.

        Args:
            executor, blocking: threads of the loop lane.
            turn: tells whether this job's slice is over; None for one that runs to its end.
            stopping: tells whether the whole worker stops, a moment before ``interrupted`` does.
            following: where jobs go that this worker has taken already, for the slot of this one when it has ended; None
                where every job goes through the queue.
        """
        self.job_id: int = job.pk
        self.kind: str = job.kind
        self.tenant_id: int = job.tenant_id
        self.user_id: int | None = job.user_id
        self.attempt = job.attempts
        self.deaths = job.deaths
        self.worker = job.worker
        self.topic = job.topic
        self.cancelled = threading.Event()
        self.lost = threading.Event()
        self.interrupted = threading.Event()
        self.is_complete = False
        self._executor = executor
        self._blocking = blocking or BlockingThreads()
        self._turn = turn
        self._stopping = stopping or self.interrupted.is_set
        self._told_at = 0.0
        self._following = following

    def check(self) -> None:
        """Raise JobCancelled, LeaseLost or JobInterrupted when the job must stop; cheap enough for inner loops."""
        if self.lost.is_set():
            raise LeaseLost(f"job {self.job_id} was taken over by another worker")
        if self.cancelled.is_set():
            raise JobCancelled(f"job {self.job_id} was cancelled")
        if self.interrupted.is_set():
            raise JobInterrupted(f"the worker of job {self.job_id} is shutting down")

    def leave_at_step(self) -> None:
        """Let the job go back to the queue when its process ends; call it between two steps, where all is stored.

        For jobs of the loop lane, which would otherwise be cancelled wherever they are once the process waits no longer.

        Raises:
            asyncio.CancelledError: the process ends.
        """
        if self.interrupted.is_set() or self._stopping():
            raise asyncio.CancelledError(f"the worker of job {self.job_id} is shutting down")

    def give_way(self) -> None:
        """Let others have their turn: raise JobYielded when this slice is over and somebody else comes next.

        Call it between two commits, where all that was done is kept and the next slice goes on from there.
        """
        self.check()
        if self._turn is not None and self._turn():
            raise JobYielded(f"the slice of job {self.job_id} is over")

    def progress(self, current: int, total: int, message: str = "") -> None:
        """Store and announce how far the job is, at most four times a second (the last step always)."""
        now = time.monotonic()
        if current < total and now - self._told_at < self.PROGRESS_EVERY_S:
            return
        self._told_at = now
        with transaction.atomic():
            self._own().update(progress_current=current, progress_total=total, progress_message=message)
            if self.topic:
                notify(self.tenant_id, self.topic)

    def hold(self) -> None:
        """Lock the job's row and make sure this worker still holds it; call inside the transaction that writes.

        Raises:
            LeaseLost: the job was taken over or ended; the transaction must not go on.
        """
        self._fenced(_HOLD)

    def advanced(self) -> None:
        """Say that a step is finished for good: the deaths of workers are counted from here again.

        Call it inside the transaction that makes the step's outcome durable, before other rows are locked, and only for
        what the next attempt does not do again: an attempt that repeats its work has not advanced. It costs nothing
        unless a worker has died since the step before.

        Raises:
            LeaseLost: the job was taken over or ended; the transaction must not go on.
        """
        if self.deaths and not self.is_complete:  # ended in this very transaction: nobody counts any more
            self._fenced(_ADVANCED)
            self.deaths = 0

    def complete(self) -> None:
        """Mark the job as succeeded inside the caller's transaction, together with the work's last rows."""
        self._fenced(_COMPLETE)
        self.completed()

    def completed(self) -> None:
        """Take note that the current transaction has marked the job as succeeded (``COMPLETE``)."""
        self.is_complete = True
        transaction.on_commit(lambda: JOBS_ENDED.add(self.kind, JobStatus.SUCCEEDED.value))

    @property
    def takes_following(self) -> bool:
        """Whether this worker does what follows in the slot of this job."""
        return self._following is not None and not self._stopping()

    def follow(self, job: Job, lease: timedelta) -> None:
        """Take a new job of the loop lane, which the caller stores in the current transaction, and do it after this one.

        It never passes through the queue, and is a job like any other: should the worker die, it goes back there.
        """
        if self._following is None:
            raise RuntimeError("this job's slot takes no other job")
        now = timezone.now()
        job.status, job.worker, job.attempts = JobStatus.RUNNING, self.worker, 1
        job.started_at, job.lease_expires_at = now, now + lease
        transaction.on_commit(partial(self._following.append, job))

    def next(self, job: Job) -> JobContext:
        """Return the context of a job that follows."""
        return JobContext(job, self._executor, self._blocking, stopping=self._stopping)

    async def in_db(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run ORM code on the lane's database threads, with this task's tenant scope.

        Only for jobs of the loop lane: their event loop must never wait for the database.
        """
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()

        def call() -> R:
            connection.close_if_unusable_or_obsolete()
            return function(*args, **kwargs)

        return await loop.run_in_executor(self._executor, lambda: context.run(call))

    async def blocking(self, function: Callable[[], R]) -> R:
        """Run a tool's blocking function, which may use the ORM, in a thread of its own with this task's tenant scope.

        Not on the database threads: a tool that hangs must hold up neither journal nor other runs. Cancelled, the
        thread is written off and goes on by itself.
        """
        return await self._blocking.run(function)

    def _fenced(self, statement: str) -> None:
        """Run a statement on the job's row while this worker holds it. Raises LeaseLost when it does not."""
        if not connection.in_atomic_block:
            raise RuntimeError("a job is held and completed in the transaction of its last write")
        with connection.cursor() as cursor:
            cursor.execute(statement, [self.tenant_id, self.job_id, self.worker, self.attempt])
            is_own = cursor.fetchone() is not None
        if not is_own:
            self.lost.set()
            raise LeaseLost(f"job {self.job_id} is no longer held by {self.worker}")

    def _own(self) -> models.QuerySet[Job]:
        return Job.objects.filter(
            pk=self.job_id, worker=self.worker, attempts=self.attempt, status=JobStatus.RUNNING
        )


def failure_of(error: BaseException) -> tuple[str, str]:
    """Return (code, message) to store for what a handler raised."""
    refusal = refusal_of(error)
    if refusal is not None:
        return refusal.code, refusal.message
    return "internal_error", _(
        "Something went wrong on our side (%(error)s). It was logged; try again, and tell the operator if it "
        "happens again."
    ) % {"error": type(error).__name__}

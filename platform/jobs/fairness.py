"""Whose turn it is in the cpu lane: the workspace that had least lately, and of its jobs the one that is soon done.

A slot works on a job for a slice. Then the job goes on, unless another comes first by this rule:

1. the workspace with the fewest recent seconds in slots. They halve each ``HALF_LIFE_S``, so that nobody pays for what
   they had long ago, and slices that run now count;
2. of its jobs the one due first: when it was made, plus the time that its bytes will take. So a small file overtakes
   the large one of the same upload, and a stream of small files cannot hold up a large one for ever.

One more slot takes small jobs only, each for its first slice (see ``jobs.slots``). So a step of a large job that cannot
be cut, a reader process or the building of an index, keeps no small file waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from jobs.models import Job
from tenancy.scope import platform_scope

SLICE_S = 2.0
LONGEST_SLICE_S = 60.0
"""A job that nobody else wants to interrupt is put back after so long, because an entry of the queue has a time limit."""
SMALL_BYTES = 256 * 1024
HALF_LIFE_S = 60.0
BYTES_A_SECOND = 20_000.0
"""What a slot gets through with the local embedder, until finished jobs tell better."""
UNKNOWN_BYTES = 1_000_000
_LOOK_EVERY_S = 0.5
_FORGOTTEN_S = 10 * HALF_LIFE_S

DUE = f"created_at + make_interval(secs => coalesce(weight, {UNKNOWN_BYTES}) / {BYTES_A_SECOND})"
SMALL = f"weight <= {SMALL_BYTES} AND worked_s < {SLICE_S}"
_RECENT = f"""
    recent_s * power(0.5, extract(epoch FROM clock_timestamp() - coalesce(turn_at, clock_timestamp())) / {HALF_LIFE_S})
"""
_NEXT = f"""
WITH waiting AS MATERIALIZED (
    SELECT id, tenant_id, {DUE} AS due FROM jobs_job
    WHERE lane = %(lane)s AND ((status = 'queued' AND run_after <= clock_timestamp()) OR id = %(own)s)
    AND (NOT %(small)s OR id = %(own)s OR ({SMALL}))),
had AS (
    SELECT tenant_id, sum({_RECENT} + CASE WHEN status = 'running'
        THEN extract(epoch FROM clock_timestamp() - started_at) ELSE 0 END) AS seconds
    FROM jobs_job WHERE lane = %(lane)s AND tenant_id IN (SELECT tenant_id FROM waiting)
    AND (status = 'running' OR turn_at > clock_timestamp() - make_interval(secs => {_FORGOTTEN_S}))
    GROUP BY tenant_id)
SELECT waiting.id, waiting.tenant_id FROM waiting LEFT JOIN had USING (tenant_id)
ORDER BY coalesce(had.seconds, 0), due, id LIMIT 1
"""  # noqa: S608 - constants of this module
_WORKED = f"""
UPDATE jobs_job SET worked_s = worked_s + %(seconds)s, recent_s = {_RECENT} + %(seconds)s,
    turn_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND id = %(job)s
"""  # noqa: S608 - constants of this module


@dataclass(frozen=True, slots=True)
class NextJob:
    """The job that comes next."""

    tenant_id: int
    job_id: int


def next_turn(*, is_small: bool = False, own: int | None = None, lane: str = "cpu") -> NextJob | None:
    """Return the waiting job of a lane that comes next, None when nothing waits.

    Args:
        is_small: only of the jobs that the slot for small ones takes.
        own: a running job that is judged beside those that wait, as if its slice were over.
        lane: ``cpu`` or ``scan``; each counts its own seconds.
    """
    with platform_scope(), connection.cursor() as cursor:
        cursor.execute(_NEXT, {"small": is_small, "own": own, "lane": lane})
        row = cursor.fetchone()
    return None if row is None else NextJob(row[1], row[0])


def is_small(job: Job) -> bool:
    """Tell whether the slot for small jobs takes it: few bytes, and no slice used up yet."""
    return job.weight is not None and job.weight <= SMALL_BYTES and job.worked_s < SLICE_S


def work_count(job: Job, seconds: float) -> None:
    """Add a slice to what a job, and so its workspace, has had; in the tenant's scope."""
    with connection.cursor() as cursor:
        cursor.execute(_WORKED, {"seconds": seconds, "tenant": job.tenant_id, "job": job.pk})


def slice_of(
    job: Job, *, is_small: bool = False, clock: Callable[[], float] = time.monotonic
) -> Callable[[], bool]:
    """Start a slice now, and return what tells whether it is over and another job comes next.

    Args:
        is_small: it is in the slot for small jobs, where only small ones wait.
        clock: for tests.
    """
    began = looked = clock()

    def is_over() -> bool:
        nonlocal looked
        now = clock()
        if now - began < SLICE_S or now - looked < _LOOK_EVERY_S:
            return False
        looked = now
        if now - began >= LONGEST_SLICE_S:
            return True
        if is_small:  # its first slice is over: any other small job has none yet
            return next_turn(is_small=True) is not None
        following = next_turn(own=job.pk, lane=job.lane)
        return following is not None and following.job_id != job.pk

    return is_over

"""Why a job of the lanes ``cpu`` and ``scan`` waits, and about how long."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from jobs.fairness import BYTES_A_SECOND, DUE, SLICE_S, SMALL, SMALL_BYTES, UNKNOWN_BYTES
from tenancy.scope import platform_scope

LANES = ("cpu", "scan")
_MOST = 20_000
_SPEED = f"""
SELECT sum(weight) / nullif(sum(worked_s), 0) FROM jobs_job
WHERE lane = %(lane)s AND status = 'succeeded' AND (weight > {SMALL_BYTES} OR lane = 'scan')
AND created_at > clock_timestamp() - interval '6 hours'
"""  # noqa: S608 - constants
_ACTIVE = f"""
SELECT tenant_id, id, status = 'running', lane = 'cpu' AND coalesce({SMALL}, false),
    greatest(0.5, coalesce(weight, {UNKNOWN_BYTES}) / %(speed)s - worked_s - CASE WHEN status = 'running'
        THEN extract(epoch FROM clock_timestamp() - started_at) ELSE 0 END),
    CASE WHEN status = 'queued'
        THEN greatest(0, extract(epoch FROM run_after - clock_timestamp())) ELSE 0 END
FROM jobs_job WHERE lane = %(lane)s AND status IN ('queued', 'running')
ORDER BY status = 'running' DESC, {DUE}, id LIMIT {_MOST}
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Place:
    """A job of one workspace in a lane.

    Attributes:
        left_s: seconds of work that are left, by estimate.
        is_small: the slot for small jobs takes it.
        later_s: seconds until it may start again after a failure.
    """

    job_id: int
    left_s: float
    is_small: bool = False
    is_running: bool = False
    later_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """What stands before a job that waits.

    Attributes:
        before: jobs of the same workspace that come first or run now.
        seconds: until it starts, by estimate.
        is_later: it failed and is tried again then; nothing else holds it up.
    """

    before: tuple[int, ...]
    seconds: float
    is_later: bool = False


def waits(
    own: Sequence[Place], others: Sequence[tuple[float, float]], wanted: Collection[int]
) -> dict[int, Wait]:
    """Say for jobs of a workspace that wait what stands before them.

    Args:
        own: the workspace's jobs in the order in which they come, those that run first.
        others: for each other workspace that has work, the seconds of its small jobs and of all its jobs.
        wanted: the jobs asked about; what runs or has ended has no entry in the result.

    Returns:
        By job. Another workspace gets a turn for each one of ours, so it holds us up by at most what we have before us
        and one slice.
    """
    result: dict[int, Wait] = {}
    ahead: list[Place] = []
    for place in own:
        if place.later_s > 0:
            if place.job_id in wanted:
                result[place.job_id] = Wait((), place.later_s, is_later=True)
            continue
        if not place.is_running and place.job_id in wanted:
            first = [one for one in ahead if one.is_small or not place.is_small]
            mine = sum(one.left_s for one in first)
            theirs = (few if place.is_small else every for few, every in others)
            held_up = sum(min(seconds, mine + SLICE_S) for seconds in theirs)
            result[place.job_id] = Wait(tuple(one.job_id for one in first), mine + held_up)
        ahead.append(place)
    return result


def tenant_waits(tenant_id: int, wanted: Collection[int]) -> dict[int, Wait]:
    """Return what stands before jobs of a workspace that wait, by job; see ``waits``.

    Of other workspaces only the sums of their seconds are used. How fast work goes is what the finished jobs of the
    last hours took.
    """
    found: dict[int, Wait] = {}
    for lane in LANES:
        found |= _lane_waits(lane, tenant_id, wanted)
    return found


def _lane_waits(lane: str, tenant_id: int, wanted: Collection[int]) -> dict[int, Wait]:
    with platform_scope(), connection.cursor() as cursor:
        cursor.execute(_SPEED, {"lane": lane})
        speed = float(cursor.fetchone()[0] or BYTES_A_SECOND)
        cursor.execute(_ACTIVE, {"lane": lane, "speed": speed})
        rows = cursor.fetchall()
    own: list[Place] = []
    sums: dict[int, tuple[float, float]] = {}
    for tenant, job, is_running, is_small, left, later in rows:
        if tenant == tenant_id:
            own.append(Place(job, float(left), is_small, is_running, float(later)))
        elif not later:
            few, every = sums.get(tenant, (0.0, 0.0))
            sums[tenant] = (few + (float(left) if is_small else 0.0), every + float(left))
    return waits(own, list(sums.values()), wanted)

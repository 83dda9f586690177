"""What ``/metrics`` reads of the queue and its workers: how much waits and since when, what runs, and who is alive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from jobs.registry import Lane
from jobs.selectors import WORKER_FRESH_S
from tenancy.readings import Figure

LOST_S = 600
"""For so many seconds a worker that vanished without an orderly end is told of; its row stays for a day."""

# One index each: job_queue and job_leases hold what waits and what runs, however many jobs have ended.
_WAITING = """
SELECT lane, count(*), extract(epoch FROM now() - min(run_after))::float FROM jobs_job
WHERE status = 'queued' AND run_after <= now() GROUP BY lane
"""
_RUNNING = """
SELECT lane, count(*), extract(epoch FROM now() - min(started_at))::float,
    count(*) FILTER (WHERE lease_expires_at < now() - interval '10 seconds') FROM jobs_job
WHERE status = 'running' GROUP BY lane
"""
_WORKERS = """
SELECT count(*) FILTER (WHERE seen_at > now() - make_interval(secs => %(fresh)s)),
    coalesce(sum(processes) FILTER (WHERE seen_at > now() - make_interval(secs => %(fresh)s)), 0),
    count(*) FILTER (WHERE seen_at <= now() - make_interval(secs => %(fresh)s)
        AND seen_at > now() - make_interval(secs => %(lost)s))
FROM jobs_worker
"""


def jobs_read(cursor: Any) -> Iterator[Figure]:
    """Yield depth and age for each lane, and the workers of all machines."""
    for statement, count, since, told, age in (
        (_WAITING, "queue_jobs", "queue_oldest_seconds", "Jobs that could start now.", "could have started"),
        (_RUNNING, "jobs_running", "jobs_running_oldest_seconds", "Jobs under way.", "has been under way"),
    ):
        cursor.execute(statement)
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
        for lane in get_args(Lane):
            found = rows.get(lane, (0, 0.0, 0))
            yield Figure(count, told, found[0], {"lane": lane})
            said = f"For how long the oldest of them {age}; a slice of a long job begins again."
            yield Figure(since, said, found[1] or 0.0, {"lane": lane})
        if statement is _RUNNING:
            late = sum(row[2] for row in rows.values())
            yield Figure(
                "jobs_lease_expired",
                "Jobs under way that nobody has vouched for, ten seconds too long.",
                late,
            )
    cursor.execute(_WORKERS, {"fresh": WORKER_FRESH_S, "lost": LOST_S})
    alive, processes, lost = cursor.fetchone()
    yield Figure("workers", f"Worker commands that were seen in the last {WORKER_FRESH_S} seconds.", alive)
    yield Figure("worker_processes", "Processes of those worker commands.", processes)
    yield Figure("workers_lost", "Worker commands that vanished in the last ten minutes.", lost)

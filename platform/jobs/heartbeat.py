"""Keep the leases of this process's jobs alive, and tell a job when it is cancelled or lost."""

from __future__ import annotations

import os
import socket
import threading
from functools import lru_cache

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from basics.processes import process_is_dead, process_mark
from jobs.context import JobContext
from tenancy.scope import platform_scope

log = structlog.get_logger(__name__)
BEAT_S = 1.0


class Heartbeat:
    """One thread per worker process that renews all leases in one statement each second.

    A job whose row no longer names this process is ``lost``; one with a cancel request is ``cancelled``. When the
    database cannot be reached for longer than a lease, every job is lost: somebody else may have it.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.jobs: dict[tuple[int, int], JobContext] = {}
        self._lock = threading.Lock()
        self._missed_s = 0.0
        self._thread = threading.Thread(target=self._run, name="job-heartbeat", daemon=True)
        self._thread.start()

    def add(self, context: JobContext) -> None:
        """Take a claimed job under care."""
        with self._lock:
            self.jobs[context.job_id, context.attempt] = context

    def remove(self, context: JobContext) -> None:
        """Let an ended job go; its next slice may have begun in another thread under the same number."""
        key = (context.job_id, context.attempt)
        with self._lock:
            if self.jobs.get(key) is context:
                del self.jobs[key]

    def interrupt_all(self) -> None:
        """Tell every job that this process shuts down."""
        with self._lock:
            for context in self.jobs.values():
                context.interrupted.set()

    def _run(self) -> None:
        pause = threading.Event()
        with platform_scope():
            while not pause.wait(BEAT_S):
                with self._lock:
                    held = list(self.jobs.values())
                if not held:
                    self._missed_s = 0.0
                    continue
                try:
                    self._beat(held)
                    self._missed_s = 0.0
                except DatabaseError as error:
                    self._missed_s += BEAT_S
                    connection.close()
                    log.warning("heartbeat_missed", error=str(error), jobs=len(held))
                    if self._missed_s >= settings.JOB_LEASE_S:
                        for context in held:
                            context.lost.set()

    def _beat(self, held: list[JobContext]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobs_job SET lease_expires_at = now() + make_interval(secs => %s) "
                "FROM unnest(%s::bigint[], %s::int[]) AS mine(id, attempt) "
                "WHERE jobs_job.id = mine.id AND attempts = mine.attempt AND worker = %s "
                "AND status = 'running' "
                "RETURNING jobs_job.id, attempts, cancel_requested_at IS NOT NULL",
                [settings.JOB_LEASE_S, [c.job_id for c in held], [c.attempt for c in held], worker_name()],
            )
            found = {(job, attempt): cancel for job, attempt, cancel in cursor.fetchall()}
        with self._lock:
            for context in held:
                key = (context.job_id, context.attempt)
                if key not in self.jobs:
                    continue  # ended while we asked
                if key not in found:
                    context.lost.set()
                elif found[key]:
                    context.cancelled.set()


_heartbeat: Heartbeat | None = None
_guard = threading.Lock()


def heartbeat() -> Heartbeat:
    """Return this process's heartbeat (a fork starts its own: threads do not survive it)."""
    global _heartbeat
    with _guard:
        if _heartbeat is None or _heartbeat.pid != os.getpid():
            _heartbeat = Heartbeat()
        return _heartbeat


def worker_name() -> str:
    """Return the name under which this process holds leases: host, the machine and the start of the process, and pid."""
    return _name_of(os.getpid())


@lru_cache(maxsize=1)  # asked at each claim
def _name_of(pid: int) -> str:
    return f"{socket.gethostname()[:40]}:{process_mark(pid)}:{pid}"


os.register_at_fork(after_in_child=_name_of.cache_clear)


def worker_is_dead(name: str) -> bool:
    """Tell whether the process of this name is known to have died; False where it cannot be seen from here."""
    _, _, rest = name.partition(":")
    mark, _, pid = rest.rpartition(":")
    return pid.isdecimal() and process_is_dead(mark, int(pid))

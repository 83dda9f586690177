"""Reads about the queue and its workers, for readiness checks and the doctor."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max
from django.utils import timezone
from django_q.brokers import get_broker

from jobs.models import Job, JobStatus, Worker
from tenancy.scope import platform_scope


def queue_size() -> int:
    """Return the number of entries that wait in the queue underneath.

    Raises:
        Exception: whatever the broker's client raises when the queue cannot be reached.
    """
    return int(get_broker().queue_size())


def worker_seen_at() -> datetime | None:
    """Return when a worker command last showed signs of life, None when none ever has."""
    seen: datetime | None = Worker.objects.aggregate(seen=Max("seen_at"))["seen"]
    return seen


def oldest_waiting_s() -> float:
    """Return for how many seconds the longest waiting runnable job has waited, 0 when none waits."""
    now = timezone.now()
    with platform_scope():
        job = (
            Job.objects.filter(status=JobStatus.QUEUED, run_after__lte=now)
            .order_by("run_after")
            .only("run_after")
            .first()
        )
    return 0.0 if job is None else (now - job.run_after).total_seconds()

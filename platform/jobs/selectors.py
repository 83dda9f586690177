"""Reads about the queue and its workers, for probes, the doctor and whoever waits for a job."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max
from django_q.brokers import get_broker

from jobs.models import Worker

WORKER_FRESH_S = 30
"""A worker that has not shown itself for so many seconds counts as gone."""


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

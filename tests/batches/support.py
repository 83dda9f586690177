"""Jobs by batch, carried by the product's own runner, one look at a time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

from apps.datasets.generation.services import DRIVE
from apps.datasets.models import JOB_ACTIVE, GenerationJob
from batches.models import Batch, BatchLine
from batches.services import WIND_UP
from jobs.models import ACTIVE, Job
from jobs.runner import run_here
from tests.cast import Cast
from tests.conversations.support import Library
from tests.datasets.generation.kills import Nursery
from tests.datasets.support import start
from tests.fake_batches import Batch as Sent
from tests.fake_provider import FakeProvider

MODELS = {
    "google": "google/gemini-3.8-flash",
    "openai": "openai/gpt-6-luna",
    "anthropic": "anthropic/claude-haiku-5-5",
}
WIRES = tuple(MODELS)
MODEL = MODELS["google"]
PAST = "2000-01-01T00:00:00Z"
MOST_LOOKS = 60


def begin(cast: Cast, library: Library, **options: Any) -> GenerationJob:
    """Start a job of three rows by batch; the caller is in the tenant's scope."""
    options = {"rows": 3, "types": {"factual": 1}, "delivery": "batch", "model": MODEL, **options}
    return start(cast, library.collection, **options)


def look(job: GenerationJob, kind: str = DRIVE) -> Job | None:
    """Let a worker take the job's driver, or what ends its batches, up to where it waits; None when there is none."""
    rows = Job.objects.filter(tenant_id=job.tenant_id, kind=kind, status__in=ACTIVE)
    rows = rows.filter(payload__job_id=job.pk) if kind == DRIVE else rows.filter(payload__owner=job.topic)
    waiting = rows.first()
    if waiting is None:
        return None
    rows.update(run_after=PAST)
    run_here(job.tenant_id, waiting.pk)
    waiting.refresh_from_db()
    job.refresh_from_db()
    return waiting


def carry(job: GenerationJob) -> GenerationJob:
    """Look again and again until the job is over or pauses, and what it had with providers is ended."""
    job.refresh_from_db()
    for _ in range(MOST_LOOKS):
        if job.state not in JOB_ACTIVE or look(job) is None:
            break
    for _ in range(MOST_LOOKS):
        if look(job, WIND_UP) is None:
            break
    job.refresh_from_db()
    return job


class Submitted(dict[str, Sent]):
    """The provider's batches; ``every`` are also those that it was told to forget."""

    def __init__(self) -> None:
        super().__init__()
        self.every: list[Sent] = []

    def __setitem__(self, name: str, batch: Sent) -> None:
        super().__setitem__(name, batch)
        self.every.append(batch)


class Deadly(list[tuple[str, str]]):
    """The provider's requests; the worker that makes the one of a certain number does not live to see its answer."""

    def __init__(self, workers: Nursery) -> None:
        super().__init__()
        self.workers, self.last, self.kills = workers, 0, 0

    def append(self, request: tuple[str, str]) -> None:
        super().append(request)
        if len(self) == self.last:
            self.kills += 1
            os.kill(self.workers.pid, signal.SIGKILL)


def sent(server: FakeProvider) -> Counter[str]:
    """Return how often each call reached the provider in a batch, by the line's key."""
    # At Anthropic a mark of 25 characters stands before the key.
    return Counter(
        key[25:] if batch.wire == "anthropic" else key for batch in every(server) for key, _ in batch.lines
    )


def every(server: FakeProvider) -> list[Sent]:
    """Return all batches that the provider was ever given, the first one first."""
    submitted = server.batches.batches
    assert isinstance(submitted, Submitted)
    return submitted.every


def lines(job: GenerationJob) -> dict[str, int]:
    """Return how many lines the job has in each state."""
    rows = BatchLine.objects.filter(owner=job.topic).values_list("state", flat=True)
    return dict(Counter(rows))


def batches(job: GenerationJob) -> list[Batch]:
    """Return the job's batches, the first one first."""
    return list(Batch.objects.filter(owner=job.topic).order_by("pk"))

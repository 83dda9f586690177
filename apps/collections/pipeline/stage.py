"""What every stage of an ingestion shares: one fenced transaction at its end, its timing, and its progress."""

# ruff: noqa: S608 - one of two constants
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.db import connection, transaction
from django.utils import timezone

from apps.collections.models import Collection, Document, DocumentStatus, Stage
from basics.metrics import INGESTION_SECONDS
from jobs.context import JobCancelled
from jobs.notify import notify

REPORT_EVERY_S = 0.25


class IngestContext(Protocol):
    """What the pipeline needs of ``jobs.context.JobContext``."""

    job_id: int

    def check(self) -> None:
        """Raise when the job must stop."""

    def give_way(self) -> None:
        """Raise between two commits when somebody else has the next turn."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""

    def complete(self) -> None:
        """End the job in the current transaction."""


@contextmanager
def stage_writing(
    ctx: IngestContext, document: Document, *, is_indexing: bool = False, is_kept: bool = True
) -> Iterator[Document]:
    """Open a stage's transaction. Locks in one order everywhere: job, collection, document.

    Args:
        is_indexing: lock the collection's row too, because its statistics will change.
        is_kept: the next attempt goes on after this; False for what each attempt does again from its start.

    Yields:
        The document's fresh row.

    Raises:
        JobCancelled: the document is gone, has ended, or has another job.
        LeaseLost: another worker has the job.
    """
    with transaction.atomic():
        ctx.hold()
        with connection.cursor() as cursor:
            strength = "NO KEY UPDATE" if is_indexing else "KEY SHARE"
            cursor.execute(
                f"SELECT 1 FROM collections_collection WHERE tenant_id = own_tenant() AND id = %s FOR {strength}",
                [document.collection_id],
            )
        row = (
            Document.objects.select_for_update(no_key=True)
            .filter(pk=document.pk, job_id=ctx.job_id, status=DocumentStatus.PROCESSING)
            .first()
        )
        if row is None:
            raise JobCancelled(f"document {document.pk} is gone or has ended")
        yield row
        if is_kept:
            ctx.advanced()
        document_announce(row)


def collection_now(document: Document) -> Collection:
    """Return the fresh row of a document's collection, with its space."""
    return Collection.objects.select_related("space").get(pk=document.collection_id)


def stage_advance(row: Document, stage: Stage, began: float) -> None:
    """Note how long the running stage took and move on to the next; saves the row.

    Args:
        began: ``time.perf_counter()`` at the stage's start.
    """
    stage_time(row, began)
    row.stage = stage
    row.progress_current = row.progress_total = 0
    row.save()


def stage_time(row: Document, began: float) -> None:
    """Add what the running stage took since ``began``; the caller saves the row."""
    seconds = time.perf_counter() - began
    INGESTION_SECONDS.observe(str(row.stage), seconds=seconds)
    row.timings[row.stage] = round(row.timings.get(row.stage, 0) + seconds, 3)


class Meter:
    """Writes progress to the document's row and wakes up viewers, at most four times a second."""

    def __init__(self, ctx: IngestContext, document: Document) -> None:
        self._ctx, self._document = ctx, document
        self._told_at = 0.0

    def __call__(self, current: int, total: int) -> None:
        """Report, and stop when the job must stop."""
        self._ctx.check()
        now = time.monotonic()
        if now - self._told_at < REPORT_EVERY_S:
            return
        self._told_at = now
        with transaction.atomic():
            Document.objects.filter(pk=self._document.pk, job_id=self._ctx.job_id).update(
                progress_current=current, progress_total=total, updated_at=timezone.now()
            )
            document_announce(self._document)


def document_announce(document: Document) -> None:
    """Wake up whoever watches the document's collection, at the commit."""
    notify(document.tenant_id, f"collection:{document.collection_id}", document.pk)

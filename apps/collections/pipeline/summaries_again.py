"""Key points and links of a ready document, made again: nothing else of it is touched, and it answers all the while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.db import transaction

from apps.collections.models import Chunk, Collection, Document, DocumentStatus
from apps.collections.pipeline.stage import document_announce
from apps.collections.pipeline.summaries import summaries_make, summaries_write
from apps.collections.pipeline.summaries_model import Problem, SummaryPass, model_summarises, summary_warn
from jobs.context import JobCancelled
from jobs.models import Job, JobStatus
from tenancy.actors import system_actor


class SummaryContext(Protocol):
    """What it needs of ``jobs.context.JobContext``."""

    job_id: int
    user_id: int | None

    def check(self) -> None:
        """Raise when the job must stop."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""

    def complete(self) -> None:
        """End the job in the current transaction."""

    def progress(self, current: int, total: int, message: str = "") -> None:
        """Store and announce how far the job is."""


def document_summarise(ctx: SummaryContext, *, document_id: int) -> None:
    """Make the key points of a document by what its collection says now; chunks with a model's points keep them.

    Raises:
        JobCancelled: it was deleted, or is not ready any more.
    """

    @contextmanager
    def writing() -> Iterator[Document]:
        with transaction.atomic():
            ctx.hold()
            rows = Document.objects.select_for_update(no_key=True)
            row = rows.filter(pk=document_id, status=DocumentStatus.READY).first()
            if row is None:
                raise JobCancelled(f"document {document_id} is gone or not ready")
            yield row
            document_announce(row)

    @contextmanager
    def step() -> Iterator[Document]:
        with writing() as row:
            yield row
            ctx.advanced()

    chunks = list(Chunk.objects.filter(document_id=document_id).order_by("index"))
    made = summaries_make(chunks)
    ctx.check()
    with writing() as row:
        collection = Collection.objects.select_related("tenant").get(pk=row.collection_id)
        is_by_model = model_summarises(collection)
        if not is_by_model or any(not chunk.points_by for chunk in chunks):
            summaries_write(row, made)
    problem: Problem | None = None
    if is_by_model:
        problem = SummaryPass(
            collection=collection,
            actor=system_actor(collection.tenant_id, ctx.user_id),
            document_id=document_id,
            writing=step,
            check=ctx.check,
            on_progress=ctx.progress,
        ).run()
    with writing() as row:
        summary_warn(row, problem)
        row.save(update_fields=["warnings", "updated_at"])
        ctx.complete()


def summarise_failed(ended: Job) -> None:
    """Let a document say that its key points were not made again, in the transaction that ends the job."""
    row = Document.objects.select_for_update(no_key=True).filter(pk=ended.payload["document"]).first()
    if row is None or ended.status == JobStatus.CANCELLED:
        return
    total = Chunk.objects.filter(document=row).count()
    left = Chunk.objects.filter(document=row).exclude(points_by="model").count()
    summary_warn(row, Problem(left, total, ended.error_message) if left else None)
    row.save(update_fields=["warnings", "updated_at"])
    document_announce(row)

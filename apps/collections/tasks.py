"""Jobs of collections."""

from __future__ import annotations

from django.utils import timezone

from apps.collections import pipeline
from apps.collections.models import Document, DocumentStatus
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job


def document_ingest_ended(ended: Job) -> None:
    """End the document together with a job that did not succeed, in that job's transaction."""
    is_cancelled = ended.status == JobStatus.CANCELLED
    Document.objects.filter(
        pk=ended.payload["document"],
        job_id=ended.pk,
        status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING],
    ).update(
        status=DocumentStatus.CANCELLED if is_cancelled else DocumentStatus.FAILED,
        error_code=ended.error_code,
        error_message=ended.error_message,
        finished_at=timezone.now(),
        updated_at=timezone.now(),
    )


@job("collections.document_ingest", lane="cpu", max_attempts=3, on_end=document_ingest_ended)
def document_ingest(ctx: JobContext, *, document: int) -> None:
    """Ingest one document; safe to run again after a crash in any stage."""
    pipeline.document_ingest(ctx, document_id=document)

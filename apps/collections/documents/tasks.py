"""The jobs of documents: bringing them in, making their key points again, and removing earlier versions."""

from __future__ import annotations

from django.utils import timezone

from apps.collections.documents import versions
from apps.collections.documents.services import document_retry
from apps.collections.models import Collection, Document, DocumentStatus
from apps.collections.pipeline import run as pipeline
from apps.collections.pipeline import scans, summaries_again
from basics.errors import Missing
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from webhooks.models import Event
from webhooks.services import webhook_emit


def document_ingest_ended(ended: Job) -> None:
    """End the document together with a job that did not succeed, in that job's transaction."""
    is_cancelled = ended.status == JobStatus.CANCELLED
    pk = ended.payload["document"]
    ended_now = Document.objects.filter(
        pk=pk, job_id=ended.pk, status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING]
    ).update(
        status=DocumentStatus.CANCELLED if is_cancelled else DocumentStatus.FAILED,
        error_code=ended.error_code,
        error_message=ended.error_message,
        finished_at=timezone.now(),
        updated_at=timezone.now(),
    )
    is_private = Document.objects.filter(pk=pk, collection__owner__isnull=False).exists()
    if ended_now and not is_cancelled and not is_private:
        webhook_emit(
            tenant_id=ended.tenant_id,
            event=Event.INGESTION_FAILED,
            object_key=f"document:{pk}",
            data={"document": pk, "error_code": ended.error_code},
        )


def document_ingest_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Ingest the document of a failed job again. Raises Conflict, Missing."""
    document = Document.objects.filter(pk=failed.payload["document"]).first()
    if document is None:
        raise Missing("document")
    document_retry(tenant=tenant, actor=actor, document=document)


@job(
    "collections.document_ingest",
    lane="cpu",
    max_attempts=3,
    on_end=document_ingest_ended,
    on_retry=document_ingest_again,
)
def document_ingest(ctx: JobContext, *, document: int) -> None:
    """Ingest one document; safe to run again after a crash in any stage."""
    pipeline.document_ingest(ctx, document_id=document)


@job(
    scans.SCAN_JOB,
    lane="scan",
    max_attempts=3,
    on_end=document_ingest_ended,
    on_retry=document_ingest_again,
)
def document_scan(ctx: JobContext, *, document: int) -> None:
    """Read the scanned pages of one document; safe to run again after a crash at any page."""
    scans.document_scan(ctx, document_id=document)


def document_summarise_ended(ended: Job) -> None:
    """Say in a document's warnings that its key points were not made again, in the transaction of the job's end."""
    summaries_again.summarise_failed(ended)


@job("collections.document_summarise", lane="cpu", max_attempts=3, on_end=document_summarise_ended)
def document_summarise(ctx: JobContext, *, document: int) -> None:
    """Make the key points and links of a ready document again; what a model has made already is kept."""
    summaries_again.document_summarise(ctx, document_id=document)


@job("collections.versions_prune", lane="cpu", max_attempts=3)
def versions_prune(ctx: JobContext, *, collection: int) -> None:
    """Remove the earlier versions of documents beyond the number that a collection keeps."""
    row = Collection.objects.select_related("tenant").filter(pk=collection).first()
    if row is not None:
        versions.versions_prune(tenant=row.tenant, actor=system_actor(row.tenant_id), collection=row)

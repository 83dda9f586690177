"""Jobs of collections."""

from __future__ import annotations

from typing import TypeVar

from django.db import models, transaction
from django.utils import timezone

from apps.collections.collection.swaps import swap_retry
from apps.collections.documents import versions
from apps.collections.documents.services import document_retry
from apps.collections.imports import job as import_job
from apps.collections.imports.scratch import import_scratch_remove
from apps.collections.imports.services import import_retry
from apps.collections.index import codes, spaces
from apps.collections.index import large as indexes
from apps.collections.models import Collection, Document, DocumentStatus, Import, ImportStatus, SpaceSwap
from apps.collections.pipeline import document_types as pipeline_types
from apps.collections.pipeline import lexical_upgrade, passages, scans, summaries_again
from apps.collections.pipeline import publish as pipeline_live
from apps.collections.pipeline import run as pipeline
from basics.errors import Missing
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job
from notices.services import notice_put
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from webhooks.models import Event
from webhooks.services import webhook_emit

M = TypeVar("M", bound=models.Model)


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
    document_retry(
        tenant=tenant, actor=actor, document=_found(Document, failed.payload["document"], "document")
    )


def _found(model: type[M], pk: object, name: str) -> M:
    row: M | None = model._default_manager.filter(pk=pk).first()
    if row is None:
        raise Missing(name)
    return row


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


def import_ended(ended: Job) -> None:
    """End the import together with a job that did not succeed, in that job's transaction."""
    is_cancelled = ended.status == JobStatus.CANCELLED
    tenant_id, pk = ended.tenant_id, ended.payload["import_id"]
    transaction.on_commit(lambda: import_scratch_remove(tenant_id=tenant_id, import_id=pk))
    changed = Import.objects.filter(
        pk=pk, job_id=ended.pk, status__in=[ImportStatus.QUEUED, ImportStatus.RUNNING]
    ).update(
        status=ImportStatus.CANCELLED if is_cancelled else ImportStatus.FAILED,
        error_code=ended.error_code,
        error_message=ended.error_message,
        finished_at=timezone.now(),
    )
    if changed and not is_cancelled:
        notice_put(
            tenant_id=tenant_id,
            people=[ended.user_id],
            kind="import",
            pk=int(pk),
            state=ImportStatus.FAILED.value,
        )


def import_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Do the import of a failed job again. Raises Conflict, Missing."""
    import_retry(tenant=tenant, actor=actor, row=_found(Import, failed.payload["import_id"], "import"))


@job("collections.import_run", lane="cpu", max_attempts=5, on_end=import_ended, on_retry=import_again)
def import_run(ctx: JobContext, *, import_id: int) -> None:
    """Bring in the entries of one import; safe to run again after a crash."""
    import_job.import_run(ctx, import_id=import_id)


def space_build_ended(ended: Job) -> None:
    """Let a swap fail together with a job that did not succeed, in that job's transaction."""
    if ended.status != JobStatus.CANCELLED:
        spaces.swap_failed(ended.payload["swap"], ended.pk, ended.error_message)


def space_build_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Go on with the swap of a failed job. Raises Conflict, Missing."""
    swap_retry(tenant=tenant, actor=actor, swap=_found(SpaceSwap, failed.payload["swap"], "swap"))


@job(
    "collections.space_build",
    lane="cpu",
    max_attempts=5,
    on_end=space_build_ended,
    on_retry=space_build_again,
)
def space_build(ctx: JobContext, *, swap: int) -> None:
    """Make the vectors of a collection's next embedding space, and the graph that a large one is searched through."""
    spaces.swap_build(
        ctx, swap_id=swap, index=lambda collection: indexes.indexes_build(ctx, collection_id=collection.pk)
    )


@job("collections.space_drop", lane="cpu", max_attempts=5)
def space_drop(ctx: JobContext, *, swap: int) -> None:
    """Remove the graph and the vectors that an ended swap leaves behind."""
    row = SpaceSwap.objects.filter(pk=swap).first()
    if row is not None:
        indexes.indexes_unused_drop(ctx, collection_id=row.collection_id)
    spaces.vectors_drop(ctx, swap_id=swap)


@job("collections.versions_prune", lane="cpu", max_attempts=3)
def versions_prune(ctx: JobContext, *, collection: int) -> None:
    """Remove the earlier versions of documents beyond the number that a collection keeps."""
    row = Collection.objects.select_related("tenant").filter(pk=collection).first()
    if row is not None:
        versions.versions_prune(tenant=row.tenant, actor=system_actor(row.tenant_id), collection=row)


@job("collections.index_build", lane="cpu", max_attempts=3)
def index_build(ctx: JobContext, *, collection: int) -> None:
    """Build the search indexes that a large collection lacks."""
    indexes.indexes_build(ctx, collection_id=collection)


@job(codes.KIND, lane="cpu", max_attempts=5)
def codes_reindex(ctx: JobContext) -> None:
    """Index the codes of documents again whose workspace recognises others now."""
    codes.codes_reindex(ctx, tenant_id=ctx.tenant_id)


@job(pipeline_types.KIND, lane="cpu", max_attempts=5)
def types_infer(ctx: JobContext) -> None:
    """Give documents that were there before their workspace's rules the types that these say."""
    pipeline_types.types_infer(ctx, tenant_id=ctx.tenant_id)


@job(lexical_upgrade.KIND, lane="cpu", max_attempts=5)
def terms_upgrade(ctx: JobContext, *, collection: int) -> None:
    """Make the terms of documents again that an earlier version, or another language, has made."""
    lexical_upgrade.terms_upgrade(ctx, collection_id=collection)


@job(passages.KIND, lane="cpu", max_attempts=5)
def passages_index(ctx: JobContext, *, collection: int) -> None:
    """Make what search needs of passages that came without it."""
    passages.passages_index(ctx, collection_id=collection)


@job("collections.code_settle", lane="cpu", max_attempts=5)
def code_settle(ctx: JobContext, *, collection: int) -> None:
    """Resolve the edges of a code graph that point to what came or went."""
    pipeline_live.code_settle(ctx, collection_id=collection)


def document_summarise_ended(ended: Job) -> None:
    """Say in a document's warnings that its key points were not made again, in the transaction of the job's end."""
    summaries_again.summarise_failed(ended)


@job("collections.document_summarise", lane="cpu", max_attempts=3, on_end=document_summarise_ended)
def document_summarise(ctx: JobContext, *, document: int) -> None:
    """Make the key points and links of a ready document again; what a model has made already is kept."""
    summaries_again.document_summarise(ctx, document_id=document)

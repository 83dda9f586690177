"""What happens when a version goes live, beside its own rows: the one before retires, the code graph follows."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least
from django.utils import timezone

from apps.collections.graph.rows import code_graph_settle, code_graph_write
from apps.collections.index import terms
from apps.collections.models import CodeEdge, Collection, Document, DocumentStatus
from apps.collections.pipeline.stage import IngestContext
from jobs.models import Job, JobStatus
from jobs.services import job_enqueue
from tenancy.actors import system_actor

SETTLE_KIND = "collections.code_settle"
SETTLE_AFTER_S = 3.0  # of quiet, while other documents of the collection are on their way
SETTLE_WITHIN_S = 60.0


def version_go_live(row: Document, collection: Collection) -> None:
    """Open a version to search and retire the one before it, in the caller's transaction; saves only the old one.

    A version that was overtaken (a later upload of the same file was ready first) is retired at once.

    Args:
        row: its lexical rows are written and counted.
        collection: its row, locked by the caller.
    """
    now = timezone.now()
    ready = Document.objects.filter(
        collection_id=row.collection_id, path=row.path, live_from__isnull=False
    ).exclude(pk=row.pk)
    row.live_from = row.live_from or now
    if ready.filter(version__gt=row.version).exists():
        terms.document_uncount(collection=collection, document_id=row.pk)
        row.live_to = now
        return
    before = ready.filter(live_to__isnull=True).first()
    if before is not None:
        terms.document_uncount(collection=collection, document_id=before.pk)
        before.live_to = now
        before.save(update_fields=["live_to", "updated_at"])


def prune_later(row: Document, collection: Collection) -> None:
    """Have the earlier versions of a document beyond those that are kept removed after the commit."""
    retired = Document.objects.filter(collection_id=row.collection_id, path=row.path, live_to__isnull=False)
    if retired.count() > collection.keep_versions:
        job_enqueue(
            tenant=row.tenant,
            actor=system_actor(row.tenant_id),
            kind="collections.versions_prune",
            payload={"collection": row.collection_id},
            dedupe_key=f"prune:{row.collection_id}",
        )


def code_follow(row: Document, collection: Collection) -> None:
    """Write the code graph of a version that has just gone live, in the caller's transaction, and have others follow.

    Args:
        row: saved, with ``live_from``.
        collection: its row, locked by the caller.
    """
    if row.live_to is None:
        code_graph_write(row)
        settle_later(collection)


def settle_later(collection: Collection) -> None:
    """Have edges that point to what came or went resolved again; in a transaction that holds the collection's lock.

    While other documents of the collection are on their way, the job waits until none has ended for a few seconds, so
    that a batch is settled once, but never longer than a minute.
    """
    if not CodeEdge.objects.filter(collection=collection, is_stale=True).exists():
        return
    job = job_enqueue(
        tenant=collection.tenant,
        actor=system_actor(collection.tenant_id),
        kind=SETTLE_KIND,
        payload={"collection": collection.pk},
        dedupe_key=f"code:{collection.pk}",
        topic=f"collection:{collection.pk}",
    )
    coming = Document.objects.filter(
        collection=collection, status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING]
    )
    due = timezone.now() + timedelta(seconds=SETTLE_AFTER_S if coming.exists() else 0)
    Job.objects.filter(pk=job.pk, status=JobStatus.QUEUED).update(
        run_after=Least(due, F("created_at") + timedelta(seconds=SETTLE_WITHIN_S))
    )


def code_settle(ctx: IngestContext, *, collection_id: int) -> None:
    """Resolve the stale edges of a collection; ends the job in the transaction that finds none left."""
    while True:
        ctx.check()
        if code_graph_settle(collection_id) and _settled(ctx, collection_id):
            return
        ctx.give_way()


def _settled(ctx: IngestContext, collection_id: int) -> bool:
    """End the job unless a document has left something stale meanwhile.

    Whoever marks edges holds the collection's lock while it looks for this job. So it finds the job ended, or the job
    finds its marks.
    """
    with transaction.atomic():
        ctx.hold()
        if not Collection.objects.select_for_update(no_key=True).filter(pk=collection_id).exists():
            ctx.complete()
            return True
        if CodeEdge.objects.filter(collection_id=collection_id, is_stale=True).exists():
            return False
        ctx.complete()
        return True

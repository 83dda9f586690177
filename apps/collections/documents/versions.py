"""Versions of documents: read again, restore, move, and remove what is older than a collection keeps."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max

from apps.collections.documents.services import (
    document_enqueue,
    document_name,
    document_path,
    document_remove,
    path_lock,
    version_inherit,
)
from apps.collections.graph.rows import code_graph_forget
from apps.collections.imports.services import document_refetch
from apps.collections.models import Collection, Document, DocumentSource, DocumentStatus
from apps.collections.pipeline.publish import code_follow
from apps.collections.storage.job_locks import collection_lock, document_lock
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from blobs import services as blobs
from blobs.errors import BlobMissing
from blobs.leases import is_kept
from jobs.notify import notify
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


def document_reindex(*, tenant: Tenant, actor: Actor, document: Document) -> Document:
    """Read a document's original again, as a new version that takes the place of this one when it is ready.

    Until then, and if it fails, the version that is live goes on answering. A web page is fetched again, and gets a new
    version only when its bytes have changed.

    Returns:
        The new version, or the one that is on its way already; of a web page the version that is there.

    Raises:
        DomainError: ``file_missing`` when the original is gone.
        Conflict: ``document_retired`` for an earlier version: restore that one.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    _original_required(document)
    with transaction.atomic():
        row = document_lock(tenant, document)
        if row.live_to is not None:
            raise Conflict(
                "document_retired",
                _("This is an earlier version. Restore it, or index the current one again."),
            )
        if row.source == DocumentSource.URL and row.source_url:
            document_refetch(tenant=tenant, actor=actor, document=row)
            return row
        return _version_from(tenant, actor, row, "document.reindex")


def collection_reindex(*, tenant: Tenant, actor: Actor, collection: Collection) -> int:
    """Read every document of a collection again, for example after its chunk sizes were changed.

    Returns:
        How many documents were put into the queue.
    """
    actor.require("document.write")
    count = 0
    live = Document.objects.visible_to(actor).filter(
        collection=collection, live_from__isnull=False, live_to__isnull=True
    )
    for document in live.order_by("pk").iterator(chunk_size=500):
        _original_required(document)
        with transaction.atomic():
            try:
                row = document_lock(tenant, document)
            except Missing:
                continue  # deleted since we looked
            _version_from(tenant, actor, row, "document.reindex")
            count += 1
    return count


def document_restore(*, tenant: Tenant, actor: Actor, document: Document) -> Document:
    """Make an earlier version the current one: a new version with its bytes, which is read anew.

    Raises:
        Conflict: ``document_current`` when it is the current one.
        DomainError: ``file_missing`` when the original is gone.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    _original_required(document)
    with transaction.atomic():
        row = document_lock(tenant, document)
        if row.live_to is None:
            raise Conflict("document_current", _("This is already the current version."))
        return _version_from(tenant, actor, row, "document.restore")


def document_move(*, tenant: Tenant, actor: Actor, document: Document, path: str) -> Document:
    """Give a document, with all its versions, another path; its name becomes the path's last part.

    Raises:
        Invalid: ``name_invalid`` for a path that cannot be one.
        Conflict: ``path_taken``.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    path = document_path(path)
    with transaction.atomic():
        for one in sorted({document.path, path}):
            path_lock(document.collection_id, one)
        collection = collection_lock(tenant, document.collection_id)
        row = document_lock(tenant, document)
        versions = Document.objects.filter(tenant=tenant, collection_id=row.collection_id)
        if path == row.path:
            return row
        if versions.filter(path=path).exists():
            raise Conflict(
                "path_taken",
                _("A document already exists at “%(path)s”. Choose another path.") % {"path": path},
                data={"fields": {"path": [_("This path is already taken.")]}},
            )
        before = row.path
        live: Document | None = versions.filter(
            path=before, live_from__isnull=False, live_to__isnull=True
        ).first()
        if live is not None:
            code_graph_forget(live)
        versions.filter(path=before).update(path=path, name=document_name(path))
        if live is not None:  # the names of what it defines begin with its path
            live.refresh_from_db()
            code_follow(live, collection)
        audit_record(
            tenant=tenant, actor=actor, action="document.move", object=row, data={"from": before, "to": path}
        )
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
        row.refresh_from_db()
    return row


def versions_prune(*, tenant: Tenant, actor: Actor, collection: Collection) -> int:
    """Remove the retired versions beyond the number a collection keeps of each document.

    Returns:
        How many were removed.
    """
    actor.require("document.write")
    removed = 0
    retired = Document.objects.filter(tenant=tenant, collection=collection, live_to__isnull=False).order_by(
        "path", "-version"
    )
    kept: dict[str, int] = {}
    for path, pk in retired.values_list("path", "pk"):
        kept[path] = kept.get(path, 0) + 1
        if kept[path] <= collection.keep_versions:
            continue
        with transaction.atomic():
            locked = collection_lock(tenant, collection.pk)
            row = Document.objects.filter(tenant=tenant, pk=pk, live_to__isnull=False).first()
            if row is not None:
                document_remove(tenant, actor, locked, row, action="document.prune")
                removed += 1
    return removed


def _original_required(document: Document) -> None:
    """Raise BlobMissing when the original is gone, before a transaction that must not wait for the store."""
    if document.source != DocumentSource.URL and not is_kept(document.file):
        raise BlobMissing


def _version_from(tenant: Tenant, actor: Actor, row: Document, action: str) -> Document:
    path_lock(row.collection_id, row.path)
    blobs.key_lock(row.file)  # until the new row names it too: then its removal finds it named
    if not Document.objects.filter(tenant=tenant, sha256=row.sha256, file=row.file).exists():
        raise BlobMissing
    versions = Document.objects.filter(tenant=tenant, collection_id=row.collection_id, path=row.path)
    waiting: Document | None = (
        versions.filter(live_from__isnull=True, live_to__isnull=True, sha256=row.sha256)
        .order_by("-version")
        .first()
    )
    if waiting is not None:
        if waiting.status in (DocumentStatus.FAILED, DocumentStatus.CANCELLED):
            waiting.status = DocumentStatus.QUEUED
            waiting.error_code = waiting.error_message = ""
            waiting.finished_at = None
            waiting.save()
            document_enqueue(tenant, actor, waiting)
        return waiting
    new: Document = Document.objects.create(
        tenant=tenant,
        collection_id=row.collection_id,
        name=row.name,
        path=row.path,
        metadata={key: row.metadata[key] for key in ("web",) if key in row.metadata},
        version=(versions.aggregate(last=Max("version"))["last"] or 0) + 1,
        restored_from=row if action == "document.restore" else None,
        source=row.source,
        source_url=row.source_url,
        media_type=row.media_type,
        size=row.size,
        sha256=row.sha256,
        file=row.file,
        uploaded_by_id=actor.user_id,
    )
    version_inherit(row, new)
    document_enqueue(tenant, actor, new)
    audit_record(tenant=tenant, actor=actor, action=action, object=new, data={"version": row.version})
    notify(tenant.pk, f"collection:{new.collection_id}", new.pk)
    return new

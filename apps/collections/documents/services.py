"""Writes of documents."""

from __future__ import annotations

import mimetypes
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from apps.collections.graph.rows import code_graph_forget
from apps.collections.index import terms
from apps.collections.models import (
    TYPE_BY_HAND,
    Chunk,
    Collection,
    Document,
    DocumentSource,
    DocumentStatus,
    Embedding,
    Import,
)
from apps.collections.pipeline.publish import settle_later
from apps.collections.storage import originals as files
from apps.collections.storage.job_locks import active_jobs, cancel_quietly, collection_lock, document_lock
from apps.collections.storage.lost import document_lost_tell
from apps.collections.tree.purge import revisions_remove
from apps.collections.tree.repository_facts import repositories_limit
from apps.collections.tree.store import tree_forget
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from blobs import services as blobs
from jobs.notify import notify
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What came of an upload.

    Attributes:
        document: the new document, or the one that holds these bytes already.
        created: False when the collection had the file.
    """

    document: Document
    created: bool


def document_upload(
    *, tenant: Tenant, actor: Actor, collection: Collection, name: str, chunks: Iterable[bytes]
) -> Uploaded:
    """Keep a file and start its ingestion.

    Any bytes are taken, up to the size limit: a file that cannot be read (empty, encrypted, damaged) becomes a document
    that says so. The same bytes give one document per collection, however many uploads race.

    Args:
        name: as its owner calls it; folders in it are dropped.
        chunks: the bytes in pieces.

    Raises:
        Invalid: ``too_large`` (413) or ``name_invalid``.
        Missing: the collection was deleted meanwhile.
    """
    actor.require("document.write")
    name = document_name(name)
    received = blobs.receive(chunks, max_bytes=settings.MAX_UPLOAD_BYTES)
    try:
        original_keep(tenant, collection, received)
        with transaction.atomic():
            return _document_add(tenant, actor, collection, name, received)
    finally:
        received.discard()


def original_keep(tenant: Tenant, collection: Collection, received: blobs.ReceivedFile) -> None:
    """Place received bytes where ``document_put`` then names them; before its transaction.

    Raises:
        StoreAway: the file store does not answer.
    """
    blobs.keep(tenant.pk, files.file_key(tenant.pk, collection.pk, received.sha256), received)


def _document_add(
    tenant: Tenant, actor: Actor, collection: Collection, name: str, received: blobs.ReceivedFile
) -> Uploaded:
    if not Collection.objects.filter(tenant=tenant, pk=collection.pk).exists():
        raise Missing("collection")
    return document_put(tenant=tenant, actor=actor, collection=collection, path=name, received=received)


def document_put(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    path: str,
    received: blobs.ReceivedFile,
    source: DocumentSource = DocumentSource.UPLOAD,
    source_url: str = "",
    batch: Import | None = None,
    is_read: bool = True,
) -> Uploaded:
    """Make received bytes the newest version at a path, in the current transaction; unchanged bytes change nothing.

    Every way into a collection ends here: uploads, imports, web pages, file tools.

    Args:
        path: checked by ``document_name`` or ``document_path`` before.
        received: after ``original_keep``, or with ``blobs.services.place_later``; the caller discards it in any case.
        batch: the import it belongs to.
        is_read: False keeps the bytes alone, for a file without text, such as an image: nothing of it is searched.

    Raises:
        Missing: the collection was deleted meanwhile.
    """
    key = files.file_key(tenant.pk, collection.pk, received.sha256)
    path_lock(collection.pk, path)  # versions of one path are numbered one after the other
    versions = Document.objects.filter(tenant=tenant, collection_id=collection.pk, path=path)
    newest: Document | None = versions.current().order_by("-version").first()
    if newest is not None and newest.sha256 == received.sha256:
        return Uploaded(newest, created=False)
    waiting = versions.filter(live_from=None, live_to=None, sha256=received.sha256).first()
    if waiting is not None:
        return _put_again(tenant, actor, waiting, versions.aggregate(last=Max("version"))["last"])
    name = PurePosixPath(path).name
    # Not before: where the row was there already, whoever discards the bytes finds out whether it still is.
    blobs.name(received, key)
    try:
        with transaction.atomic():
            document: Document = Document.objects.create(
                tenant=tenant,
                collection_id=collection.pk,
                name=name,
                path=path,
                version=(versions.aggregate(last=Max("version"))["last"] or 0) + 1,
                source=source,
                source_url=source_url,
                batch=batch,
                media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
                size=received.size,
                sha256=received.sha256,
                file=key,
                uploaded_by_id=actor.user_id,
                **({} if is_read else _kept()),
            )
    except IntegrityError as error:
        raise Missing("collection") from error
    if newest is not None:
        version_inherit(newest, document)
    if is_read:
        document_enqueue(tenant, actor, document)
    audit_record(
        tenant=tenant,
        actor=actor,
        action="document.upload",
        object=document,
        data={"collection": collection.pk, "size": document.size, "sha256": document.sha256},
    )
    notify(tenant.pk, f"collection:{collection.pk}", document.pk)
    return Uploaded(document, created=True)


def _kept() -> dict[str, Any]:
    """Return the fields of a document that is not read: it is ready as it is."""
    now = timezone.now()
    return {"status": DocumentStatus.READY, "live_from": now, "finished_at": now}


def _put_again(tenant: Tenant, actor: Actor, waiting: Document, last: int) -> Uploaded:
    """Make a version that never went live the newest one: its bytes came back while it still waited."""
    row = document_lock(tenant, waiting)
    row.version = last + 1
    if not row.is_active:
        row.status = DocumentStatus.QUEUED
        row.error_code = row.error_message = ""
        row.finished_at = None
    row.save()
    if not active_jobs(tenant, Document.objects.filter(pk=row.pk)):
        document_enqueue(tenant, actor, row)
    notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return Uploaded(row, created=False)


def version_inherit(old: Document, new: Document) -> None:
    """Give a new version what people have set on the old one; who may see it above all."""
    for name in ("is_restricted", "tags", "dated", "attributes"):
        setattr(new, name, getattr(old, name))
    if old.type_reason == TYPE_BY_HAND:
        new.document_type, new.type_reason = old.document_type, old.type_reason
    new.save()
    for entry in old.access.all():
        entry.pk, entry.document = None, new
        entry.save(force_insert=True)


def path_lock(collection_id: int, path: str) -> None:
    """Take the lock on a path of a collection until the transaction ends."""
    blobs.key_lock(f"{collection_id}:{path}")


def document_path(path: str) -> str:
    """Return a relative path with single slashes, as documents of trees are named.

    Raises:
        Invalid: ``name_invalid`` for one that is empty, absolute, too long, leads upwards or holds control characters.
    """
    clean = unicodedata.normalize("NFC", path)
    parts = [part for part in clean.split("/") if part not in ("", ".")]
    bad = (
        not parts
        or clean.startswith("/")
        or ".." in parts
        or len(clean) > 1000
        or any(len(part) > 255 for part in parts)
        or not all(character.isprintable() for character in clean)
    )
    if bad:
        raise Invalid(
            "name_invalid",
            _(
                "This isn't a path inside the collection. Use folder/name with at most 1000 characters, without “..”."
            ),
            data={"fields": {"path": [_("Not a path inside the collection.")]}},
        )
    return "/".join(parts)


def document_name(name: str) -> str:
    """Return a file's bare name, cut to 255 characters.

    Raises:
        Invalid: ``name_invalid`` when nothing is left of it.
    """
    bare = PurePosixPath(PureWindowsPath(name).name).name
    clean = "".join(ch for ch in unicodedata.normalize("NFC", bare) if ch.isprintable()).strip()
    if not clean:
        raise Invalid("name_invalid", _("The file has no name. Give it one and upload it again."))
    if len(clean) > 255:
        suffix = PurePosixPath(clean).suffix[:20]
        clean = clean[: 255 - len(suffix)] + suffix
    return clean


def document_retry(*, tenant: Tenant, actor: Actor, document: Document) -> Document:
    """Ingest a failed or cancelled document again, from the stage where it stopped.

    Raises:
        Conflict: ``document_not_retryable`` when it is ready or under way.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        row = document_lock(tenant, document)
        if row.status not in (DocumentStatus.FAILED, DocumentStatus.CANCELLED):
            raise Conflict(
                "document_not_retryable", _("This document has not failed: it is ready or still being read.")
            )
        row.status = DocumentStatus.QUEUED
        row.error_code = row.error_message = ""
        row.finished_at = None
        row.progress_current = row.progress_total = 0
        row.save()
        document_enqueue(tenant, actor, row)
        audit_record(
            tenant=tenant, actor=actor, action="document.retry", object=row, data={"stage": row.stage}
        )
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return row


def document_cancel(*, tenant: Tenant, actor: Actor, document: Document) -> Document:
    """Stop the ingestion of a document: at once while it waits, within a second while it runs.

    Raises:
        Conflict: ``document_not_active`` when there is nothing to stop.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        # The job's row comes first in the order of locks.
        for job in active_jobs(tenant, Document.objects.filter(pk=document.pk)):
            cancel_quietly(tenant, actor, job)
        row = document_lock(tenant, document)
        if not row.is_active and row.status != DocumentStatus.CANCELLED:
            raise Conflict("document_not_active", _("This document is no longer being read."))
        if row.is_active and not active_jobs(tenant, Document.objects.filter(pk=row.pk)):
            row.status = DocumentStatus.CANCELLED
            row.save(update_fields=["status", "updated_at"])
        audit_record(tenant=tenant, actor=actor, action="document.cancel", object=row)
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return row


def document_delete(
    *,
    tenant: Tenant,
    actor: Actor,
    document: Document,
    with_history: bool = True,
    action: str = "document.delete",
) -> None:
    """Delete a document with pages, chunks, vectors, lexical rows and statistics, and its file when nothing needs it.

    The current version goes with all earlier ones: what is deleted answers no more, as of any time. An earlier version
    goes alone.

    Args:
        with_history: delete what the history of files keeps of it too, for good; a deletion by a file tool can be
            undone, and leaves that.
        action: what the audit event of each version is called.

    Raises:
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        if with_history:  # the lock of who changes files, before those of documents
            blobs.key_lock(f"tree:{document.collection_id}")
        versions = Document.objects.filter(tenant=tenant, pk=document.pk)
        if document.live_to is None:
            versions = Document.objects.filter(
                tenant=tenant, collection_id=document.collection_id, path=document.path
            )
        for job in active_jobs(tenant, versions):
            cancel_quietly(tenant, actor, job)
        collection = collection_lock(tenant, document.collection_id)
        rows = list(versions.select_for_update(no_key=True).order_by("pk"))
        if not any(row.pk == document.pk for row in rows):
            raise Missing("document")
        for row in rows:
            document_remove(tenant, actor, collection, row, action=action)
        if with_history and document.live_to is None:
            revisions_remove(tenant=tenant, collection=collection, path=document.path)


def document_remove(
    tenant: Tenant, actor: Actor, collection: Collection, row: Document, *, action: str
) -> None:
    """Remove one version with everything made of it, in the current transaction; its file goes after the commit.

    Args:
        collection: its row, locked by the caller.
        row: locked by the caller.
    """
    terms.document_unindex(collection=collection, document_id=row.pk, is_counted=row.is_live)
    if is_live := row.is_live:
        code_graph_forget(row)
    if row.is_restricted:
        repositories_limit(collection)
    vectors = Embedding.objects.filter(
        tenant=tenant, chunk_id__in=Chunk.objects.filter(document=row).values("pk")
    )
    vectors._raw_delete(vectors.db)
    audit_record(
        tenant=tenant,
        actor=actor,
        action=action,
        object=row,
        data={"collection": row.collection_id, "sha256": row.sha256, "chunks": row.chunk_count},
    )
    notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    document_lost_tell(tenant=tenant, actor=actor, document=row.pk)
    tenant_id = tenant.pk
    blobs.drop(tenant_id, row.file)
    if row.live_to is None:
        collection_id, path = row.collection_id, row.path
        transaction.on_commit(lambda: tree_forget(tenant_id, collection_id, path))
    row.delete()
    if is_live:
        settle_later(collection)


def document_enqueue(tenant: Tenant, actor: Actor, document: Document) -> None:
    """Give a document the job that ingests it, in the current transaction."""
    document.job = job_enqueue(
        tenant=tenant,
        actor=actor,
        kind="collections.document_ingest",
        payload={"document": document.pk},
        dedupe_key=f"document:{document.pk}",
        topic=f"collection:{document.collection_id}",
        weight=document.size,
    )
    document.save(update_fields=["job", "updated_at"])

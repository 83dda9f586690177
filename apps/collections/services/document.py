"""Writes of documents."""

from __future__ import annotations

import mimetypes
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from apps.collections import files, terms
from apps.collections.models import Chunk, Collection, Document, DocumentStatus, Embedding
from apps.collections.services.shared import active_jobs, cancel_quietly, collection_lock
from basics.errors import Conflict, Invalid, Missing
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
    received = files.file_receive(chunks, max_bytes=settings.MAX_UPLOAD_BYTES)
    try:
        with transaction.atomic():
            return _document_add(tenant, actor, collection, name, received)
    finally:
        received.discard()


def _document_add(
    tenant: Tenant, actor: Actor, collection: Collection, name: str, received: files.ReceivedFile
) -> Uploaded:
    if not Collection.objects.filter(tenant=tenant, pk=collection.pk).exists():
        raise Missing("collection")
    key = files.file_key(tenant.pk, collection.pk, received.sha256)
    files.file_lock(key)
    same = Document.objects.filter(tenant=tenant, collection=collection, sha256=received.sha256)
    try:
        with transaction.atomic():
            document: Document = Document.objects.create(
                tenant=tenant,
                collection_id=collection.pk,
                name=name,
                media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
                size=received.size,
                sha256=received.sha256,
                file=key,
                uploaded_by_id=actor.user_id,
            )
    except IntegrityError as error:
        # Not a check before the insert but the constraint decides, so two uploads at once cannot both win.
        if "document_once_per_collection" not in str(error):
            raise Missing("collection") from error
        document = same.get()
        if not files.file_exists(key):
            files.file_place(received, key)  # a lost original comes back with the same bytes
        return Uploaded(document, created=False)
    files.file_place(received, key)
    _enqueue(tenant, actor, document)
    audit_record(
        tenant=tenant,
        actor=actor,
        action="document.upload",
        object=document,
        data={"collection": collection.pk, "size": document.size, "sha256": document.sha256},
    )
    notify(tenant.pk, f"collection:{collection.pk}", document.pk)
    return Uploaded(document, created=True)


def document_name(name: str) -> str:
    """Return a file's bare name, cut to 255 characters.

    Raises:
        Invalid: ``name_invalid`` when nothing is left of it.
    """
    bare = PurePosixPath(PureWindowsPath(name).name).name
    clean = "".join(ch for ch in unicodedata.normalize("NFC", bare) if ch.isprintable()).strip()
    if not clean:
        raise Invalid("name_invalid", "The file has no name. Give it one and upload it again.")
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
        row = _document_lock(tenant, document)
        if row.status not in (DocumentStatus.FAILED, DocumentStatus.CANCELLED):
            raise Conflict(
                "document_not_retryable",
                "This document has not failed: it is ready or still being read.",
            )
        row.status = DocumentStatus.QUEUED
        row.error_code = row.error_message = ""
        row.finished_at = None
        row.progress_current = row.progress_total = 0
        row.save()
        _enqueue(tenant, actor, row)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="document.retry",
            object=row,
            data={"stage": row.stage},
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
        row = _document_lock(tenant, document)
        if not row.is_active and row.status != DocumentStatus.CANCELLED:
            raise Conflict("document_not_active", "This document is not being read any more.")
        if row.is_active and not active_jobs(tenant, Document.objects.filter(pk=row.pk)):
            row.status = DocumentStatus.CANCELLED
            row.save(update_fields=["status", "updated_at"])
        audit_record(tenant=tenant, actor=actor, action="document.cancel", object=row)
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return row


def document_delete(*, tenant: Tenant, actor: Actor, document: Document) -> None:
    """Delete a document with pages, chunks, vectors, lexical rows and statistics, and its file when nothing needs it.

    Raises:
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        for job in active_jobs(tenant, Document.objects.filter(pk=document.pk)):
            cancel_quietly(tenant, actor, job)
        collection = collection_lock(tenant, document.collection_id)
        row = _document_lock(tenant, document)
        terms.document_unindex(collection=collection, document_id=row.pk)
        vectors = Embedding.objects.filter(
            tenant=tenant, chunk_id__in=Chunk.objects.filter(document=row).values("pk")
        )
        vectors._raw_delete(vectors.db)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="document.delete",
            object=row,
            data={"collection": row.collection_id, "sha256": row.sha256, "chunks": row.chunk_count},
        )
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
        tenant_id, key, sha256 = tenant.pk, row.file, row.sha256
        row.delete()
        transaction.on_commit(
            lambda: files.file_remove(tenant_id=tenant_id, key=key, sha256=sha256)
        )


def _enqueue(tenant: Tenant, actor: Actor, document: Document) -> None:
    document.job = job_enqueue(
        tenant=tenant,
        actor=actor,
        kind="collections.document_ingest",
        payload={"document": document.pk},
        dedupe_key=f"document:{document.pk}",
        topic=f"collection:{document.collection_id}",
    )
    document.save(update_fields=["job", "updated_at"])


def _document_lock(tenant: Tenant, document: Document) -> Document:
    # In the pipeline's order (collection, then document), so that the two cannot wait for each other.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM collections_collection WHERE id = %s FOR KEY SHARE",
            [document.collection_id],
        )
    rows = Document.objects.select_for_update(no_key=True).filter(tenant=tenant, pk=document.pk)
    row: Document | None = rows.first()
    if row is None:
        raise Missing("document")
    return row

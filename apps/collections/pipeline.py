"""Ingestion of one document: store, parse, chunk, embed, index.

Each stage ends with one transaction that writes its rows and moves ``Document.stage`` on (the embed stage commits batch
by batch and skips what has a vector). So a killed worker's successor continues at the stage the row names, and nothing
is doubled. Every such transaction first makes sure that this worker still holds the job.

A refusal (``DomainError``) ends the job and, in the same transaction, the document; see ``apps.collections.tasks``.
"""

# ruff: noqa: S608 - one of two constants
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from pgvector import HalfVector

from apps.collections import files, terms
from apps.collections.bulk import rows_copy
from apps.collections.embedding import embedder_for
from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.identifiers import fidelity_measure
from apps.collections.ingestion.types import ExtractedDocument, ReaderLimits
from apps.collections.ledger import ledger_count
from apps.collections.models import (
    Chunk,
    Collection,
    Document,
    DocumentStatus,
    Embedding,
    Page,
    Stage,
)
from apps.collections.pipeline_rows import (
    chunk_indexed_text,
    chunks_write,
    extracted_load,
    pages_write,
)
from basics.errors import DomainError
from jobs.context import JobCancelled
from jobs.notify import notify

EMBED_BATCH = 128  # chunks per commit: what a killed worker loses at most
REPORT_EVERY_S = 0.25


class IngestContext(Protocol):
    """What the pipeline needs of ``jobs.context.JobContext``."""

    job_id: int

    def check(self) -> None:
        """Raise when the job must stop."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def complete(self) -> None:
        """End the job in the current transaction."""


def document_ingest(ctx: IngestContext, *, document_id: int) -> None:
    """Bring a document from the stage it is in to ``ready``.

    Raises:
        DomainError: it cannot become ready; code and message are for its owner.
        JobCancelled: it was deleted, or another job took it over.
    """
    document = _begin(ctx, document_id)
    while document.status == DocumentStatus.PROCESSING:
        ctx.check()
        document = _STAGES[Stage(document.stage)](ctx, document)


def _begin(ctx: IngestContext, document_id: int) -> Document:
    with transaction.atomic():
        ctx.hold()
        document: Document | None = (
            Document.objects.select_for_update(no_key=True)
            .filter(pk=document_id, job_id=ctx.job_id)
            .first()
        )
        if document is None:
            raise JobCancelled(f"document {document_id} is gone or has another job")
        if document.status == DocumentStatus.QUEUED:
            document.status = DocumentStatus.PROCESSING
            document.save(update_fields=["status", "updated_at"])
        _announce(document)
    return document


@contextmanager
def _writing(
    ctx: IngestContext, document: Document, *, is_indexing: bool = False
) -> Iterator[tuple[Document, Collection]]:
    """Open a stage's transaction. Locks in one order everywhere: job, collection, document.

    Args:
        is_indexing: lock the collection's row too, because its statistics will change.
    """
    with transaction.atomic():
        ctx.hold()
        with connection.cursor() as cursor:
            strength = "NO KEY UPDATE" if is_indexing else "KEY SHARE"
            cursor.execute(
                f"SELECT 1 FROM collections_collection WHERE id = %s FOR {strength}",
                [document.collection_id],
            )
        row = (
            Document.objects.select_for_update(no_key=True)
            .filter(pk=document.pk, job_id=ctx.job_id, status=DocumentStatus.PROCESSING)
            .first()
        )
        if row is None:
            raise JobCancelled(f"document {document.pk} is gone or has ended")
        collection = Collection.objects.select_related("space").get(pk=document.collection_id)
        yield row, collection
        _announce(row)


def _advance(row: Document, stage: Stage, began: float) -> None:
    """Note how long the running stage took and move on to the next; saves the row."""
    seconds = time.perf_counter() - began
    row.timings[row.stage] = round(row.timings.get(row.stage, 0) + seconds, 3)
    row.stage = stage
    row.progress_current = row.progress_total = 0
    row.save()


class _Meter:
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
            _announce(self._document)


def _announce(document: Document) -> None:
    notify(document.tenant_id, f"collection:{document.collection_id}", document.pk)


def _store(ctx: IngestContext, document: Document) -> Document:
    """Check that the kept bytes are the uploaded ones."""
    began = time.perf_counter()
    path = files.file_path(document.file)
    if path.stat().st_size != document.size or files.file_digest(path) != document.sha256:
        raise DomainError(
            "file_damaged",
            "The stored file is not what was uploaded (its checksum differs). Delete this document and "
            "upload the file again.",
        )
    with _writing(ctx, document) as (row, _):
        _advance(row, Stage.PARSE, began)
    return row


def _parse(ctx: IngestContext, document: Document) -> Document:
    """Read the pages in the limited child process."""
    began = time.perf_counter()
    extracted = document_extract(
        files.file_path(document.file),
        name=document.name,
        limits=reader_limits(),
        on_progress=_Meter(ctx, document),
        on_tick=ctx.check,
    )
    with _writing(ctx, document) as (row, _):
        Page.objects.filter(document=row).delete()
        pages_write(row, extracted)
        row.media_type, row.title = extracted.media_type, extracted.title[:300]
        row.is_paged, row.warnings = extracted.is_paged, list(extracted.warnings)
        row.metadata = dict(extracted.metadata)
        row.page_count = len(extracted.pages)
        row.skipped_pages = sum(1 for page in extracted.pages if page.junk)
        _advance(row, Stage.CHUNK, began)
    return row


def reader_limits() -> ReaderLimits:
    """Return what reading one file may cost, by the operator's settings."""
    return ReaderLimits(
        max_bytes=settings.MAX_UPLOAD_BYTES,
        wall_seconds=float(settings.INGEST_SECONDS),
        cpu_seconds=int(settings.INGEST_SECONDS),
        memory_bytes=settings.INGEST_MEMORY_MB * 1024 * 1024,
    )


def _chunk(ctx: IngestContext, document: Document) -> Document:
    """Cut the stored pages into chunks and measure what of the original's codes they keep."""
    began = time.perf_counter()
    collection = Collection.objects.get(pk=document.collection_id)
    extracted = extracted_load(document)
    drafts = chunk_document(extracted, size=collection.chunk_size, overlap=collection.chunk_overlap)
    if not drafts:
        raise DomainError("no_chunks", _why_no_chunks(extracted), status=422)
    ctx.check()
    fidelity = fidelity_measure(extracted.text, (draft.indexed_text for draft in drafts))
    with _writing(ctx, document, is_indexing=True) as (row, locked):
        terms.document_unindex(collection=locked, document_id=row.pk)
        Chunk.objects.filter(document=row).delete()
        chunks_write(row, drafts)
        row.chunk_count, row.vector_count, row.lexical_count = len(drafts), 0, 0
        row.identifiers_total, row.identifiers_found = fidelity.total, fidelity.kept
        row.metadata = {**row.metadata, "identifiers_lost": list(fidelity.lost)}
        _advance(row, Stage.EMBED, began)
    return row


def _why_no_chunks(extracted: ExtractedDocument) -> str:
    skipped = sum(1 for page in extracted.pages if page.junk)
    return (
        f"Nothing in this document can be searched: of {len(extracted.pages)} pages, {skipped} were left out as "
        "blank, contents or index pages, and the rest hold no text. If it is a scan, run text recognition (OCR) on "
        "it and upload the result."
    )


def _embed(ctx: IngestContext, document: Document) -> Document:
    """Embed the chunks that have no vector yet, a batch per commit."""
    began = time.perf_counter()
    meter = _Meter(ctx, document)
    collection = Collection.objects.select_related("space", "tenant").get(pk=document.collection_id)
    space = collection.space
    embedder = embedder_for(space, tenant=collection.tenant)
    of_document = Chunk.objects.filter(document=document)
    vector = Embedding.objects.filter(chunk_id=OuterRef("pk"), space=space)
    waiting = of_document.filter(~Exists(vector)).order_by("index")
    total = of_document.count()
    done = total - waiting.count()
    while batch := list(waiting[:EMBED_BATCH]):
        before = done

        def report(count: int, _: int, before: int = before) -> None:
            meter(before + count, total)

        vectors = embedder.embed_documents(
            [chunk_indexed_text(chunk) for chunk in batch], on_progress=report
        )
        with _writing(ctx, document) as (row, _collection):
            rows_copy(
                Embedding._meta.db_table,
                {
                    "tenant_id": "int8",
                    "chunk_id": "int8",
                    "space_id": "int8",
                    "collection_id": "int8",
                    "document_id": "int8",
                    "vector": "halfvec",
                },
                (
                    (
                        row.tenant_id,
                        chunk.pk,
                        space.pk,
                        row.collection_id,
                        row.pk,
                        HalfVector(values),
                    )
                    for chunk, values in zip(batch, vectors, strict=True)
                ),
                suffix="ON CONFLICT DO NOTHING",
            )
            done += len(batch)
            row.vector_count = row.progress_current = done
            row.progress_total = total
            row.save(
                update_fields=["vector_count", "progress_current", "progress_total", "updated_at"]
            )
    with _writing(ctx, document) as (row, _collection):
        row.vector_count = Embedding.objects.filter(chunk__document_id=row.pk, space=space).count()
        _advance(row, Stage.INDEX, began)
    return row


def _index(ctx: IngestContext, document: Document) -> Document:
    """Weigh the terms, count them in, reconcile the ledger, and end document and job together."""
    began = time.perf_counter()
    meter = _Meter(ctx, document)
    tokens: list[terms.ChunkTokens] = []
    chunks = Chunk.objects.filter(document=document).order_by("index")
    for chunk in chunks.iterator(chunk_size=500):
        tokens.append(terms.chunk_tokenise(chunk.pk, chunk_indexed_text(chunk)))
        meter(len(tokens), document.chunk_count)
    ledger = None
    with _writing(ctx, document, is_indexing=True) as (row, collection):
        terms.document_unindex(collection=collection, document_id=row.pk)
        row.lexical_count = terms.document_index(
            collection=collection, document_id=row.pk, chunks=tokens
        )
        ledger = ledger_count(row, collection.space_id)
        if ledger.is_balanced and row.chunk_count == ledger.chunks:
            _advance(row, Stage.INDEX, began)
            row.status, row.finished_at = DocumentStatus.READY, timezone.now()
            row.error_code = row.error_message = ""
            row.save()
            ctx.complete()
            return row
        # Kept: the next attempt starts where the rows are made, not where they were found wanting.
        terms.document_unindex(collection=collection, document_id=row.pk)
        _advance(row, Stage.CHUNK, began)
    raise DomainError(
        "ledger_mismatch",
        f"The counts of this document do not agree ({document.chunk_count} chunks made; found {ledger.chunks} "
        f"chunks, {ledger.vectors} vectors, {ledger.lexical} lexical rows), so it was not opened to search. "
        "Retry it: that makes its chunks anew.",
        status=500,
    )


_STAGES: Mapping[Stage, Callable[[IngestContext, Document], Document]] = {
    Stage.STORE: _store,
    Stage.PARSE: _parse,
    Stage.CHUNK: _chunk,
    Stage.EMBED: _embed,
    Stage.INDEX: _index,
}

"""Ingestion of one document: fetch, parse, chunk, summarise, embed, index.

Each stage ends with one transaction that writes its rows and moves ``Document.stage`` on (the embed stage commits batch
by batch and skips what has a vector). So a killed worker's successor continues at the stage the row names, and nothing
is doubled. Every such transaction first makes sure that this worker still holds the job.

A refusal (``DomainError``) ends the job and, in the same transaction, the document; see ``tasks`` of ``documents``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.collections.embedders.base import normalised
from apps.collections.index import terms
from apps.collections.index.billing import EmbeddingBill
from apps.collections.index.codes import code_kinds
from apps.collections.index.embedding import embedder_for
from apps.collections.index.large import indexes_consider
from apps.collections.index.postings import postings_note_late
from apps.collections.index.spaces import spaces_written, vectors_insert
from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.covers import cover_of
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.identifiers import fidelity_measure
from apps.collections.ingestion.sources.prepared import prepared_drafts, prepared_extracted
from apps.collections.ingestion.types import ExtractedDocument, ReaderLimits
from apps.collections.models import (
    Chunk,
    Collection,
    Document,
    DocumentStatus,
    Embedding,
    EmbeddingSpace,
    Page,
    Stage,
)
from apps.collections.pipeline.document_types import type_infer
from apps.collections.pipeline.lexical_rows import rows_index
from apps.collections.pipeline.prepared import came_vectors, came_vectors_insert, came_with_write, prepared_of
from apps.collections.pipeline.publish import code_follow, prune_later, version_go_live
from apps.collections.pipeline.scans import scans_hand_over, scans_note, scans_wait
from apps.collections.pipeline.stage import (
    IngestContext,
    Meter,
    collection_now,
    document_announce,
    stage_advance,
    stage_time,
    stage_writing,
)
from apps.collections.pipeline.summaries import summaries_make, summaries_write, summary_windows
from apps.collections.pipeline.summaries_model import SummaryPass, model_summarises, summary_warn
from apps.collections.storage.ledger import Ledger, ledger_count
from apps.collections.storage.rows import (
    chunk_embedded_text,
    chunks_write,
    extracted_load,
    page_parts,
    pages_write,
)
from basics.errors import DomainError
from basics.texts import gettext as _
from blobs.leases import file_digest, lease
from budgets.ledger import BillingAccount
from jobs.context import JobCancelled, JobYielded
from tenancy.actors import system_actor
from webhooks.models import Event
from webhooks.services import webhook_emit

# What is done between two commits takes a second or less, so that a slice ends in time and a killed worker loses little.
CHUNK_BATCH = 4_000
EMBED_BATCH = (
    128  # chunks at most; a slow embedder gets as many as it makes in EMBED_S, but not fewer than EMBED_FIRST
)
EMBED_FIRST = 16
EMBED_S = 1.0
_EMBEDDED_AGAIN = "embedded_again"  # in ``Document.metadata`` while it holds


def document_ingest(ctx: IngestContext, *, document_id: int) -> None:
    """Bring a document from the stage it is in to ``ready``.

    Raises:
        DomainError: it cannot become ready; code and message are for its owner.
        JobCancelled: it was deleted, or another job took it over.
    """
    document = _begin(ctx, document_id)
    while document.status == DocumentStatus.PROCESSING and document.job_id == ctx.job_id:
        ctx.check()
        began = time.perf_counter()
        try:
            document = _STAGES[Stage(document.stage)](ctx, document)
        except JobYielded:
            with stage_writing(ctx, document) as row:
                stage_time(row, began)
                row.save(update_fields=["timings", "updated_at"])
            raise
        if document.status == DocumentStatus.PROCESSING and document.job_id == ctx.job_id:
            ctx.give_way()


def _begin(ctx: IngestContext, document_id: int) -> Document:
    with transaction.atomic():
        ctx.hold()
        document: Document | None = (
            Document.objects.select_for_update(no_key=True).filter(pk=document_id, job_id=ctx.job_id).first()
        )
        if document is None:
            raise JobCancelled(f"document {document_id} is gone or has another job")
        if document.status == DocumentStatus.QUEUED:
            document.status = DocumentStatus.PROCESSING
            document.save(update_fields=["status", "updated_at"])
        document_announce(document)
    return document


def _fetch(ctx: IngestContext, document: Document) -> Document:
    """Check that the kept bytes are the uploaded ones."""
    began = time.perf_counter()
    with lease(document.file) as path:
        is_same = path.stat().st_size == document.size and file_digest(path) == document.sha256
    if not is_same:
        raise DomainError(
            "file_damaged",
            _(
                "The stored file isn't the one that was uploaded (its checksum differs). Delete this "
                "document and upload the file again."
            ),
        )
    with stage_writing(ctx, document) as row:
        stage_advance(row, Stage.PARSE, began)
    return row


def _parse(ctx: IngestContext, document: Document) -> Document:
    """Read the pages in the limited child process."""
    began = time.perf_counter()
    if scans_wait(document):  # tried again after its text was read
        return scans_hand_over(ctx, document, began)
    prepared = prepared_of(document)
    if prepared is not None:
        extracted = prepared_extracted(prepared)
    else:
        with lease(document.file) as path:
            extracted = document_extract(
                path,
                name=document.name,
                limits=reader_limits(),
                on_progress=Meter(ctx, document),
                on_tick=ctx.check,
            )
    *first, last = page_parts(extracted)
    if first:
        with stage_writing(ctx, document, is_kept=False) as row:
            Page.objects.filter(document=row).delete()
    for part in first:
        with stage_writing(ctx, document, is_kept=False) as row:
            pages_write(row, extracted, part)
    with stage_writing(ctx, document) as row:
        if not first:
            Page.objects.filter(document=row).delete()
        pages_write(row, extracted, last)
        row.media_type, row.title = extracted.media_type, extracted.title[:300]
        row.is_paged, row.warnings = extracted.is_paged, list(extracted.warnings)
        fetched = {key: row.metadata[key] for key in ("web",) if key in row.metadata}
        row.metadata = fetched | dict(extracted.metadata)
        row.page_count = len(extracted.pages)
        row.skipped_pages = sum(1 for page in extracted.pages if page.junk)
        type_infer(row, extracted)
        if extracted.is_scanned:
            stage_time(row, began)
            row.save()
        else:
            stage_advance(row, Stage.CHUNK, began)
    return scans_hand_over(ctx, row, began) if extracted.is_scanned else row


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
    prepared = prepared_of(document)
    if prepared is not None:
        drafts = prepared_drafts(prepared, extracted)
    else:
        drafts = chunk_document(
            extracted, size=collection.chunk_size, overlap=collection.chunk_overlap, path=document.path
        )
    drafts = scans_note(extracted, drafts)
    if not drafts:
        raise DomainError("no_chunks", _why_no_chunks(extracted), status=422)
    ctx.check()
    fidelity = fidelity_measure(extracted.body_text, (draft.indexed_text for draft in drafts))
    has_rows = terms.has_rows(document.pk)
    last = (len(drafts) - 1) // CHUNK_BATCH * CHUNK_BATCH
    if has_rows or last:
        with stage_writing(ctx, document, is_indexing=has_rows, is_kept=False) as row:
            if has_rows:
                terms.document_unindex(
                    collection=collection_now(row), document_id=row.pk, is_counted=row.is_live
                )
            _chunks_clear(row, len(drafts))
            row.save(update_fields=["chunk_count", "vector_count", "lexical_count", "updated_at"])
    meter = Meter(ctx, document)
    for start in range(0, last, CHUNK_BATCH):
        meter(start, len(drafts))
        with stage_writing(ctx, document, is_kept=False) as row:
            chunks_write(row, drafts[start : start + CHUNK_BATCH])
    with stage_writing(ctx, document) as row:
        if not (has_rows or last):
            _chunks_clear(row, len(drafts))
        chunks_write(row, drafts[last:])
        row.cover = cover_of(row, extracted)
        row.identifiers_total, row.identifiers_found = fidelity.total, fidelity.kept
        row.metadata = {**row.metadata, "identifiers_lost": list(fidelity.lost)}
        stage_advance(row, Stage.SUMMARISE, began)
    return row


def _chunks_clear(row: Document, count: int) -> None:
    """Begin with no chunks, whatever an earlier attempt has left; the caller saves the row."""
    Chunk.objects.filter(document=row).delete()
    row.chunk_count, row.vector_count, row.lexical_count = count, 0, 0


def _why_no_chunks(extracted: ExtractedDocument) -> str:
    skipped = sum(1 for page in extracted.pages if page.junk)
    return _(
        "Nothing in this document can be searched: of %(pages)s pages, %(skipped)s were left out as blank, "
        "contents or index pages, and the rest have no text."
    ) % {"pages": len(extracted.pages), "skipped": skipped}


def _summarise(ctx: IngestContext, document: Document) -> Document:
    """Give the chunks their key points and links: by rule, then, where the collection wants it, by a model.

    What the rules found stands before a model is asked, so that whatever becomes of the model there are links.
    """
    began = time.perf_counter()
    meter = Meter(ctx, document)
    collection = Collection.objects.select_related("tenant").get(pk=document.collection_id)
    is_by_model = model_summarises(collection)
    for chunks, known in summary_windows(document):
        made = summaries_make(chunks, known)
        ctx.check()
        done = chunks[-1].index + 1
        with stage_writing(ctx, document) as row:
            summaries_write(row, made)
            if done < document.chunk_count:
                row.progress_current, row.progress_total = done, document.chunk_count
                row.save(update_fields=["progress_current", "progress_total", "updated_at"])
            elif not is_by_model:
                came_with_write(row)
                stage_advance(row, Stage.EMBED, began)
                return row
        ctx.give_way()
    if not is_by_model:  # an earlier attempt has written the last points
        with stage_writing(ctx, document) as row:
            came_with_write(row)
            stage_advance(row, Stage.EMBED, began)
        return row
    summary = SummaryPass(
        collection=collection,
        actor=system_actor(document.tenant_id, document.uploaded_by_id),
        document_id=document.pk,
        writing=lambda: stage_writing(ctx, document),
        check=ctx.check,
        on_progress=meter,
        give_way=ctx.give_way,
    )
    problem = summary.run()
    with stage_writing(ctx, document) as row:
        summary_warn(row, problem)
        came_with_write(row)
        stage_advance(row, Stage.EMBED, began)
    return row


def _embed(ctx: IngestContext, document: Document) -> Document:
    """Embed the chunks that have no vector yet, a batch per commit, in each space that is written."""
    began = time.perf_counter()
    meter = Meter(ctx, document)
    collection = Collection.objects.select_related("space", "tenant").get(pk=document.collection_id)
    for space in spaces_written(collection):
        _embed_in(ctx, document, collection, space, meter)
    with stage_writing(ctx, document) as row:
        space_id = collection_now(row).space_id
        row.vector_count = Embedding.objects.filter(chunk__document_id=row.pk, space_id=space_id).count()
        stage_advance(row, Stage.INDEX, began)
    return row


def _embed_in(
    ctx: IngestContext, document: Document, collection: Collection, space: EmbeddingSpace, meter: Meter
) -> None:
    of_document = Chunk.objects.filter(document=document)
    came = came_vectors(document, space)
    if came is not None:
        with stage_writing(ctx, document, is_kept=False):
            came_vectors_insert(came, space, list(of_document.order_by("index")))
    embedder = embedder_for(space, tenant=collection.tenant)
    billing_account = BillingAccount(document.tenant_id, document.uploaded_by_id)
    vector = Embedding.objects.filter(chunk_id=OuterRef("pk"), space=space)
    waiting = of_document.filter(~Exists(vector)).order_by("index")
    total = of_document.count()
    done = total - waiting.count()
    size = min(EMBED_BATCH, EMBED_FIRST)
    while batch := list(waiting[:size]):
        before, asked = done, time.monotonic()

        def report(count: int, _: int, before: int = before) -> None:
            meter(before + count, total)

        texts = [chunk_embedded_text(chunk, document.cover) for chunk in batch]
        with EmbeddingBill(embedder, tenant=collection.tenant, billing_account=billing_account, texts=texts):
            vectors = embedder.embed_documents(texts, on_progress=report)
        vectors = normalised(vectors, space.dimensions, len(batch), str(space))
        took = max(time.monotonic() - asked, 0.001)
        size = max(min(EMBED_BATCH, EMBED_FIRST), min(EMBED_BATCH, int(len(batch) * EMBED_S / took)))
        with stage_writing(ctx, document) as row:
            vectors_insert(space, batch, vectors)
            done += len(batch)
            if space.pk == collection_now(row).space_id:
                row.vector_count = done
            row.progress_current, row.progress_total = done, total
            row.save(update_fields=["vector_count", "progress_current", "progress_total", "updated_at"])
        ctx.give_way()


def _index(ctx: IngestContext, document: Document) -> Document:
    """Weigh the terms, count them in, reconcile the ledger, and end document and job together."""
    began = time.perf_counter()
    collection = Collection.objects.get(pk=document.collection_id)
    tokens, form = rows_index(ctx, document, collection)
    earlier = terms.rows_found(collection=collection, document_id=document.pk)
    ctx.check()
    with stage_writing(ctx, document, is_indexing=True) as row:
        collection = collection_now(row)
        row.language, row.lexical_form = document.language, document.lexical_form
        spaces = spaces_written(collection)
        ledger = ledger_count(row, collection.space_id)
        others = [s for s in spaces if s.pk != collection.space_id]
        vectors = [ledger.vectors, *(ledger_count(row, s.pk).vectors for s in others)]
        lacking = any(count != ledger.chunks for count in vectors)
        if lacking and not row.metadata.get(_EMBEDDED_AGAIN):
            # A swap of the embedding model has begun since the embed stage looked for one.
            row.metadata = {**row.metadata, _EMBEDDED_AGAIN: True}
            stage_advance(row, Stage.EMBED, began)
            return row
        row.metadata.pop(_EMBEDDED_AGAIN, None)
        row.lexical_count = terms.document_index(
            collection=collection, document_id=row.pk, chunks=tokens, earlier=earlier
        )
        # The patterns may have changed since the rows were made: then the sweep has them made again.
        row.code_form = form if form == code_kinds(row.tenant_id).form else ""
        if earlier.chunks:
            postings_note_late(collection=collection, document_id=row.pk)
        ledger = ledger_count(row, collection.space_id)
        if ledger.is_balanced and row.chunk_count == ledger.chunks and not lacking:
            row.vector_count = ledger.vectors
            _open(row, collection, began)
            ctx.complete()
            return row
        # Kept: the next attempt starts where the rows are made, not where they were found wanting.
        terms.document_unindex(collection=collection, document_id=row.pk)
        stage_advance(row, Stage.CHUNK, began)
    raise _ledger_mismatch(document, ledger)


def _open(row: Document, collection: Collection, began: float) -> None:
    """Let a document answer from now on, in the caller's transaction."""
    stage_advance(row, Stage.INDEX, began)
    row.status, row.finished_at = DocumentStatus.READY, timezone.now()
    row.error_code = row.error_message = ""
    version_go_live(row, collection)
    row.save()
    code_follow(row, collection)
    prune_later(row, collection)
    indexes_consider(collection)
    if collection.owner_id is None:  # of a private file nobody else is told
        webhook_emit(
            tenant_id=row.tenant_id,
            event=Event.INGESTION_FINISHED,
            object_key=f"document:{row.pk}",
            data={"document": row.pk, "collection": row.collection_id, "chunks": row.chunk_count},
        )


def _ledger_mismatch(document: Document, ledger: Ledger) -> DomainError:
    return DomainError(
        "ledger_mismatch",
        _(
            "The counts of this document don't agree (%(chunk_count)s passages made; found "
            "%(chunks)s passages, %(vectors)s vectors, %(lexical)s lexical rows), so it isn't "
            "searchable. Retry it to build its passages again."
        )
        % {
            "chunk_count": document.chunk_count,
            "chunks": ledger.chunks,
            "vectors": ledger.vectors,
            "lexical": ledger.lexical,
        },
        status=500,
    )


_STAGES: Mapping[Stage, Callable[[IngestContext, Document], Document]] = {
    Stage.FETCH: _fetch,
    Stage.PARSE: _parse,
    Stage.CHUNK: _chunk,
    Stage.SUMMARISE: _summarise,
    Stage.EMBED: _embed,
    Stage.INDEX: _index,
}

"""Ingestion: resumable in every stage, never doubled, always ended with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.collections.display import selectors
from apps.collections.documents import services
from apps.collections.index import terms
from apps.collections.ingestion.lexical import tf_weights
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    DocumentStatus,
    Embedding,
    Page,
    Stage,
    TermFrequency,
)
from apps.collections.pipeline import run as pipeline
from apps.collections.pipeline import stage as pipeline_stage
from apps.collections.storage.rows import chunk_indexed_text
from jobs.models import Job, JobStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, WordEmbedder, attempt, ingest, job_of, make_due, upload
from tests.collections.ingestion.files import make_image_pdf, make_pdf

pytestmark = pytest.mark.django_db
LONG = LAMPS + b"\n\n".join(
    b"# Part %d\n\nSentence number %d about tariffs and lamps. " % (i, i) * 3 for i in range(40)
)


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def statistics(collection: Collection) -> tuple[Any, ...]:
    collection.refresh_from_db()
    return (
        collection.chunk_total,
        collection.term_total,
        sorted(TermFrequency.objects.filter(collection=collection).values_list("term", "chunks")),
    )


def counted_again(collection: Collection) -> tuple[Any, ...]:
    """Count the statistics from the texts themselves."""
    frequencies: dict[int, int] = {}
    tokens = [
        terms.chunk_tokenise(c.pk, chunk_indexed_text(c), cover=c.document.cover)
        for c in Chunk.objects.filter(collection=collection, document__status="ready")
    ]
    for chunk in tokens:
        for term in tf_weights(chunk.terms, 100):
            frequencies[term] = frequencies.get(term, 0) + 1
    return len(tokens), sum(len(c.terms) for c in tokens), sorted(frequencies.items())


def test_document_is_ready_and_its_ledger_agrees(cast: Cast, collection: Collection) -> None:
    document = ingest(cast, collection, "lamps.md", LONG)
    assert (document.status, document.stage, document.error_code) == ("ready", "index", "")
    ledger = selectors.document_ledger(actor=cast.actor("viewer"), document=document)
    assert ledger.agrees
    assert ledger.found.chunks == document.chunk_count > 5
    assert document.identifiers_found == document.identifiers_total > 2
    assert set(document.timings) == set(Stage.values)
    assert job_of(document).status == JobStatus.SUCCEEDED
    assert statistics(collection) == counted_again(collection)


def test_chunks_are_slices_of_the_pages(cast: Cast, collection: Collection, tmp_path: Path) -> None:
    pdf = make_pdf(
        tmp_path / "a.pdf",
        [[f"Page {n} speaks of duty rates and codes like 85{n}9.50.00."] * 8 for n in range(1, 5)],
    )
    document = ingest(cast, collection, "a.pdf", pdf.read_bytes())
    assert (document.status, document.page_count) == ("ready", 4)
    pages = list(Page.objects.filter(document=document).order_by("number"))
    text = "".join(page.text for page in pages)
    for page in pages:
        assert text[page.char_start :].startswith(page.text)
    for chunk in Chunk.objects.filter(document=document):
        assert text[chunk.char_start : chunk.char_end] == chunk.text
        assert chunk.page_start is not None
        assert pages[chunk.page_start - 1].char_start <= chunk.char_start


@pytest.mark.parametrize("failing", list(pipeline._STAGES), ids=str)
@pytest.mark.parametrize("where", ["before", "inside", "after"])
def test_nothing_is_doubled_when_a_worker_dies_in_a_stage(
    cast: Cast,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
    embedder: WordEmbedder,
    failing: Stage,
    where: str,
) -> None:
    """Die at the start of a stage, in its last transaction, or just after it was committed; then go on."""
    monkeypatch.setattr(pipeline, "EMBED_BATCH", 3)
    document = upload(cast, collection, "lamps.md", LONG)
    real, real_advance = pipeline._STAGES[failing], pipeline_stage.stage_advance
    deaths: list[int] = []

    def dying(ctx: Any, row: Document) -> Document:
        if where == "before" and not deaths:
            deaths.append(1)
            raise RuntimeError("killed")
        result = real(ctx, row)
        if where == "after" and not deaths and failing != Stage.INDEX:
            deaths.append(1)
            raise RuntimeError("killed")
        return result

    def dying_inside(row: Document, stage: Stage, began: float) -> None:
        running = row.stage
        real_advance(row, stage, began)
        if where == "inside" and running == failing and not deaths:
            deaths.append(1)
            raise RuntimeError("killed")

    monkeypatch.setattr(pipeline, "_STAGES", {**pipeline._STAGES, failing: dying})
    monkeypatch.setattr(pipeline, "stage_advance", dying_inside)
    first = attempt(document)
    if not (where == "after" and failing == Stage.INDEX):
        assert deaths
        assert first.status == DocumentStatus.PROCESSING
        assert job_of(document).status == JobStatus.QUEUED
        make_due(document)
        attempt(document)
    assert document.status == "ready"
    assert selectors.document_ledger(actor=cast.actor("member"), document=document).agrees
    indexes = list(Chunk.objects.filter(document=document).order_by("index").values_list("index", flat=True))
    assert indexes == list(range(document.chunk_count))
    assert statistics(collection) == counted_again(collection)


def test_vectors_that_exist_are_kept_when_embedding_is_resumed(
    cast: Cast, collection: Collection, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "EMBED_BATCH", 3)
    seen: list[str] = []

    def third_call_fails(texts: Any) -> None:
        if len(seen) == 6:
            embedder.on_texts = seen.extend
            raise RuntimeError("killed")
        seen.extend(texts)

    embedder.on_texts = third_call_fails
    document = upload(cast, collection, "lamps.md", LONG)
    attempt(document)
    assert (document.stage, document.vector_count) == ("embed", 6)
    make_due(document)
    attempt(document)
    assert document.status == "ready"
    assert len(seen) == len(set(seen)) == document.chunk_count, "no text is embedded twice"


def test_document_fails_with_its_job_when_attempts_are_used_up(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(ctx: Any, row: Document) -> Document:
        raise RuntimeError("always")

    monkeypatch.setattr(pipeline, "_STAGES", {**pipeline._STAGES, Stage.CHUNK: broken})
    document = upload(cast, collection, "lamps.md", LAMPS)
    for _ in range(3):
        attempt(document)
        make_due(document)
    assert (document.status, document.stage) == ("failed", "chunk")
    assert document.error_code == "internal_error"
    assert document.error_message
    assert document.finished_at is not None


def test_retry_goes_on_from_the_failed_stage(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.collections.embedders.base import EmbeddingError

    def refuse(space: Any, *, tenant: Any) -> Any:
        raise EmbeddingError("embedder_misconfigured", "There is no key.")

    document = upload(cast, collection, "lamps.md", LAMPS)
    with monkeypatch.context() as broken:
        broken.setattr(pipeline, "embedder_for", refuse)
        attempt(document)
    assert (document.status, document.stage, document.error_code) == (
        "failed",
        "embed",
        "embedder_misconfigured",
    )
    chunks = set(Chunk.objects.filter(document=document).values_list("pk", flat=True))
    monkeypatch.setattr(pipeline, "document_extract", None)  # reading again would break
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    attempt(document)
    assert document.status == "ready"
    assert set(Chunk.objects.filter(document=document).values_list("pk", flat=True)) == chunks


BAD: dict[str, tuple[str, bytes, str]] = {
    "0 bytes": ("empty.pdf", b"", "empty_file"),
    "blank": ("blank.txt", b"  \n \n", "empty_file"),
    "corrupt": ("broken.pdf", b"%PDF-1.7\n" + b"\x00\xff" * 500, "corrupt_file"),
    "truncated docx": ("cut.docx", b"PK\x03\x04" + b"\x00" * 60, "corrupt_file"),
    "image": ("photo.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "corrupt_file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_document_fails_with_a_reason_when_the_file_is_bad(
    cast: Cast, collection: Collection, kind: str
) -> None:
    name, data, code = BAD[kind]
    document = ingest(cast, collection, name, data)
    assert (document.status, document.error_code) == ("failed", code)
    assert len(document.error_message) > 20
    assert job_of(document).status == JobStatus.FAILED


def test_document_fails_with_a_reason_when_it_is_a_scan(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    document = ingest(
        cast, collection, "scan.pdf", make_image_pdf(tmp_path / "scan.pdf", pages=1).read_bytes()
    )
    document = attempt(document)  # its pictures were looked at, too
    assert (document.status, document.error_code) == ("failed", "no_text")
    assert "found no text" in document.error_message


def test_document_fails_with_a_reason_when_it_is_encrypted(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    pdf = make_pdf(tmp_path / "secret.pdf", [["Nobody may read this."]], encrypt="password")
    document = ingest(cast, collection, "secret.pdf", pdf.read_bytes())
    assert (document.status, document.error_code) == ("failed", "encrypted_pdf")


def test_misnamed_file_is_read_as_what_it_is(cast: Cast, collection: Collection, tmp_path: Path) -> None:
    pdf = make_pdf(
        tmp_path / "a.pdf", [["This is a page about the duty on lamps, in a file called text."] * 4]
    )
    document = ingest(cast, collection, "notes.txt", pdf.read_bytes())
    assert (document.status, document.media_type) == ("ready", "application/pdf")
    assert document.warnings


def test_document_fails_when_nothing_can_be_chunked(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "chunk_document", lambda *args, **kwargs: [])
    document = ingest(cast, collection, "lamps.md", LAMPS)
    assert (document.status, document.error_code) == ("failed", "no_chunks")
    assert "Nothing in this document can be searched" in document.error_message


def test_document_fails_when_the_stored_file_was_changed(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    (storage / document.file).write_bytes(LAMPS[:-1] + b"X")
    attempt(document)
    assert (document.status, document.error_code) == ("failed", "file_damaged")


def test_document_fails_when_the_stored_file_is_gone(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    (storage / document.file).unlink()
    attempt(document)
    assert (document.status, document.error_code) == ("failed", "file_missing")


def test_document_is_not_opened_to_search_when_a_vector_is_missing(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pipeline._STAGES[Stage.INDEX]

    def loses_one(ctx: Any, row: Document) -> Document:
        Embedding.objects.filter(chunk__document=row)[0].delete()
        return real(ctx, row)

    document = upload(cast, collection, "lamps.md", LONG)
    with monkeypatch.context() as once:
        once.setattr(pipeline, "_STAGES", {**pipeline._STAGES, Stage.INDEX: loses_one})
        attempt(document)
    assert (document.status, document.error_code) == ("failed", "ledger_mismatch")
    assert not ChunkTerms.objects.exists()
    assert statistics(collection) == (0, 0, [])
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    attempt(document)
    assert document.status == "ready"
    assert statistics(collection) == counted_again(collection)


def test_work_stops_when_the_document_is_deleted_meanwhile(
    cast: Cast, collection: Collection, embedder: WordEmbedder
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    job_id = job_of(document).pk

    def delete(texts: Any) -> None:
        services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)

    embedder.on_texts = delete
    with pytest.raises(Document.DoesNotExist):
        attempt(document)
    assert Job.objects.get(pk=job_id).status == JobStatus.CANCELLED
    for model in (Document, Page, Chunk, Embedding, ChunkTerms, TermFrequency):
        assert not model.objects.exists(), model


def test_document_is_cancelled_with_its_waiting_job(cast: Cast, collection: Collection) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    row = services.document_cancel(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert row.status == "cancelled"
    assert job_of(document).status == JobStatus.CANCELLED
    services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert attempt(document).status == "ready"


def test_average_length_follows_the_collection_and_weights_with_it(
    cast: Cast, collection: Collection
) -> None:
    """Weights rewritten for a new average are what they would be if computed anew."""
    ingest(cast, collection, "short.txt", b"Lamps are dutiable. Lamps shine.")
    ingest(cast, collection, "lamps.md", LONG)
    collection.refresh_from_db()
    assert collection.average_length == pytest.approx(
        collection.term_total / collection.chunk_total, rel=terms.DRIFT
    )
    for row in ChunkTerms.objects.select_related("chunk").filter(collection=collection):
        tokens = terms.chunk_tokenise(
            row.chunk_id, chunk_indexed_text(row.chunk), cover=row.chunk.document.cover
        ).terms
        expected = tf_weights(tokens, collection.average_length)
        assert dict(zip(row.weights.indices(), row.weights.values(), strict=True)) == pytest.approx(
            expected, rel=1e-4
        )

"""What must be true of a document, its job and its collection, whatever was killed on the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    DocumentStatus,
    Embedding,
    Page,
    TermFrequency,
)
from apps.collections.storage.ledger import ledger_agrees, ledger_count
from apps.collections.storage.rows import extracted_load
from jobs.models import ACTIVE, Job, JobStatus
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tests.servers import wait_for

ENDED = {DocumentStatus.READY, DocumentStatus.FAILED, DocumentStatus.CANCELLED}


def document_now(tenant: Tenant, pk: int) -> Document:
    """Return the row as it is now, with its job."""
    with tenant_scope(tenant.pk):
        row: Document = Document.objects.select_related("job").get(pk=pk)
        return row


def wait_ended(tenant: Tenant, pks: list[int]) -> list[Document]:
    """Wait until the documents have ended, one way or the other; when none goes on any more, the test fails and names them."""

    def hanging() -> dict[str, Any]:
        with tenant_scope(tenant.pk):
            rows = Document.objects.filter(pk__in=pks).exclude(status__in=ENDED)
            return {d.name: (d.status, d.stage) for d in rows}

    try:
        while left := hanging():
            wait_for(lambda before=left: hanging() != before, "a document to go on")  # type: ignore[misc]
    except AssertionError as error:
        raise AssertionError(f"{error}: {hanging()}") from None
    return [document_now(tenant, pk) for pk in pks]


def assert_nothing_runs(tenant: Tenant) -> None:
    """No job waits or runs, and each ended job's document has ended with it."""
    with tenant_scope(tenant.pk):
        jobs = Job.objects.filter(status__in=ACTIVE)
        wait_for(lambda: not jobs.exists(), "the jobs to end")  # a title may follow an answer
        for document in Document.objects.select_related("job"):
            assert document.status in ENDED
            assert document.job is None or document.job.status not in ACTIVE


def assert_ready_and_reconciled(tenant: Tenant, pk: int) -> None:
    """The document is ready; row, tables and a fresh computation agree; nothing is there twice."""
    document = document_now(tenant, pk)
    told = (document.status, document.error_code, document.error_message)
    assert told == ("ready", "", ""), told
    assert document.job is not None
    assert document.job.status == JobStatus.SUCCEEDED
    with tenant_scope(tenant.pk):
        collection = Collection.objects.get(pk=document.collection_id)
        found = ledger_count(document, collection.space_id)
        assert ledger_agrees(document, found), found
        assert found.is_balanced, found
        numbers = list(
            Page.objects.filter(document=document).order_by("number").values_list("number", flat=True)
        )
        assert numbers == list(range(1, document.page_count + 1))
        drafts = chunk_document(
            extracted_load(document), size=collection.chunk_size, overlap=collection.chunk_overlap
        )
        stored = Chunk.objects.filter(document=document).order_by("index")
        assert list(stored.values_list("index", "text")) == [(d.index, d.text) for d in drafts]
        assert [d.index for d in drafts] == list(range(len(drafts)))
        vectors = Embedding.objects.filter(document_id=pk)
        assert vectors.count() == document.chunk_count, "a chunk has two vectors, or one is left over"


def assert_statistics_exact(tenant: Tenant, collection: Collection) -> None:
    """The collection's counts are what a recount of its rows gives."""
    with tenant_scope(tenant.pk):
        collection.refresh_from_db()
        rows = list(ChunkTerms.objects.filter(collection=collection).select_related("chunk"))
        assert collection.chunk_total == len(rows)
        assert collection.term_total == sum(row.length for row in rows)
        recount = Counter(term for row in rows for term in row.weights.indices())
        kept = dict(TermFrequency.objects.filter(collection=collection).values_list("term", "chunks"))
        assert kept == dict(recount)
        ready = Document.objects.filter(collection=collection, status=DocumentStatus.READY)
        assert {row.chunk.document_id for row in rows} <= set(ready.values_list("pk", flat=True))

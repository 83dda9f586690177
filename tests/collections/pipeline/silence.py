"""What must hold after any accident: nothing hangs, nothing is left over, what is gone answers no more."""

from __future__ import annotations

import re

from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents import services
from apps.collections.models import (
    Chunk,
    ChunkLink,
    ChunkTerms,
    CodeEdge,
    Collection,
    Document,
    Embedding,
    Page,
    TermFrequency,
)
from apps.collections.search import LEGS, search_run
from jobs.models import ACTIVE, Job
from tests.cast import Cast

# What tells a person nothing: our classes, our paths, our crashes.
TECHNICAL = re.compile(r"Traceback|Exception|Error\b|\bNone\b|0x[0-9a-f]{6}|/tmp|site-packages")


def assert_says_why(document: Document) -> None:
    """A document that has failed tells its owner why, in a sentence."""
    assert document.error_code, document
    assert document.finished_at is not None
    said = document.error_message
    assert len(said) > 25, said
    assert said.endswith("."), said


def assert_nothing_is_wrong(cast: Cast) -> None:
    """Rows, counts and files agree (files younger than an hour aside), and no job will run for ever."""
    found = ingestion_check(tenant=cast.tenant, actor=cast.actor("owner"))
    assert found.findings == []
    for job in Job.objects.filter(kind="collections.document_ingest", status__in=ACTIVE):
        raise AssertionError(f"job {job.pk} is still {job.status}")


def assert_gone_when_deleted(cast: Cast, document: Document, words: str) -> None:
    """Delete a document; no table holds anything of it, and no leg of a search finds it."""
    owner = cast.actor("owner")
    collection = Collection.objects.get(pk=document.collection_id)
    path, pk = document.path, document.pk
    versions = list(Document.objects.filter(collection=collection, path=path).values_list("pk", flat=True))
    services.document_delete(tenant=cast.tenant, actor=owner, document=document)
    for model in (Page, Chunk, Embedding, ChunkTerms, ChunkLink, CodeEdge):
        assert not model.objects.filter(document_id__in=versions).exists(), model.__name__
    assert not Document.objects.filter(collection=collection, path=path).exists()
    for leg in LEGS:
        found = search_run(
            tenant=cast.tenant, actor=owner, collections=[collection], query=words, k=50, legs=[leg]
        )
        assert pk not in {hit.document_id for hit in found.hits}, leg
    if not Document.objects.filter(collection=collection, status="ready").exists():
        collection.refresh_from_db()
        assert (collection.chunk_total, collection.term_total) == (0, 0)
        assert not TermFrequency.objects.filter(collection=collection).exists()
    assert_nothing_is_wrong(cast)

"""Chunks changed by hand: found by the new text and not by the old, statistics exact, every change to be undone."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from django.db import connections

from apps.collections.chunks import services
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.embedders.base import EmbeddingError
from apps.collections.index import postings
from apps.collections.models import (
    Chunk,
    ChunkRevision,
    ChunkTerms,
    Collection,
    Document,
    Embedding,
    SearchIndex,
    TermFrequency,
)
from apps.collections.search import LEGS, search_run
from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.actors import system_actor
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, WordEmbedder, ingest

pytestmark = pytest.mark.django_db
NEW = "Bicycles with seven gears stand in heading 8712.00.15 and pay eleven percent."


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def lamps(cast: Cast, collection: Collection) -> Document:
    return ingest(cast, collection, "lamps.md", LAMPS)


@pytest.fixture
def chunk(lamps: Document) -> Chunk:
    found: Chunk = Chunk.objects.get(document=lamps, text__contains="8539.50.00")
    return found


def edit(cast: Cast, chunk: Chunk, text: str = NEW, role: str = "member", **extra: Any) -> Chunk:
    return services.chunk_edit(tenant=cast.tenant, actor=cast.actor(role), chunk=chunk, text=text, **extra)


def hits(cast: Cast, query: str, *legs: str) -> set[int]:
    found = search_run(
        tenant=cast.tenant, actor=cast.actor("viewer"), collections=None, query=query, legs=legs or LEGS
    )
    return {hit.chunk_id for hit in found.hits}


def state() -> tuple[Any, ...]:
    """Return all that search knows."""
    vectors = {(e.chunk_id, e.space_id): str(e.vector) for e in Embedding.objects.all()}
    words = {t.chunk_id: (t.length, str(t.weights), str(t.lexemes)) for t in ChunkTerms.objects.all()}
    frequencies = dict(TermFrequency.objects.values_list("term", "chunks"))
    totals = list(Collection.objects.values_list("chunk_total", "term_total", "average_length"))
    texts = list(Chunk.objects.order_by("pk").values_list("text", "is_edited", "is_disabled", "key_points"))
    return vectors, words, frequencies, totals, texts


def assert_sound(cast: Cast) -> None:
    check = ingestion_check(tenant=cast.tenant, actor=system_actor(cast.tenant.pk))
    assert [(f.code, f.detail) for f in check.findings] == []


def test_edited_chunk_is_found_by_its_new_text_and_not_by_its_old(cast: Cast, chunk: Chunk) -> None:
    assert chunk.pk in hits(cast, "LED lamps", "lexical")
    assert hits(cast, "8539.50.00", "exact") == {chunk.pk}
    edited = edit(cast, chunk, note="typo")
    assert (edited.text, edited.is_edited) == (NEW, True)
    assert hits(cast, "bicycles gears", "lexical") == {chunk.pk}
    assert hits(cast, "8712.00.15", "exact") == {chunk.pk}
    assert hits(cast, "8539.50.00", "exact") == set()
    assert hits(cast, "INV-100234 invoice", "lexical") == set()
    first = search_run(
        tenant=cast.tenant, actor=cast.actor("viewer"), collections=None, query=NEW, legs=("vector",)
    ).hits[0]
    assert (first.chunk_id, first.text) == (chunk.pk, NEW)
    assert first.distance is not None
    assert first.distance < 0.2
    assert_sound(cast)
    assert any("8712.00.15" in point for point in edited.key_points)
    revision = ChunkRevision.objects.get()
    assert (revision.before["text"], revision.after["text"]) == (chunk.text, NEW)
    assert (revision.user_id, revision.note) == (cast.member.user_id, "typo")
    assert AuditEvent.objects.filter(action="chunk.edit", object_id=str(chunk.pk)).exists()


def test_everything_is_as_before_when_a_change_is_taken_back(cast: Cast, chunk: Chunk) -> None:
    before = state()
    edit(cast, chunk)
    edit(cast, chunk, "Something else entirely about trumpets.")
    first = ChunkRevision.objects.order_by("pk")[0]
    back = services.chunk_restore(tenant=cast.tenant, actor=cast.actor("member"), revision=first)
    assert (back.text, back.is_edited) == (chunk.text, False)
    assert state() == before
    assert ChunkRevision.objects.count() == 3
    assert_sound(cast)


def test_nothing_changes_when_the_embedder_is_down(cast: Cast, chunk: Chunk, embedder: WordEmbedder) -> None:
    before = state()

    def down(_: Any) -> None:
        raise EmbeddingError("embedder_unavailable", "The embedding server does not answer.")

    embedder.on_texts = down
    with pytest.raises(EmbeddingError, match="does not answer"):
        edit(cast, chunk)
    embedder.on_texts = None
    assert state() == before
    assert not ChunkRevision.objects.exists()


def test_disabled_chunk_is_in_no_leg_until_it_is_enabled(
    cast: Cast, chunk: Chunk, embedder: WordEmbedder
) -> None:
    embedder.on_texts = lambda texts: pytest.fail("nothing is to be embedded") if len(texts) > 1 else None
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "chunk": chunk}
    services.chunk_disable(**common)
    for leg in LEGS:
        assert chunk.pk not in hits(cast, "LED lamps 8539.50.00", leg)
    services.chunk_disable(**common)
    assert ChunkRevision.objects.count() == 1, "a change that changes nothing is none"
    services.chunk_disable(**common, is_disabled=False)
    for leg in LEGS:
        assert chunk.pk in hits(cast, "LED lamps 8539.50.00", leg)
    assert_sound(cast)


@pytest.mark.parametrize("text", ["", " \n ", "x\x00y", "x" * 8001])
def test_text_is_refused_when_it_cannot_be_searched(cast: Cast, chunk: Chunk, text: str) -> None:
    with pytest.raises(Invalid):
        edit(cast, chunk, text)


def test_change_is_refused_to_those_who_may_not(cast: Cast, chunk: Chunk, lamps: Document) -> None:
    with pytest.raises(Denied):
        edit(cast, chunk, role="viewer")
    with pytest.raises(Missing):
        edit(cast, chunk, role="outsider")
    Document.objects.filter(pk=lamps.pk).update(is_restricted=True)
    with pytest.raises(Missing):
        edit(cast, chunk)


def test_earlier_version_stays_as_it_was(cast: Cast, collection: Collection, chunk: Chunk) -> None:
    ingest(cast, collection, "lamps.md", LAMPS + b"\n\nOne more sentence.\n")
    with pytest.raises(Conflict) as refused:
        edit(cast, chunk)
    assert refused.value.code == "document_retired"


def test_table_is_searched_by_what_was_written_when_it_is_edited(cast: Cast, chunk: Chunk) -> None:
    Chunk.objects.filter(pk=chunk.pk).update(metadata={"table_rows": "| zeppelin | airship |"})
    edit(cast, chunk)
    assert hits(cast, "zeppelin airship", "lexical") == set()
    assert hits(cast, "bicycles", "lexical") == {chunk.pk}


def test_postings_follow_when_a_chunk_of_a_large_collection_is_edited(
    cast: Cast, collection: Collection, chunk: Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.collections.search import indexed

    row = SearchIndex.objects.create(
        tenant=cast.tenant,
        collection=collection,
        kind=SearchIndex.Kind.POSTINGS,
        last_chunk=10**9,
        chunk_count=3,
    )
    postings.postings_build(row, lambda: None)
    edit(cast, chunk)  # while the index is still being built, and has read the old text
    SearchIndex.objects.filter(pk=row.pk).update(status="ready")
    monkeypatch.setattr(indexed, "POSTINGS_MIN", 1)
    monkeypatch.setattr(indexed, "HNSW_MIN", 10**9)
    assert hits(cast, "bicycles gears", "lexical") == {chunk.pk}
    assert chunk.pk not in hits(cast, "INV-100234 invoice", "lexical")
    services.chunk_restore(
        tenant=cast.tenant, actor=cast.actor("member"), revision=ChunkRevision.objects.get()
    )
    assert hits(cast, "INV-100234 invoice", "lexical") == {chunk.pk}
    row.refresh_from_db()
    assert row.edited == [chunk.pk]


@pytest.mark.django_db(transaction=True)
def test_history_is_a_chain_when_two_edit_at_once(cast: Cast, chunk: Chunk) -> None:
    errors: list[BaseException] = []

    def write(text: str) -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                edit(cast, chunk, text)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(f"Text number {n} of many.",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    history = list(ChunkRevision.objects.order_by("pk"))
    assert len(history) == 4
    for one, then in itertools.pairwise(history):
        assert one.after == then.before
    assert Chunk.objects.get(pk=chunk.pk).text == history[-1].after["text"]
    assert_sound(cast)

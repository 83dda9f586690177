"""Indexes of large collections: the same passages as a scan, new documents at once, nothing that was deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.collections.collection import services as collection_services
from apps.collections.collection import swaps
from apps.collections.documents import services as documents_services
from apps.collections.index import large as indexes
from apps.collections.index import terms
from apps.collections.index.graphs import SCHEMA, graph_table
from apps.collections.index.spaces import vectors_insert
from apps.collections.ingestion.lexical import form_of
from apps.collections.models import (
    Chunk,
    Collection,
    Document,
    DocumentStatus,
    EmbeddingSpace,
    Posting,
    SearchIndex,
    SpaceSwap,
)
from apps.collections.search import SearchResult, search_run
from apps.collections.search import indexed as search_indexed
from apps.collections.storage.rows import chunk_indexed_text
from jobs.context import JobContext
from jobs.models import Job
from jobs.runner import run_here
from tenancy.database import prepared
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import WordEmbedder, ingest
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
SUBJECTS = ("lamps", "tubes", "pumps", "wines", "shoes", "clocks", "spoons", "ropes")


@pytest.fixture(autouse=True)
def scope(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (indexes, search_indexed):
        monkeypatch.setattr(module, "HNSW_MIN", 10)
        monkeypatch.setattr(module, "POSTINGS_MIN", 10)
    monkeypatch.setattr(search_indexed, "_FILTERED_SCAN", 1)
    with tenant_scope(cast.tenant.pk):
        yield
    with as_login_role(), connection.cursor() as cursor:
        for name in graphs():  # emptying the tables leaves them
            cursor.execute(f"DROP TABLE {SCHEMA}.{name}")


def parts(number: int) -> list[tuple[str, str]]:
    """Return headings and texts of a document's four passages."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    laid_down = "It is so laid down. " * 8
    return [
        (
            f"{subject.title()} {i}",
            f"The tariff on {subject} of kind k{number}x{i} is {i} percent. {laid_down}",
        )
        for i in range(4)
    ]


def text(number: int) -> bytes:
    return "\n\n".join(f"# {heading}\n\n{words}" for heading, words in parts(number)).encode()


@pytest.fixture
def filled(cast: Cast, collection: Collection) -> Collection:
    """Eight documents, stored as ingestion leaves them to be searched: to ingest them takes seven times as long."""
    with transaction.atomic():
        for number in range(8):
            store(cast, collection, number)
        indexes.indexes_consider(collection)
    return collection


def store(cast: Cast, collection: Collection, number: int) -> None:
    document = Document.objects.create(
        tenant=cast.tenant,
        collection=collection,
        name=f"d{number}.md",
        path=f"d{number}.md",
        media_type="text/markdown",
        size=1,
        sha256=f"{number:064}",
        file=f"d{number}",
        status=DocumentStatus.READY,
        live_from=timezone.now(),
        chunk_count=4,
        lexical_form=form_of("english"),
    )
    chunks = Chunk.objects.bulk_create(
        Chunk(
            tenant=cast.tenant,
            collection=collection,
            document=document,
            index=index,
            headings=[heading],
            text=words,
            char_start=0,
            char_end=len(words),
        )
        for index, (heading, words) in enumerate(parts(number))
    )
    texts = [chunk_indexed_text(chunk) for chunk in chunks]
    vectors_insert(collection.space, chunks, WordEmbedder().embed_documents(texts))
    tokens = [terms.chunk_tokenise(chunk.pk, words) for chunk, words in zip(chunks, texts, strict=True)]
    terms.document_index(collection=collection, document_id=document.pk, chunks=tokens)


def build(collection: Collection) -> None:
    """Run the building job that ingestion has enqueued, as a worker does."""
    job = Job.objects.filter(kind=indexes.BUILD_KIND, status="queued").latest("pk")
    indexes.indexes_build(JobContext(job), collection_id=collection.pk)
    Job.objects.filter(pk=job.pk).update(status="succeeded")


def ask(cast: Cast, collection: Collection, query: str, **extra: Any) -> SearchResult:
    collection = Collection.objects.select_related("space").get(pk=collection.pk)
    return search_run(
        tenant=cast.tenant, actor=cast.actor("viewer"), collections=[collection], query=query, **extra
    )


def found(result: SearchResult) -> list[tuple[int, int | None, int | None]]:
    return [(hit.chunk_id, hit.vector_rank, hit.lexical_rank) for hit in result.hits]


def graphs() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA])
        return [row[0] for row in cursor.fetchall()]


QUERIES = [f"tariff on {subject}" for subject in SUBJECTS] + ["kind k3x2 percent", "laid down"]


def test_indexed_search_finds_what_a_scan_finds(cast: Cast, filled: Collection) -> None:
    scanned = {query: found(ask(cast, filled, query)) for query in QUERIES}
    build(filled)
    for query in QUERIES:
        result = ask(cast, filled, query, trace=True)
        assert result.trace is not None
        assert result.trace.legs["vector"]["index"] == "hnsw"
        assert result.trace.legs["lexical"]["index"] == "postings"
        assert found(result) == scanned[query]


@contextmanager
def graph_preferred(cast: Cast, filled: Collection) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Build the graph, and let Postgres prefer it over a scan of its few rows; yields cursor, statement and parameters."""
    build(filled)
    from apps.collections.search.statement import search_sql, statement_of
    from apps.collections.search.types import Graph, QueryVector

    row = SearchIndex.objects.get(kind="graph")
    zero = "[" + ",".join(["0.1"] * filled.space.dimensions) + "]"
    vector = QueryVector(
        filled.space_id, 384, zero, [], [Graph(filled.pk, graph_table(filled.pk, row.pk), row.last_chunk)]
    )
    sql = search_sql(
        actor=cast.actor("viewer"),
        scope=[filled.pk],
        vectors=[vector],
        terms=[],
        postings=[],
        lexemes=[],
        conditions=[],
        as_of=None,
        limit=10,
    )
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET enable_bitmapscan = off")
        cursor.execute("SET enable_sort = off")
        yield cursor, statement_of(sql), sql.parameters
        cursor.execute("RESET enable_seqscan")
        cursor.execute("RESET enable_bitmapscan")
        cursor.execute("RESET enable_sort")


def test_graph_is_used_by_the_plan(cast: Cast, filled: Collection) -> None:
    with graph_preferred(cast, filled) as (cursor, statement, parameters):
        cursor.execute("EXPLAIN " + statement, parameters)
        plan = "\n".join(line[0] for line in cursor.fetchall())
    assert graphs()[0] in plan, plan


def test_settings_of_the_graph_travel_with_the_ranking_and_end_with_it(
    cast: Cast, filled: Collection
) -> None:
    """They are part of its message, and what else the connection asks is planned as ever."""
    once = "SET LOCAL plan_cache_mode = 'force_generic_plan'"

    def ranking() -> str:
        with CaptureQueriesContext(connection) as asked:
            assert ask(cast, filled, "tariff on lamps").hits
        (found,) = [one["sql"] for one in asked.captured_queries if "fused AS" in one["sql"]]
        return str(found)

    assert once not in ranking()  # it scans: how is decided by the values
    build(filled)
    indexed = ranking()
    assert "SET LOCAL enable_sort = 'off'" in indexed
    assert once in indexed
    assert "FROM collections_embedding e" not in indexed  # nothing is behind the indexes
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_sort'), current_setting('plan_cache_mode')")
        assert cursor.fetchone() == ("on", "auto")
    ingest(cast, filled, "new.md", b"# Kites\n\nThe tariff on kites is nothing.\n")
    assert "FROM collections_embedding e" in ranking()


def test_graph_is_used_by_a_plan_that_holds_for_every_question(cast: Cast, filled: Collection) -> None:
    with graph_preferred(cast, filled) as (cursor, statement, parameters):
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        found = []
        for _ in range(prepared.LITERAL_TIMES + 1):
            cursor.execute(statement, parameters)
            found.append(cursor.fetchall())
        call = connection.connection.prepared.call(statement, parameters, "groundwork_rw")
        cursor.execute("EXPLAIN " + call.decode())
        plan = "\n".join(line[0] for line in cursor.fetchall())
        cursor.execute("RESET plan_cache_mode")
    assert "$1" in plan  # the plan of a prepared statement
    assert graphs()[0] in plan, plan
    assert found[0]
    assert found[-1] == found[0]


def test_document_that_comes_later_is_found_at_once(cast: Cast, filled: Collection) -> None:
    build(filled)
    ingest(cast, filled, "new.md", b"# Kites\n\nThe tariff on kites is nothing.\n")
    for leg in ("vector", "lexical"):
        names = [hit.document_name for hit in ask(cast, filled, "tariff on kites", legs=(leg,)).hits]
        assert names[0] == "new.md"


def test_deleted_and_restricted_documents_are_not_found_through_an_index(
    cast: Cast, filled: Collection
) -> None:
    build(filled)
    gone, secret = Document.objects.filter(name__in=["d0.md", "d1.md"]).order_by("name")
    documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=gone)
    Document.objects.filter(pk=secret.pk).update(is_restricted=True)
    for leg in ("vector", "lexical"):
        for query in QUERIES:
            names = {hit.document_name for hit in ask(cast, filled, query, legs=(leg,)).hits}
            assert len(names) > 0
            assert not names & {"d0.md", "d1.md"}


def test_filter_is_obeyed_through_an_index(cast: Cast, filled: Collection) -> None:
    build(filled)
    for leg in ("vector", "lexical"):
        result = ask(cast, filled, "tariff", filters={"name": {"in": ["d2.md", "d5.md"]}}, legs=(leg,))
        assert {hit.document_name for hit in result.hits} == {"d2.md", "d5.md"}
        assert len(result.hits) == 8


def test_grown_tail_is_taken_into_a_new_index_and_the_old_one_dropped(cast: Cast, filled: Collection) -> None:
    build(filled)
    before = graphs()
    for number in range(8, 11):
        ingest(cast, filled, f"d{number}.md", text(number))
    build(filled)
    after = graphs()
    assert len(before) == len(after) == 1
    assert before != after
    assert SearchIndex.objects.filter(status="ready").count() == SearchIndex.objects.count() == 2
    index = SearchIndex.objects.get(kind="postings")
    assert set(Posting.objects.values_list("index_id", flat=True)) == {index.pk}
    assert index.last_chunk == Chunk.objects.latest("pk").pk


def test_leftover_of_a_killed_build_is_removed(
    cast: Cast, filled: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(indexes, "_take_over", killed)
    with pytest.raises(SystemExit):
        build(filled)
    assert SearchIndex.objects.filter(status="building").count() == 1
    assert ask(cast, filled, "tariff on lamps").hits  # a scan answers meanwhile
    monkeypatch.undo()
    for module in (indexes, search_indexed):
        monkeypatch.setattr(module, "HNSW_MIN", 10)
        monkeypatch.setattr(module, "POSTINGS_MIN", 10)
    build(filled)
    assert len(graphs()) == 1
    assert SearchIndex.objects.filter(status="ready").count() == SearchIndex.objects.count() == 2


def test_graphs_of_a_deleted_collection_are_dropped(cast: Cast, filled: Collection) -> None:
    build(filled)
    collection_services.collection_delete(tenant=cast.tenant, actor=cast.actor("admin"), collection=filled)
    assert graphs() == []
    assert not SearchIndex.objects.exists()


def test_small_collection_has_no_index(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "HNSW_MIN", 1000)
    monkeypatch.setattr(indexes, "POSTINGS_MIN", 1000)
    ingest(cast, collection, "a.md", text(1))
    assert not Job.objects.filter(kind=indexes.BUILD_KIND).exists()


def test_swap_is_ready_only_with_a_graph_of_its_own_and_its_end_drops_the_other(
    cast: Cast, filled: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch must not make a large collection's searches scan."""
    build(filled)
    space, _ = EmbeddingSpace.objects.get_or_create(
        provider="test", model="other", dimensions=384, fingerprint="other"
    )
    monkeypatch.setattr("apps.collections.collection.swaps.space_for", lambda *_, **__: space)
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    swap = swaps.swap_start(**who, collection=filled, embedder="test/other")
    assert swap.job_id is not None
    run_here(cast.tenant.pk, swap.job_id)
    swap.refresh_from_db()
    assert swap.status == SpaceSwap.Status.READY
    assert {row.space_id for row in SearchIndex.objects.filter(kind="graph", status="ready")} == {
        filled.space_id,
        space.pk,
    }
    swap = swaps.swap_switch(**who, swap=swap)
    result = ask(cast, filled, "tariff on lamps", trace=True)
    assert result.trace is not None
    assert result.trace.legs["vector"]["index"] == "hnsw"
    swap = swaps.swap_drop(**who, swap=swap)
    assert swap.job_id is not None
    run_here(cast.tenant.pk, swap.job_id)
    assert [row.space_id for row in SearchIndex.objects.filter(kind="graph")] == [space.pk]
    assert len(graphs()) == 1


def test_build_waits_when_another_of_the_same_collection_runs(cast: Cast, filled: Collection) -> None:
    key = [indexes._LOCKS, filled.pk]
    waited = threading.Event()

    class Context:
        job_id = Job.objects.latest("pk").pk

        def check(self) -> None:
            if SearchIndex.objects.exists():
                return
            waited.set()

    def run() -> None:
        with tenant_scope(cast.tenant.pk):
            indexes.indexes_build(Context(), collection_id=filled.pk)
        connection.close()

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", key)
        thread = threading.Thread(target=run)
        thread.start()
        assert waited.wait(PATIENCE_S)
        thread.join(1.0)
        assert not SearchIndex.objects.exists()
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert SearchIndex.objects.filter(status="ready").count() == 2

"""Tables of graphs: walled like any other, kept by the database in step with the vectors, and nobody else's business."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from pgvector import HalfVector

from apps.collections.index import graphs as graph_tables
from apps.collections.index import large as indexes
from apps.collections.index.graphs import SCHEMA, graph_table
from apps.collections.index.spaces import vectors_insert
from apps.collections.models import Chunk, Collection, Embedding, SearchIndex
from apps.collections.search.ranking import ranked_rows
from apps.collections.search.statement import search_sql
from apps.collections.search.types import QueryVector
from jobs.models import Job
from tenancy.database.base import as_login_role
from tenancy.row_security import walls_problem
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest
from tests.collections.index.test_large import (  # noqa: F401 - fixtures
    ask,
    build,
    filled,
    graphs,
    scope,
    text,
)
from tests.factories import make_collection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def table(filled: Collection) -> str:  # noqa: F811
    """Return the table of the graph of a collection that has one."""
    build(filled)
    return graph_table(filled.pk, SearchIndex.objects.get(kind="graph").pk)


def rows(sql: str, params: Sequence[Any] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def in_step(table: str) -> int:
    """Check that a graph's table has the vectors that it covers and no others; return how many."""
    row = SearchIndex.objects.get(kind="graph")
    whose = (
        f"FROM collections_embedding WHERE tenant_id = {row.tenant_id} AND collection_id = {row.collection_id} "
        f"AND space_id = {row.space_id} AND chunk_id <= {row.last_chunk}"
    )
    wanted = rows(f"SELECT chunk_id, document_id, vector::text {whose} ORDER BY 1")
    assert rows(f"SELECT chunk_id, document_id, vector::text FROM {table} ORDER BY 1") == wanted
    return len(wanted)


def test_another_workspace_reads_and_changes_nothing_of_it(cast: Cast, table: str) -> None:
    own = in_step(table)
    assert own == Embedding.objects.count() > 0
    with tenant_scope(cast.other_tenant.pk):
        assert rows(f"SELECT * FROM {table}") == []
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table}")
            assert cursor.rowcount == 0
            cursor.execute(f"UPDATE {table} SET document_id = 0")
            assert cursor.rowcount == 0
        with pytest.raises(ProgrammingError, match="row-level security"), connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} SELECT %s, 1, 1, array_fill(0.5, ARRAY[384])::halfvec(384)",
                [cast.tenant.pk],
            )
    assert in_step(table) == own


def test_a_table_without_a_wall_is_a_problem_that_the_installation_tells(table: str) -> None:
    assert walls_problem() == ""
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    assert walls_problem() == f"no wall around: {table}"


def test_vectors_that_go_by_any_way_go_from_it_at_once(cast: Cast, table: str) -> None:
    own = in_step(table)
    first, second, third = Chunk.objects.order_by("pk")[:3]
    Embedding.objects.filter(chunk=first).delete()
    with as_login_role(), connection.cursor() as cursor:  # by the database's own cascade
        cursor.execute("DELETE FROM collections_chunk WHERE id = ANY(%s)", [[second.pk, third.pk]])
    assert in_step(table) == own - 3


def test_vector_that_comes_late_or_instead_of_another_is_found_in_it(
    cast: Cast,
    filled: Collection,  # noqa: F811
    table: str,
) -> None:
    """A long document's come slice by slice, and an edited passage gets a new one: both below the mark of the index."""
    own = in_step(table)
    chunk = Chunk.objects.order_by("pk").first()
    assert chunk is not None
    vector = [0.0] * 383 + [1.0]
    with transaction.atomic():
        Embedding.objects.filter(chunk=chunk).delete()
        vectors_insert(filled.space, [chunk], [vector])
    assert in_step(table) == own
    found = rows(f"SELECT vector::text FROM {table} WHERE chunk_id = %s", [chunk.pk])
    assert found == [("[" + ",".join(["0"] * 383 + ["1"]) + "]",)]


def other_session(cast: Cast, work: Callable[[], object], hold: threading.Event) -> threading.Thread:
    """Do something in a transaction of its own that stays open until it is told; returns once it is done."""
    done = threading.Event()

    def run() -> None:
        with tenant_scope(cast.tenant.pk), transaction.atomic():
            work()
            done.set()
            assert hold.wait(60)
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert done.wait(60)
    return thread


def test_what_is_written_while_it_is_built_is_waited_for(
    cast: Cast,
    filled: Collection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A vector that is inserted, and one that is deleted, by transactions that began before it and end within."""
    late, gone = Chunk.objects.order_by("pk")[:2]
    late_vector = Embedding.objects.get(chunk=late).vector
    Embedding.objects.filter(chunk=late).delete()
    hold = threading.Event()
    writers = [
        other_session(cast, lambda: vectors_insert(filled.space, [late], [late_vector]), hold),
        other_session(cast, lambda: Embedding.objects.filter(chunk=gone).delete(), hold),
    ]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        hold.set()

    monkeypatch.setattr(graph_tables, "time", SimpleNamespace(sleep=sleep))
    build(filled)
    for writer in writers:
        writer.join(60)
    assert waits, "the build has not waited for those who were writing"
    table = graph_table(filled.pk, SearchIndex.objects.get(kind="graph").pk)
    in_step(table)
    found = {pk for (pk,) in rows(f"SELECT chunk_id FROM {table}")}
    assert late.pk in found
    assert gone.pk not in found


def test_delete_that_did_not_see_the_copy_is_made_good(
    cast: Cast,
    filled: Collection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins after the table is there, and its trigger finds nothing there yet."""
    gone = Chunk.objects.order_by("pk")[0]
    hold = threading.Event()
    writers: list[threading.Thread] = []
    awaited = graph_tables._writers_await

    def between(line: Any, check: Callable[[], None]) -> None:
        if not writers:
            awaited(line, check)
            writers.append(other_session(cast, lambda: Embedding.objects.filter(chunk=gone).delete(), hold))
            return
        hold.set()
        awaited(line, check)

    monkeypatch.setattr(graph_tables, "_writers_await", between)
    build(filled)
    writers[0].join(60)
    table = graph_table(filled.pk, SearchIndex.objects.get(kind="graph").pk)
    in_step(table)
    assert gone.pk not in {pk for (pk,) in rows(f"SELECT chunk_id FROM {table}")}


def test_search_that_has_read_of_a_graph_which_then_went_scans(
    cast: Cast,
    filled: Collection,  # noqa: F811
    table: str,
) -> None:
    before = [hit.chunk_id for hit in ask(cast, filled, "tariff on lamps").hits]
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {table}")
    result = ask(cast, filled, "tariff on lamps", trace=True)
    assert [hit.chunk_id for hit in result.hits] == before
    assert result.trace is not None
    assert result.trace.legs["vector"]["index"] == "scan"


def test_table_whose_row_is_gone_is_dropped_by_the_next_build(filled: Collection, table: str) -> None:  # noqa: F811
    SearchIndex.objects.filter(kind="graph").delete()
    assert [f"{SCHEMA}.{name}" for name in graphs()] == [table]
    indexes._build_enqueue(filled)
    build(filled)
    assert [f"{SCHEMA}.{name}" for name in graphs()] == [
        graph_table(filled.pk, SearchIndex.objects.get(kind="graph").pk)
    ]
    assert f"{SCHEMA}.{graphs()[0]}" != table


def test_graph_on_the_table_of_all_vectors_is_replaced(cast: Cast, filled: Collection) -> None:  # noqa: F811
    """As versions before built it; until then the collection is scanned."""
    row = SearchIndex.objects.create(
        tenant=cast.tenant,
        collection=filled,
        space=filled.space,
        kind="hnsw",
        status="ready",
        last_chunk=Chunk.objects.latest("pk").pk,
        chunk_count=filled.chunk_total,
    )
    name = f"ann_c{filled.pk}_s{filled.space_id}_{row.pk}"
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX {name} ON collections_embedding USING hnsw ((vector::halfvec(384)) halfvec_cosine_ops) "
            f"WHERE collection_id = {filled.pk} AND space_id = {filled.space_id} AND chunk_id <= {row.last_chunk}"
        )
    Job.objects.filter(kind=indexes.BUILD_KIND).update(status="succeeded")
    result = ask(cast, filled, "tariff on lamps", trace=True)
    assert result.trace is not None
    assert result.trace.legs["vector"]["index"] == "scan"
    assert indexes.graphs_sweep() == 1
    build(filled)
    assert rows("SELECT to_regclass(%s)", [f"public.{name}"]) == [(None,)]
    assert not SearchIndex.objects.filter(kind="hnsw").exists()
    result = ask(cast, filled, "tariff on lamps", trace=True)
    assert result.trace is not None
    assert result.trace.legs["vector"]["index"] == "hnsw"
    assert indexes.graphs_sweep() == 0


def test_nobody_else_locks_or_plans_it(
    cast: Cast,
    filled: Collection,  # noqa: F811
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a search of another collection nor what is written there."""
    small = make_collection(cast.tenant, name="small", space=filled.space)
    monkeypatch.setattr(indexes, "HNSW_MIN", 10**9)
    monkeypatch.setattr(indexes, "POSTINGS_MIN", 10**9)
    ingest(cast, small, "small.md", text(3))
    statement = partial(
        search_sql,
        actor=cast.actor("viewer"),
        scope=[small.pk],
        terms=[],
        postings=[],
        lexemes=[],
        conditions=[],
        as_of=None,
        limit=10,
    )
    with transaction.atomic():
        question = HalfVector([0.1] * 384).to_text()
        assert ranked_rows(statement, [QueryVector(small.space_id, 384, question, [small.pk])])
        first = Chunk.objects.filter(collection=small).order_by("pk")[0]
        vector = Embedding.objects.get(chunk=first).vector
        Embedding.objects.filter(chunk=first).delete()
        vectors_insert(small.space, [first], [vector])
        locked = {
            name
            for (name,) in rows(
                "SELECT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND relation IS NOT NULL"
            )
        }
    assert "collections_embedding" in locked
    assert not [name for name in locked if name.startswith(SCHEMA)]

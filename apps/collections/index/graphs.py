"""HNSW graphs of large collections, each over a small table of its own in the schema ``vector_graphs``.

A graph on the table of all vectors would be known, locked and held in memory by every statement about any vector. So a
graph has a copy of the vectors it covers, which only searches of its collection name; everybody else's plans are the same
with a thousand of them. The copy is made of the vectors alone, so no backup has it.

Triggers on the vectors (``vector_graphs_follow``) keep it right: what goes there goes here in the same statement, and
what comes there with an id below the mark of an index comes here too. They follow a table from the moment it is there. What
was being written then is waited for, before the copy is made and after it.
"""

# ruff: noqa: S608 - names of tables are made of integers
from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import psycopg
from django.db import connection

from apps.collections.models import EmbeddingSpace, SearchIndex
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.row_security import wall_statements

SCHEMA = "vector_graphs"
_BUILD_MEMORY = "512MB"
_POLL_S = 0.05
_WRITING = """
SELECT virtualtransaction FROM pg_locks l WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
AND l.relation = 'public.collections_embedding'::regclass
AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
"""


def graph_table(collection_id: int, index_id: int) -> str:
    """Return the table of an index's vectors, as SQL names it."""
    return f"{SCHEMA}.c{int(collection_id)}_i{int(index_id)}"


def graph_build(row: SearchIndex, space: EmbeddingSpace, check: Callable[[], None]) -> None:
    """Copy the vectors that an index covers, and build the graph; nobody waits for it.

    Args:
        row: committed, so that triggers see it.
        check: raises when the build must stop; what there is by then is dropped by the next one.
    """
    table = graph_table(row.collection_id, row.pk)
    with connection.wrap_database_errors, direct_connection() as line:
        line.execute(f"DROP TABLE IF EXISTS {table}")
        with line.transaction():
            line.execute(
                f"CREATE TABLE {table} (tenant_id bigint NOT NULL, chunk_id bigint NOT NULL, document_id bigint NOT NULL, "
                f"vector halfvec({int(space.dimensions)}) STORAGE PLAIN NOT NULL, PRIMARY KEY (chunk_id, tenant_id))"
            )
            for statement in wall_statements(table):
                line.execute(statement)
        _writers_await(line, check)  # from now on triggers write and delete here too
        own = f"tenant_id = {int(row.tenant_id)} AND collection_id = {int(row.collection_id)} AND space_id = {int(space.pk)}"
        line.execute(
            f"INSERT INTO {table} (tenant_id, chunk_id, document_id, vector) "
            f"SELECT tenant_id, chunk_id, document_id, vector FROM public.collections_embedding "
            f"WHERE {own} AND chunk_id <= {int(row.last_chunk)} ON CONFLICT DO NOTHING"
        )
        _writers_await(line, check)  # who deleted while the copy was not to be seen yet has ended
        line.execute(
            f"DELETE FROM {table} g WHERE NOT EXISTS (SELECT FROM public.collections_embedding e WHERE e.tenant_id = "
            f"g.tenant_id AND e.chunk_id = g.chunk_id AND e.space_id = {int(space.pk)})"
        )
        check()
        line.execute("SELECT set_config('maintenance_work_mem', %s, false)", [_BUILD_MEMORY])
        line.execute(
            f"CREATE INDEX CONCURRENTLY ON {table} USING hnsw (vector halfvec_cosine_ops) "
            "WITH (m = 16, ef_construction = 64)"
        )
        line.execute(f"ANALYZE {table}, public.collections_embedding")


def graph_exists(row: SearchIndex) -> bool:
    """Tell whether the database has the table of an index."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [graph_table(row.collection_id, row.pk)])
        return bool(cursor.fetchone()[0])


def graphs_drop(
    *, collection_id: int, kept: Collection[int] = (), check: Callable[[], None] | None = None
) -> None:
    """Drop the tables of a collection whose indexes have no row any more; a search that has read one scans instead.

    Args:
        kept: the indexes that stay.
        check: of the job, where the collection stays; raises when it must stop.
    """
    own = f"c{int(collection_id)}_i"
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA])
        names = [name for (name,) in cursor.fetchall() if name.startswith(own)]
        gone = [name for name in names if int(name.removeprefix(own)) not in kept]
        if gone and check is not None:
            with connection.wrap_database_errors, direct_connection() as line:
                _writers_await(line, check)  # a trigger may have read the row, and be about to write there
        for name in gone:
            cursor.execute(f"DROP TABLE IF EXISTS {SCHEMA}.{name}")


def _writers_await(line: psycopg.Connection[Any], check: Callable[[], None]) -> None:
    """Wait until the transactions that have written or deleted vectors have ended; those that begin now don't count."""
    first = waited = {name for (name,) in line.execute(_WRITING)}
    while waited:
        time.sleep(_POLL_S)
        check()
        waited = first & {name for (name,) in line.execute(_WRITING)}

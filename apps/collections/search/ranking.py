"""Run the statement that ranks, with the settings of graphs where it uses some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.db import ProgrammingError, connection
from psycopg.errors import UndefinedTable

from apps.collections.search.indexed import HNSW_SETTINGS, PLANNED_ONCE
from apps.collections.search.statement import Sql, statement_of
from apps.collections.search.types import QueryVector, Ranked
from tenancy.database.cursors import local_settings

log = structlog.get_logger(__name__)


def ranked_rows(statement: Callable[..., Sql], vectors: list[QueryVector]) -> list[Ranked]:
    """Rank by all legs; where a graph was dropped since its row was read, its collection is scanned.

    Args:
        statement: makes it of the question's vectors.
        vectors: replaced in place by those that scan, so that the trace tells how it was done.
    """
    is_indexed = any(vector.indexed for vector in vectors)
    sql = statement(vectors=vectors)
    values = (HNSW_SETTINGS if is_indexed else {}) | (PLANNED_ONCE if sql.is_bounded else {})
    try:
        return rows_execute(statement_of(sql), sql.parameters, values)
    except ProgrammingError as error:
        is_gone = is_indexed and isinstance(error.__cause__, UndefinedTable)
        if not is_gone or connection.in_atomic_block:
            raise
    log.info("search_without_graph")
    vectors[:] = [vector.without_graphs() for vector in vectors]
    return ranked_rows(statement, vectors)


def rows_execute(statement: str, parameters: Mapping[str, Any], settings: Mapping[str, str]) -> list[Ranked]:
    """Run a statement of ``statement_of`` with settings of its own."""
    with connection.cursor() as cursor, local_settings(cursor, settings):
        cursor.execute(statement, parameters)
        return list(map(Ranked._make, cursor.fetchall()))

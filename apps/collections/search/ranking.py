"""Run the statement that ranks, with the settings of graphs where it uses some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.db import ProgrammingError, connection
from psycopg.errors import UndefinedTable

from apps.collections.search.indexed import HNSW_SETTINGS
from apps.collections.search.statement import Sql, statement_of
from apps.collections.search.types import QueryVector
from tenancy.database.cursors import local_settings

log = structlog.get_logger(__name__)


def ranked_rows(statement: Callable[..., Sql], vectors: list[QueryVector]) -> list[dict[str, Any]]:
    """Rank by all legs; where a graph was dropped since its row was read, its collection is scanned.

    Args:
        statement: makes it of the question's vectors.
    """
    if not any(vector.indexed for vector in vectors):
        sql = statement(vectors=vectors)
        return rows_execute(statement_of(sql), sql.parameters, is_indexed=False)
    try:
        sql = statement(vectors=vectors)
        return rows_execute(statement_of(sql), sql.parameters, is_indexed=True)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable) or connection.in_atomic_block:
            raise
        log.info("search_without_graph")
        vectors[:] = [v.without_graphs() for v in vectors]
        return ranked_rows(statement, vectors)


def rows_execute(statement: str, parameters: Mapping[str, Any], *, is_indexed: bool) -> list[dict[str, Any]]:
    with connection.cursor() as cursor, local_settings(cursor, HNSW_SETTINGS if is_indexed else {}):
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

"""Write many rows at once under row-level security: COPY BINARY into a temporary table, then INSERT ... SELECT.

COPY itself is refused on a table with row-level security; this way its checks still see every row. Measured at 55,000
rows with vectors a second, against 1,800 for ``bulk_create`` (floats as text are what costs there).
"""

# ruff: noqa: S608 - names of tables and columns come from models, never from input
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from django.db import connection
from pgvector.psycopg import register_vector

_numbers = count(1)


def rows_copy(
    table: str,
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Any]],
    *,
    convert: Mapping[str, str] | None = None,
    suffix: str = "",
) -> int:
    """Insert rows inside the current transaction.

    Args:
        table: the target; its other columns get their database defaults.
        columns: column name to the PostgreSQL type in which its values are sent (``halfvec``, ``text[]``, ...).
        rows: values in the order of ``columns``.
        convert: column name to an SQL expression that makes the column's value from the sent one.
        suffix: what follows the INSERT, for example an ON CONFLICT clause.

    Returns:
        How many rows were inserted.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("rows_copy() belongs into a transaction")
    stage = f"stage_{next(_numbers)}"
    names = ", ".join(f'"{name}"' for name in columns)
    fields = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    values = ", ".join((convert or {}).get(name, f'"{name}"') for name in columns)
    vectors_register()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {stage} ({fields}) ON COMMIT DROP")
        for name, kind in columns.items():
            if kind in ("halfvec", "sparsevec"):
                cursor.execute(f'ALTER TABLE {stage} ALTER "{name}" SET STORAGE PLAIN')
        with cursor.copy(f"COPY {stage} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(list(columns.values()))
            for row in rows:
                copy.write_row(row)
        cursor.execute(f'INSERT INTO "{table}" ({names}) SELECT {values} FROM {stage} {suffix}')
        inserted: int = cursor.rowcount
        cursor.execute(f"DROP TABLE {stage}")
    return inserted


def vectors_register() -> None:
    """Teach the connection pgvector's types; before a cursor is made, which copies what the connection knows."""
    connection.ensure_connection()
    raw: Any = connection.connection
    if raw.adapters.types.get("sparsevec") is None:
        register_vector(raw)

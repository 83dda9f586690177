"""Plant strings that occur nowhere else, by introspection, and look for them in a whole dump and in every file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction
from psycopg import sql
from psycopg.types.json import Jsonb

from erasure.rules import text_columns
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection

_numbers = itertools.count(1)


@dataclass
class Planted:
    """What was planted.

    Attributes:
        marks: string -> where it is.
        refused: columns that no string could be planted in, as ``label.column``.
    """

    marks: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def mark(self, where: str) -> str:
        """Return a new string of 8 letters and digits."""
        made = f"Zq{next(_numbers):05d}x"
        self.marks[made] = where
        return made


def plant(
    planted: Planted,
    rows: Iterable[models.Model],
    *,
    value: Callable[[str], str] = lambda mark: mark,
    columns: Callable[[type[models.Model]], Iterable[models.Field[Any, Any]]] = text_columns,
) -> None:
    """Write a string of its own into each column of each row.

    Args:
        value: makes what is written from the mark.
        columns: of a model, those to plant in.
    """
    for row in rows:
        model = type(row)
        for column in columns(model):
            where = f"{model._meta.label}.{column.name}"
            if isinstance(column, models.GeneratedField):
                continue
            mark = planted.mark(where)
            if not _planted(row, column, value(mark)):
                del planted.marks[mark]
                planted.refused.append(where)


def _planted(row: models.Model, column: models.Field[Any, Any], text: str) -> bool:
    content: Any = text
    if isinstance(column, ArrayField):
        if not isinstance(column.base_field, (models.CharField, models.TextField)):
            return False
        content = [text, "other"]
    elif isinstance(column, models.JSONField):
        content = Jsonb({"a": [{"b": f"in {text}, too"}]})
    elif isinstance(column, models.BinaryField):
        content = text.encode()
    elif not isinstance(column, (models.CharField, models.TextField, models.FileField)):
        return False
    meta = row._meta
    statement = sql.SQL("UPDATE {} SET {} = %s WHERE {} = %s").format(
        sql.Identifier(meta.db_table), sql.Identifier(str(column.column)), sql.Identifier(str(meta.pk.column))
    )
    try:
        with as_login_role(), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, [content, row.pk])
            return bool(cursor.rowcount == 1)
    except DatabaseError:
        return False


def dump() -> Iterator[tuple[str, bytes]]:
    """Yield each row of each table of the database, with the name of the table; COPY's text, as pg_dump writes it."""
    with direct_connection() as line:
        tables = line.execute(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p') "
            "AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
        ).fetchall()
        for (table,) in tables:
            statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.SQL(table))
            with line.cursor().copy(statement) as copy:
                for row in copy:
                    yield table, bytes(row)


def found_in_rows(marks: Iterable[str]) -> dict[str, str]:
    """Return the strings that a dump has, in any letter case or as bytes, with the table."""
    wanted = {mark: (mark.lower().encode(), mark.encode().hex().encode()) for mark in marks}
    found = {}
    for table, row in dump():
        low = row.lower()
        for mark, forms in wanted.items():
            if any(form in low for form in forms):
                found[mark] = table
    return found


def found_in_files(marks: Iterable[str], root: Path) -> dict[str, Path]:
    """Return the strings that a file below a folder has, byte by byte, or that its name has."""
    wanted = [(mark, mark.encode()) for mark in marks]
    found = {}
    for path in (p for p in root.rglob("*") if p.is_file()):
        content = path.read_bytes() + str(path).encode()
        for mark, form in wanted:
            if form in content:
                found[mark] = path
    return found

"""Primary keys and unique indexes of tenants' tables contain ``tenant_id``: what a sharded Postgres asks of them.

Models say what is unique as ever, ``id`` is their key, and ``row_security_apply`` adds ``tenant_id`` as the last column: so
an index serves the same searches as before, and (id, tenant_id) is also what references with a tenant point to, which
had an index of their own. Constraints and indexes keep their names.

What servers of the version before can't live with (they name a unique constraint's columns in ON CONFLICT, and group by
``id`` alone) isn't done to a table they use: ``manage.py schema_contract`` does it when they are gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tenancy.upgrades.locks import waiting_long
from tenancy.upgrades.operations import has_rows, indexes_left

_NARROW = """
SELECT t.relname, i.relname, pg_get_indexdef(x.indexrelid), x.indisprimary, n.oid IS NOT NULL,
    coalesce(substring(pg_get_constraintdef(n.oid) FROM ' DEFERRABLE.*'), '')
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class t ON t.oid = x.indrelid AND t.relnamespace = 'public'::regnamespace
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'tenant_id'
LEFT JOIN pg_constraint n ON n.conindid = x.indexrelid AND n.contype IN ('p', 'u')
WHERE x.indisunique AND x.indisvalid AND t.relname = ANY(%s)
    AND NOT a.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1])
ORDER BY t.relname, NOT x.indisprimary, i.relname
"""
_WIDE = """
SELECT t.relname FROM pg_index x
JOIN pg_class t ON t.oid = x.indrelid AND t.relnamespace = 'public'::regnamespace
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'tenant_id'
WHERE x.indisprimary AND a.attnum = ANY (x.indkey::int2[])
"""
_LEFT_HALF = re.compile(r"CREATE UNIQUE INDEX .* ON (?:ONLY )?(?P<table>\S+) USING (?P<method>\w+) \(")


@dataclass(frozen=True, slots=True)
class Key:
    """A unique index of a tenant's table that lacks ``tenant_id``.

    Attributes:
        table: whose it is.
        name: the index's, and its constraint's if it has one.
        definition: the statement that would make it, as Postgres writes it.
        is_primary: it is the primary key's.
        is_constraint: it is the primary key's or a unique constraint's.
        when: of a constraint: " DEFERRABLE ..." if it isn't checked at each statement.
    """

    table: str
    name: str
    definition: str
    is_primary: bool
    is_constraint: bool
    when: str

    @property
    def building(self) -> str:
        """The name of the index that takes its place, until it does."""
        return f"{self.name[-58:]}_wide"

    def wide(self, *, concurrently: bool) -> str:
        """Return the statement that builds the index with ``tenant_id`` in it.

        Raises:
            ValueError: the definition isn't one that Postgres writes.
        """
        found = _LEFT_HALF.match(self.definition)
        if found is None:
            raise ValueError(f"not the definition of a unique index: {self.definition}")
        end = _closing(self.definition, found.end())
        rest = _without_tenant(self.definition[end + 1 :])
        return (
            f'CREATE UNIQUE INDEX {"CONCURRENTLY " if concurrently else ""}"{self.building}" ON {found["table"]} '
            f"USING {found['method']} ({self.definition[found.end() : end]}, tenant_id){rest}"
        )


def keys_narrow(cursor: Any, tables: Collection[str]) -> list[Key]:
    """Return the unique indexes of these tables that lack ``tenant_id``, the primary key of each first."""
    cursor.execute(_NARROW, [list(tables)])
    return [Key(*row) for row in cursor.fetchall()]


def tables_wide(cursor: Any) -> set[str]:
    """Return the tables whose primary key contains ``tenant_id``."""
    cursor.execute(_WIDE)
    return {name for (name,) in cursor.fetchall()}


def keys_widen(cursor: Any, tables: Collection[str]) -> list[Key]:
    """Add ``tenant_id`` to the unique indexes of these tables that lack it. Can be run again after it was killed.

    Indexes of tables with rows are built while rows are read and written; then each table is locked for as long as it
    takes to exchange names.

    Returns:
        what was narrow.
    """
    narrow = keys_narrow(cursor, tables)
    left = indexes_left(
        cursor, [key.building for key in narrow]
    )  # by a try that was killed, or stopped by a lock
    for key in narrow:
        if not left.get(key.building, (False,))[0]:
            _build(cursor, key)
    for table in dict.fromkeys(key.table for key in narrow):
        _exchange(cursor, table, [key for key in narrow if key.table == table])
    return narrow


def _build(cursor: Any, key: Key) -> None:
    if cursor.db.in_atomic_block or not has_rows(cursor, key.table):
        cursor.execute(key.wide(concurrently=False))
        return
    with waiting_long(cursor.db):
        cursor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{key.building}"')
        cursor.execute(key.wide(concurrently=True))


def _exchange(cursor: Any, table: str, narrow: list[Key]) -> None:
    steps = []
    for key in narrow:
        if key.is_constraint:
            kind = "PRIMARY KEY" if key.is_primary else "UNIQUE"
            steps.append(f'DROP CONSTRAINT "{key.name}"')
            steps.append(f'ADD CONSTRAINT "{key.name}" {kind} USING INDEX "{key.building}"{key.when}')
    with whole(cursor.db):
        if steps:
            cursor.execute(f'ALTER TABLE "{table}" {", ".join(steps)}')
        for key in narrow:
            if not key.is_constraint:
                cursor.execute(f'DROP INDEX "{key.name}"')
                cursor.execute(f'ALTER INDEX "{key.building}" RENAME TO "{key.name}"')


def whole(connection: Any) -> AbstractContextManager[Any]:
    """Return what makes the statements inside one transaction, if they aren't in one."""
    return nullcontext() if connection.in_atomic_block else transaction.atomic(using=connection.alias)


def _closing(text: str, begin: int) -> int:
    """Return where the bracket closes that opened before ``begin``; those inside of quotes don't count."""
    depth, quote = 1, ""
    for position in range(begin, len(text)):
        letter = text[position]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
            if not depth:
                return position
    raise ValueError(f"a bracket stays open: {text}")


def _without_tenant(rest: str) -> str:
    """Return what follows an index's columns, without ``tenant_id`` among those that it only carries."""
    found = re.match(r" INCLUDE \((?P<columns>[^)]*)\)", rest)
    if found is None:
        return rest
    columns = [c for c in found["columns"].split(", ") if c != "tenant_id"]
    return (f" INCLUDE ({', '.join(columns)})" if columns else "") + rest[found.end() :]

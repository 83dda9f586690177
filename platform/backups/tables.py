"""Which tables and columns a backup has, and how a row becomes text that is the same on every server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from psycopg import sql

from backups.errors import BackupRefused
from tenancy.row_security import PLATFORM_POLICY

SELF_KEPT = frozenset({"django_migrations"})
"""Tables that a restored database has from its own migrations; the manifest says which were applied."""
_TOP = 1 << 256
_TEXT = """
SET client_encoding = 'UTF8'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';
SET extra_float_digits = 1; SET bytea_output = 'hex'; SET xmloption = 'content'; SET search_path = public;
SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0
"""


def settings_pin(line: Any) -> None:
    """Have a session write and read values as every other session of a backup does, whatever its server is set to."""
    line.execute(_TEXT)


def known_tables() -> set[str]:
    """Return the tables of this code's models."""
    return {m._meta.db_table for m in apps.get_models(include_auto_created=True) if m._meta.managed}


def database_tables(line: Any) -> set[str]:
    """Return the tables of a database that no extension brought."""
    found = line.execute(
        """SELECT relname FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
           AND NOT relispartition
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
                           AND d.deptype = 'e')"""
    )
    return {row[0] for row in found}


def columns_of(line: Any, table: str) -> list[str]:
    """Return the columns whose values are stored and not computed by the database, in its order."""
    found = line.execute(
        """SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
           AND attgenerated = '' ORDER BY attnum""",
        [f'public."{table}"'],
    )
    return [row[0] for row in found]


def hidden_refuse(line: Any, tables: Iterable[str]) -> None:
    """Make sure that the session sees every row.

    Raises:
        BackupRefused: row-level security of a table may hide rows from it.
    """
    found = line.execute(
        """SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%s)
           AND row_security_active(c.oid)
           AND NOT EXISTS (SELECT FROM pg_policy p, unnest(p.polroles) AS r (role)
                           WHERE p.polrelid = c.oid AND p.polname = %s AND p.polpermissive AND p.polcmd IN ('*', 'r')
                             AND pg_get_expr(p.polqual, p.polrelid) = 'true' AND r.role <> 0
                             AND pg_has_role(current_user, r.role, 'USAGE'))
           OR c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%s) AND row_security_active(c.oid)
           AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND NOT p.polpermissive)""",
        [sorted(tables), PLATFORM_POLICY, sorted(tables)],
    ).fetchall()
    if found:
        raise BackupRefused(
            f"Row-level security may hide rows of {found[0][0]} from this role, and a backup would lack them. "
            "Run: python manage.py migrate"
        )


@dataclass(slots=True)
class RowSum:
    """Count and checksum of rows, whatever their order."""

    rows: int = 0
    _sum: int = field(default=0, repr=False)

    def add(self, row: bytes) -> None:
        """Count a row, as text with its end of line."""
        self.rows += 1
        self._sum += int.from_bytes(hashlib.sha256(row).digest(), "big")

    @property
    def checksum(self) -> str:
        """The sum in 64 hex digits."""
        return f"{self._sum % _TOP:064x}"


def rows_split(pieces: Iterable[Any]) -> Iterator[bytes]:
    """Yield rows of COPY's text format, with their ends, of pieces that are cut anywhere.

    A newline within a value is escaped in that format, so that each newline ends a row.

    Raises:
        ValueError: the last row has no end.
    """
    rest = b""
    for piece in pieces:
        lines = (rest + bytes(piece)).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line + b"\n"
    if rest:
        raise ValueError("the last row has no end")


def copy_out(table: str, columns: Iterable[str]) -> sql.Composed:
    """Return the statement that sends the rows of a table."""
    return sql.SQL("COPY (SELECT {} FROM public.{}) TO STDOUT").format(_names(columns), sql.Identifier(table))


def copy_in(table: str, columns: Iterable[str]) -> sql.Composed:
    """Return the statement that takes rows into a table."""
    return sql.SQL("COPY public.{} ({}) FROM STDIN").format(sql.Identifier(table), _names(columns))


def table_sum(line: Any, table: str, columns: Iterable[str]) -> RowSum:
    """Return count and checksum of the rows that a table has."""
    found = RowSum()
    with line.cursor() as cursor, cursor.copy(copy_out(table, columns)) as copy:
        for row in rows_split(copy):
            found.add(row)
    return found


def _names(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))

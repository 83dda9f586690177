"""One consistent point of the database, and what is read there: rows, sequences, versions, keys of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import psycopg
from django.db import connection, transaction
from psycopg import sql

from backups.errors import BackupBusy, BackupRefused
from backups.manifest import Part, SequenceState, Table
from backups.parts import BackupKey, PartWriter, Written
from backups.places import Place
from backups.priority import session_follow
from backups.tables import (
    SELF_KEPT,
    RowSum,
    columns_of,
    copy_out,
    database_tables,
    hidden_refuse,
    known_tables,
    rows_split,
    settings_pin,
)
from blobs.hold import removals_held, removals_hold
from blobs.references import named
from tenancy.database.direct import lock_session
from tenancy.scope import tenant_scope

PART_BYTES = 256 << 20
"""Bytes after which a table's rows go on in another part: what a disk has to hold while one is written."""
_LOCK = 0x6261636B7570  # "backup": the advisory lock of whoever writes or prunes backups of this database


@contextmanager
def alone() -> Iterator[psycopg.Connection[Any]]:
    """Let one backup or pruning of this database run at a time, on whichever machine; yields a session of its own.

    Raises:
        BackupBusy: another one is at work.
    """
    with lock_session(_LOCK) as line:
        if line is None:
            raise BackupBusy
        settings_pin(line)
        session_follow(line)
        yield line


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An open point of the database.

    Attributes:
        line: the session whose transaction holds it.
        tables: of Groundwork.
        left_out: tables that no part of it knows.
    """

    line: psycopg.Connection[Any]
    tables: list[str]
    left_out: list[str]

    def versions(self) -> tuple[int, str, list[tuple[str, str]]]:
        """Return the server's version number, that of pgvector, and the applied migrations."""
        row: Any = self.line.execute(
            """SELECT current_setting('server_version_num')::int,
                      coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')"""
        ).fetchone()
        applied = self.line.execute("SELECT app, name FROM django_migrations ORDER BY app, name").fetchall()
        return row[0], row[1], [(app, name) for app, name in applied]

    def sequences(self) -> list[SequenceState]:
        """Return how far each sequence is: at least as far as the rows of the snapshot."""
        found = self.line.execute(
            """SELECT c.relname, coalesce(t.relname, ''), coalesce(a.attname, '') FROM pg_class c
               LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
                    AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
               LEFT JOIN pg_class t ON t.oid = d.refobjid
               LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
               WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname"""
        ).fetchall()
        states = []
        for name, table, column in found:
            if (table and table not in self.tables) or not name.isidentifier():
                continue
            statement = sql.SQL("SELECT last_value, is_called FROM public.{}").format(sql.Identifier(name))
            row: Any = self.line.execute(statement).fetchone()
            states.append(SequenceState(name, table, column, row[0], row[1]))
        return states

    def rows_write(self, number: int, name: str, writer: RowsWriter) -> Table:
        """Write the rows of a table in parts.

        Args:
            number: of the table, for the names of its parts.
            name: of the table.
        """
        columns, found = columns_of(self.line, name), RowSum()
        with self.line.cursor() as cursor, cursor.copy(copy_out(name, columns)) as copy:
            parts = writer.write(number, _counted(rows_split(copy), found))
        return Table(name, columns, found.rows, found.checksum, parts)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Let the block's statements over Django's connection read this snapshot, in one transaction."""
        row: Any = self.line.execute("SELECT pg_export_snapshot()").fetchone()
        with transaction.atomic(durable=True):
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{row[0]}'")
            yield

    def keys_named(self, keys: Iterable[str]) -> list[str]:
        """Return those of the keys of files that rows name, in order; in ``shared``."""
        by_tenant: dict[int, list[str]] = {}
        for key in keys:
            if found := _TENANT.search(key):
                by_tenant.setdefault(int(found[1]), []).append(key)
        wanted: set[str] = set()
        for tenant, listed in sorted(by_tenant.items()):
            with tenant_scope(tenant):
                for start in range(0, len(listed), _ASKED):
                    wanted |= named(tenant, listed[start : start + _ASKED])
        return sorted(wanted)


_ASKED = 2000  # keys that are asked for in one statement
_TENANT = re.compile(r"(?:^|/)t(\d{1,18})/")  # every key has its workspace's folder


@contextmanager
def snapshot(line: psycopg.Connection[Any]) -> Iterator[Snapshot]:
    """Open a point of the database, from which on no file is removed until the session ends.

    Files that rows of that point name are there then: whoever was about to remove one is waited for first.

    Args:
        line: a session of its own, outside of any transaction.

    Raises:
        BackupRefused: rows may be hidden from its role, or the database isn't migrated.
    """
    removals_hold(line)
    known, there = known_tables(), database_tables(line)
    tables = sorted((known & there) - SELF_KEPT)
    if not tables or "django_migrations" not in there:
        raise BackupRefused("This database has no tables of Groundwork. Nothing to back up.")
    line.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    line.read_only = True
    try:
        with line.transaction():
            # Before the snapshot is taken: a migration that commits in between would change what it is of.
            listed = sql.SQL(", ").join(sql.Identifier("public", table) for table in tables)
            line.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(listed))
            hidden_refuse(line, tables)
            yield Snapshot(line, tables, sorted(there - known - SELF_KEPT))
    finally:
        if not line.closed:
            line.isolation_level = line.read_only = None


class RowsWriter:
    """Writes rows into parts of bounded size and places each."""

    def __init__(self, place: Place, backup: str, key: BackupKey | None, folder: Path) -> None:
        """Make a writer.

        Args:
            backup: its name.
            key: seals the parts.
            folder: for one part at a time.
        """
        self._place, self._backup, self._key, self._folder = place, backup, key, folder
        self.size = 0

    def write(self, number: int, rows: Iterator[bytes]) -> list[Part]:
        """Write all rows of a table; none makes no part."""
        parts: list[Part] = []
        row = next(rows, None)
        while row is not None:
            key = f"rows/{number:04}-{len(parts) + 1:04}.gwp"
            path = self._folder / "rows"
            path.unlink(missing_ok=True)  # a place that took it may share its bytes
            with path.open("wb") as out:
                row, written = self._fill(out, key, row, rows)
            parts.append(self.placed(key, path, written))
        return parts

    def _fill(
        self, out: BinaryIO, key: str, row: bytes | None, rows: Iterator[bytes]
    ) -> tuple[bytes | None, Written]:
        part = PartWriter(out, f"backups/{self._backup}/{key}", self._key)
        while row is not None and part.size < PART_BYTES:
            part.write(row)
            row = next(rows, None)
        return row, part.close()

    def placed(self, key: str, path: Path, written: Written) -> Part:
        """Place a part that was written and say what it is."""
        self._place.put(f"backups/{self._backup}/{key}", path)
        self.size += written.size
        return Part(key, written.size, written.sha256)


def _counted(rows: Iterator[bytes], found: RowSum) -> Iterator[bytes]:
    for row in rows:
        found.add(row)
        yield row


def line_check(line: psycopg.Connection[Any]) -> None:
    """Make sure that the session of a backup lives, and with it its locks.

    Raises:
        BackupRefused: it was ended, so that files may have been removed meanwhile.
    """
    try:
        is_held = removals_held(line)
    except psycopg.Error:
        is_held = False
    if not is_held:
        raise BackupRefused(
            "The connection to the database was lost, so this backup was given up. Try again."
        )

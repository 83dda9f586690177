"""Put the rows of a backup into an empty database: all in one transaction, each checked before any is visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from backups.errors import BackupDamaged, BackupRefused
from backups.manifest import Manifest, SequenceState, Table
from backups.parts import BackupKey, part_read
from backups.places import Place, workroom
from backups.priority import session_follow
from backups.tables import (
    SELF_KEPT,
    RowSum,
    columns_of,
    copy_in,
    database_tables,
    known_tables,
    rows_split,
    settings_pin,
)
from blobs.leases import file_digest
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.database.from_empty import make_from_empty
from tenancy.row_security import row_security_apply

MADE_BY_SETUP = frozenset({"django_content_type", "auth_permission", *SELF_KEPT})
"""Tables that have rows in a database that was only migrated."""


def empty_refuse(line: Any) -> None:
    """Make sure that a database has no rows but those that migrations make.

    Raises:
        BackupRefused: it has some, or a table that no part of Groundwork knows.
    """
    there = database_tables(line)
    if foreign := sorted(there - known_tables() - SELF_KEPT):
        raise BackupRefused(
            f"The database isn't empty: it has a table {foreign[0]}. Restore into a new database."
        )
    with line.transaction():
        for table in sorted(there - MADE_BY_SETUP):
            statement = sql.SQL("SELECT EXISTS (SELECT FROM public.{})").format(sql.Identifier(table))
            # As whoever owns the tables: row-level security would hide rows, where nothing lets its owner see them.
            with _unwalled(line, [table]):
                has_rows = line.execute(statement).fetchone()[0]
            if has_rows:
                raise BackupRefused(
                    f"The database isn't empty: {table} has rows. Restore into a new database; nothing was changed."
                )


def schema_refuse(manifest: Manifest) -> None:
    """Make sure that this code knows the schema of a backup.

    Raises:
        BackupRefused: a newer version of Groundwork wrote it.
    """
    disk = MigrationLoader(None).disk_migrations
    known = set(disk) | {one for migration in disk.values() for one in migration.replaces}
    if unknown := sorted(set(manifest.migrations) - known):
        raise BackupRefused(
            f"The schema of this backup is newer than this code, which doesn't know {unknown[0][0]}.{unknown[0][1]}. "
            f"Install version {manifest.version or 'that wrote it'}, or a later one."
        )


def schema_make(manifest: Manifest) -> bool:
    """Make the tables of a backup by the migrations that it had, with walls and grants where it has all of them.

    Returns:
        Whether migrations are left, which ``migrate`` has to apply once the rows are there. Until then no role but
        the owner of the tables has a right on any.
    """
    with as_login_role():
        executor = MigrationExecutor(connection)
        graph = executor.loader.graph
        applied = {node for node in manifest.migrations if node in graph.nodes}
        if applied >= set(graph.nodes):
            call_command("migrate", verbosity=0, interactive=False)
            row_security_apply(connection)  # also where an interrupted restore had migrated already
            return False
        targets: list[tuple[str, str | None]] = [
            node
            for node in sorted(applied)
            if not any(c.key in applied for c in graph.node_map[node].children)
        ]
        if not make_from_empty(connection, targets):
            executor.migrate(targets)
        return True


def rows_load(
    line: psycopg.Connection[Any],
    place: Place,
    manifest: Manifest,
    keys: list[BackupKey],
    say: Callable[[str], None],
) -> None:
    """Put all rows into migrated tables and commit once all of them were found to be those of the backup.

    Foreign keys, indexes and triggers are taken away for that and put back before the commit, so that every reference is
    checked as the keys are made again, and no trigger computes what the rows hold already.

    Raises:
        BackupDamaged: a part, a count or a checksum is wrong; the tables stay empty.
        BackupRefused: the tables aren't those of the backup.
        StoreAway: the place doesn't answer.
    """
    settings_pin(line)
    names = [table.name for table in manifest.tables]
    if missing := sorted(set(names) - database_tables(line) | set(names) & SELF_KEPT):
        raise BackupRefused(f"This code has no table {missing[0]}, of which the backup has rows.")
    with line.transaction(), _unwalled(line, names), _bare(line):
        line.execute(sql.SQL("TRUNCATE {}").format(_tables(sorted(known_tables() & database_tables(line)))))
        for number, table in enumerate(manifest.tables, 1):
            _table_load(line, place, manifest, table, keys)
            if number % 25 == 0 or number == len(manifest.tables):
                say(f"{number} of {len(manifest.tables)} tables")
        for state in manifest.sequences:
            _sequence_set(line, state)


def _table_load(
    line: psycopg.Connection[Any], place: Place, manifest: Manifest, table: Table, keys: list[BackupKey]
) -> None:
    if set(table.columns) != set(columns_of(line, table.name)):
        raise BackupRefused(f"The columns of {table.name} aren't those of the backup.")
    found = RowSum()
    if table.parts:
        with line.cursor() as cursor, cursor.copy(copy_in(table.name, table.columns)) as copy:
            for row in part_rows(place, manifest, table, keys):
                found.add(row)
                copy.write(row)
    if (found.rows, found.checksum) != (table.rows, table.checksum):
        raise BackupDamaged(table.name, "its rows aren't those that were backed up")


def part_rows(place: Place, manifest: Manifest, table: Table, keys: list[BackupKey]) -> Iterator[bytes]:
    """Yield the rows of a table's parts, with their ends.

    Raises:
        BackupDamaged: a part isn't what was written; rows that were yielded before were right.
        StoreAway: the place doesn't answer.
    """
    for part in table.parts:
        where = f"backups/{manifest.name}/{part.key}"
        with workroom() as folder:
            path: Path = folder / "part"
            place.fetch(where, path)
            if file_digest(path) != part.sha256:
                raise BackupDamaged(where, "it isn't the file that the manifest names")
            with path.open("rb") as stream:
                try:
                    yield from rows_split(part_read(stream, where, keys))
                except ValueError:
                    raise BackupDamaged(where, "its last row has no end") from None


def _sequence_set(line: psycopg.Connection[Any], state: SequenceState) -> None:
    """Set a sequence by the column that it belongs to, since its name may be another one here."""
    if state.table:
        found: Any = line.execute(
            "SELECT pg_get_serial_sequence(%s, %s)", [f'public."{state.table}"', state.column]
        ).fetchone()
    else:
        found = line.execute("SELECT to_regclass(%s)::text", [f'public."{state.name}"']).fetchone()
    if found[0] is None:
        raise BackupRefused(f"This code has no sequence {state.name}, which the backup has.")
    line.execute("SELECT setval(%s::regclass, %s, %s)", [found[0], state.value, state.is_called])


@contextmanager
def _unwalled(line: Any, tables: list[str]) -> Iterator[None]:
    """Let the owner past row-level security of tables within the transaction that is open, which locks them for others."""
    forced = [
        row[0]
        for row in line.execute(
            """SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = ANY(%s)
               AND relforcerowsecurity ORDER BY relname""",
            [tables],
        ).fetchall()
    ]
    for table in forced:
        line.execute(
            sql.SQL("ALTER TABLE public.{} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(table))
        )
    yield
    for table in forced:
        line.execute(sql.SQL("ALTER TABLE public.{} FORCE ROW LEVEL SECURITY").format(sql.Identifier(table)))


_FOREIGN_KEYS = """
SELECT r.relname, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
WHERE c.contype = 'f' AND c.conparentid = 0 AND r.relnamespace = 'public'::regnamespace ORDER BY r.relname, c.conname
"""
_INDEXES = """
SELECT i.relname, pg_get_indexdef(x.indexrelid) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class r ON r.oid = x.indrelid
WHERE r.relnamespace = 'public'::regnamespace AND r.relkind = 'r'
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid) ORDER BY i.relname
"""
_TRIGGERS = """
SELECT r.relname, t.tgname FROM pg_trigger t JOIN pg_class r ON r.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgenabled = 'O' AND r.relnamespace = 'public'::regnamespace ORDER BY r.relname, t.tgname
"""


@contextmanager
def _bare(line: psycopg.Connection[Any]) -> Iterator[None]:
    """Take foreign keys, indexes and triggers away from all tables, and put them back; in an open transaction."""
    keys = line.execute(_FOREIGN_KEYS).fetchall()
    triggers = line.execute(_TRIGGERS).fetchall()
    for table, name, _ in keys:
        line.execute(
            sql.SQL("ALTER TABLE public.{} DROP CONSTRAINT {}").format(
                sql.Identifier(table), sql.Identifier(name)
            )
        )
    indexes = line.execute(_INDEXES).fetchall()  # those that only foreign keys need stay with these
    for name, _ in indexes:
        line.execute(sql.SQL("DROP INDEX public.{}").format(sql.Identifier(name)))
    for table, name in triggers:
        line.execute(
            sql.SQL("ALTER TABLE public.{} DISABLE TRIGGER {}").format(
                sql.Identifier(table), sql.Identifier(name)
            )
        )
    yield
    for _, definition in indexes:
        line.execute(definition)
    for table, name, definition in keys:
        line.execute(
            sql.SQL("ALTER TABLE public.{} ADD CONSTRAINT {} {}").format(
                sql.Identifier(table), sql.Identifier(name), sql.SQL(definition)
            )
        )
    for table, name in triggers:
        line.execute(
            sql.SQL("ALTER TABLE public.{} ENABLE TRIGGER {}").format(
                sql.Identifier(table), sql.Identifier(name)
            )
        )


def _tables(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL("public.{}").format(sql.Identifier(name)) for name in names)


def fresh_line() -> psycopg.Connection[Any]:
    """Open a session as the owner of the tables, with values written and read as in backups."""
    line = direct_connection()
    settings_pin(line)
    session_follow(line)
    return line

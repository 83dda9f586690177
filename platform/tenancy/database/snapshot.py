"""The schema of a new database as one script: what each migration sends to an empty one, recorded.

Running the migrations costs seconds of rendering model states and hardly any SQL. An empty database therefore gets the
recorded statements, migration by migration, each in a transaction with its row in ``django_migrations``; what came
after them runs as ever, also after a kill in between. The script is used only where the files of those migrations are,
byte for byte, what was recorded. Else all migrations run, which is slower and never wrong. Walls and grants are no part
of it: they are raised after every migrate.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.postgres.operations import CreateExtension
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

PATH = Path(__file__).with_name("schema.sql")
_FINGERPRINT = "-- fingerprint: "
_MIGRATION = "-- migration: "
_HEAD = """\
-- The schema of a new database. Written by `make snapshot`, never by hand: after a conflict take either side and run it
-- again. Read by tenancy.database.snapshot.
"""
_UNRECORDED = ("SELECT", "SAVEPOINT", "RELEASE", "CREATE EXTENSION")
"""Questions, the frames of operations (a migration is one transaction), and what is stated apart."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A recorded schema.

    Attributes:
        fingerprint: of the files of the migrations.
        scripts: statements of each migration by app label and name, in the order they ran.
    """

    fingerprint: str
    scripts: dict[tuple[str, str], str]

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """Read a snapshot from the text that ``str()`` gave.

        Raises:
            ValueError: the text has no fingerprint.
        """
        head, *parts = text.split(f"\n{_MIGRATION}")
        fingerprint = head.rpartition(_FINGERPRINT)[2].strip()
        if _FINGERPRINT not in head or not fingerprint:
            raise ValueError("The schema snapshot has no fingerprint. Run `make snapshot`.")
        scripts = {}
        for part in parts:
            name, _, sql = part.partition("\n")
            app, _, name = name.partition(".")
            scripts[app, name] = sql
        return cls(fingerprint, scripts)

    def __str__(self) -> str:
        parts = [f"{_MIGRATION}{app}.{name}\n{sql}" for (app, name), sql in self.scripts.items()]
        return "\n".join([f"{_HEAD}{_FINGERPRINT}{self.fingerprint}\n", *parts])

    def fits(self, loader: MigrationLoader) -> bool:
        """Say whether the migrations it was recorded from are those of this code."""
        return self.fingerprint == _fingerprint(loader, self.scripts)


def record(connection: Any) -> Snapshot:
    """Run every migration on an empty database and return what was sent.

    Raises:
        ValueError: a migration stored rows; a script without them would not be the same.
    """
    ran: list[tuple[tuple[str, str], list[str]]] = []

    def begin(action: str, migration: Any = None, fake: bool | None = None) -> None:
        if action == "apply_start":
            # Some servers have them already, and Django asks before it creates: stated for all alike.
            extensions = [
                f'CREATE EXTENSION IF NOT EXISTS "{operation.name}"'
                for operation in migration.operations
                if isinstance(operation, CreateExtension)
            ]
            ran.append(((migration.app_label, migration.name), extensions))

    def keep(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if ran and not str(sql).lstrip().upper().startswith(_UNRECORDED):
            ran[-1][1].append(connection.ops.compose_sql(sql, params) if params else str(sql))
        return execute(sql, params, many, context)

    executor = MigrationExecutor(connection, begin)
    with connection.execute_wrapper(keep):
        executor.migrate(executor.loader.graph.leaf_nodes())
    noted = executor.recorder.Migration._meta.db_table
    with connection.cursor() as cursor:
        filled = []
        for table in sorted(set(connection.introspection.table_names(cursor)) - {noted}):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')  # noqa: S608 - from the catalogue
            if cursor.fetchone()[0]:
                filled.append(table)
    if filled:
        raise ValueError(f"Migrations stored rows in {', '.join(filled)}; do that after migrate.")
    scripts = {
        key: "".join(
            f"{sql.strip().rstrip(';')};\n"
            for sql in statements
            if not sql.startswith(f'INSERT INTO "{noted}"')
        )
        for key, statements in ran
    }
    return Snapshot(_fingerprint(executor.loader, scripts), scripts)


def load(connection: Any) -> bool:
    """Give an empty database the recorded schema; return False, having done nothing, where that is not right.

    It is not where the database holds a table, or the migrations of this code are not those that were recorded.
    """
    with connection.cursor() as cursor:
        if connection.introspection.table_names(cursor):
            return False
    snapshot = Snapshot.parse(PATH.read_text(encoding="utf-8"))
    executor = MigrationExecutor(connection)
    if not snapshot.fits(executor.loader):
        return False
    executor.recorder.ensure_schema()
    for key, sql in snapshot.scripts.items():
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            if sql:
                cursor.execute(sql)
            migration = executor.loader.graph.nodes[key]
            executor.record_migration(migration)  # type: ignore[call-arg]  # the stub is older
    return True


def _fingerprint(loader: MigrationLoader, keys: Iterable[tuple[str, str]]) -> str:
    """Digest the files of the named migrations; one that is gone changes the digest too."""
    digest = hashlib.sha256()
    for key in sorted(set(keys) & set(loader.graph.nodes)):
        file = sys.modules[type(loader.graph.nodes[key]).__module__].__file__
        content = Path(file or "").read_bytes()
        digest.update(f"{key}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()

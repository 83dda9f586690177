"""The schema of a new database as one script: what the migrations send to an empty one, recorded.

Running the migrations costs seconds of rendering model states and hardly any SQL. An empty database therefore gets the
recorded statements and the names of the migrations they came from; ``migrate`` then runs whatever came after them. The
script is used only where the files of those migrations are, byte for byte, what was recorded. Else all migrations run,
which is slower and never wrong. Walls and grants are no part of it: they are raised after every migrate.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

PATH = Path(__file__).with_name("schema.sql")
_FINGERPRINT = "-- fingerprint: "
_MIGRATION = "-- migration: "
_HEAD = """\
-- The schema of a new database. Written by `make snapshot`, never by hand: after a conflict take either side and run it
-- again. Read by tenancy.database.snapshot.
"""
_UNRECORDED = frozenset({"SELECT", "SAVEPOINT", "RELEASE"})
"""Questions, and the frames of transactions: the script is one transaction."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A recorded schema.

    Attributes:
        fingerprint: of the files of the migrations that ran.
        migrations: rows of ``django_migrations``: app label and name, in order.
        sql: the statements.
    """

    fingerprint: str
    migrations: tuple[tuple[str, str], ...]
    sql: str

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """Read a snapshot from the text that ``str()`` gave.

        Raises:
            ValueError: the text has no fingerprint.
        """
        lines = text.splitlines()
        prints = [s.removeprefix(_FINGERPRINT) for s in lines if s.startswith(_FINGERPRINT)]
        if len(prints) != 1:
            raise ValueError("The schema snapshot has no fingerprint. Run `make snapshot`.")
        names = [s.removeprefix(_MIGRATION) for s in lines if s.startswith(_MIGRATION)]
        pairs = tuple((app, name) for app, _, name in (s.partition(".") for s in names))
        return cls(prints[0], pairs, text)

    def __str__(self) -> str:
        names = [f"{_MIGRATION}{app}.{name}" for app, name in self.migrations]
        return "\n".join([f"{_HEAD}{_FINGERPRINT}{self.fingerprint}", *names, "", self.sql])

    def fits(self, loader: MigrationLoader) -> bool:
        """Say whether the migrations it was recorded from are the ones of this code."""
        return self.fingerprint == _fingerprint(loader, self.migrations)


def record(connection: Any) -> Snapshot:
    """Run every migration on an empty database and return what was sent.

    Raises:
        ValueError: a migration stored rows; a script without them would not be the same.
    """
    statements: list[str] = []

    def keep(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if str(sql).split(None, 1)[0].upper() not in _UNRECORDED:
            statements.append(connection.ops.compose_sql(sql, params) if params else str(sql))
        return execute(sql, params, many, context)

    executor = MigrationExecutor(connection)
    executor.recorder.ensure_schema()
    # Noted apart, with the hour of each installation.
    journal = f'INSERT INTO "{executor.recorder.Migration._meta.db_table}"'
    with connection.execute_wrapper(keep):
        executor.migrate(executor.loader.graph.leaf_nodes())
    statements = [s for s in statements if not s.startswith(journal)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY 1")
        # The server may have them in its template, so that no migration had to ask for them.
        statements[:0] = [f'CREATE EXTENSION IF NOT EXISTS "{name}"' for (name,) in cursor]
        filled = []
        for table in sorted(set(connection.introspection.table_names(cursor))):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')  # noqa: S608 - from the catalogue
            if cursor.fetchone()[0] and table != executor.recorder.Migration._meta.db_table:
                filled.append(table)
    if filled:
        raise ValueError(f"Migrations stored rows in {', '.join(filled)}; do that after migrate.")
    names = tuple(
        executor.recorder.migration_qs.order_by("app", "name").values_list("app", "name")
    )
    sql = "".join(f"{statement.strip().rstrip(';')};\n" for statement in statements)
    return Snapshot(_fingerprint(executor.loader, names), names, sql)


def load(connection: Any) -> bool:
    """Give an empty database the recorded schema; return False, having done nothing, where that is not right.

    It is not where the database holds a table, or the migrations of this code are not those that were recorded.
    """
    with connection.cursor() as cursor:
        if connection.introspection.table_names(cursor):
            return False
    snapshot = Snapshot.parse(PATH.read_text(encoding="utf-8"))
    if not snapshot.fits(MigrationLoader(connection)):
        return False
    recorder = MigrationRecorder(connection)
    with transaction.atomic(using=connection.alias):
        recorder.ensure_schema()
        with connection.cursor() as cursor:
            cursor.execute(snapshot.sql)
        recorder.migration_qs.bulk_create(
            recorder.Migration(app=app, name=name) for app, name in snapshot.migrations
        )
    return True


def _fingerprint(loader: MigrationLoader, names: Iterable[tuple[str, str]]) -> str:
    """Digest the files of the named migrations, as far as they run on an empty database."""
    digest = hashlib.sha256()
    for key in sorted(set(names) & set(loader.graph.nodes)):
        file = sys.modules[type(loader.graph.nodes[key]).__module__].__file__
        content = Path(file or "").read_bytes()
        digest.update(f"{key}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()

"""New databases start from a recorded schema: it must be what the migrations give, walls and grants included."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config.embedded.account import programs
from tenancy.database import snapshot
from tenancy.database.base import as_login_role

ROOT = Path(__file__).resolve().parents[2]
NAME = f"groundwork_migrated_{os.getpid()}"
TAIL = 8
"""Migrations that may follow the snapshot: each operation of one costs a new database about 0.1 s of CPU."""


def _url(name: str) -> str:
    at = connection.settings_dict
    person = ":".join(quote(at[key], safe="") for key in ("USER", "PASSWORD") if at[key])
    return f"postgresql://{person}@{at['HOST']}:{at['PORT']}/{name}"


def _dump(name: str) -> list[str]:
    """Return a database's schema with its rights and policies, statement by statement."""
    said = subprocess.run(
        [programs(None, Path("/nonexistent")) / "pg_dump", "--schema-only", "-d", _url(name)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = re.sub(r"^(--.*|\\(un)?restrict .*)$", "", said, flags=re.MULTILINE)
    return [s.strip() for s in said.split(";\n") if s.strip()]


@contextmanager
def _scratch_database() -> Iterator[str]:
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {NAME}")
    try:
        yield NAME
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.mark.django_db
def test_the_snapshot_fits_the_migrations_and_few_came_after_it() -> None:
    loader = MigrationLoader(connection)
    recorded = snapshot.Snapshot.parse(snapshot.PATH.read_text(encoding="utf-8"))
    assert recorded.fits(loader), "a recorded migration changed: run `make snapshot`"
    assert len(set(loader.graph.nodes) - set(recorded.scripts)) <= TAIL, "run `make snapshot`"


@pytest.mark.django_db
def test_a_new_database_is_what_every_migration_gives() -> None:
    # The test database itself started from the snapshot: Django makes it with our migrate.
    with _scratch_database() as name:
        subprocess.run(
            [sys.executable, ROOT / "manage.py", "migrate", "--no-snapshot", "--verbosity", "0"],
            env={**os.environ, "DATABASE_URL": _url(name)},
            cwd=ROOT,
            check=True,
        )
        migrated, started = _dump(name), _dump(str(connection.settings_dict["NAME"]))
        with psycopg.connect(_url(name)) as other:
            rows = other.execute("SELECT app, name FROM django_migrations").fetchall()
    assert len(migrated) > 1000
    assert started == migrated
    with as_login_role():
        assert set(MigrationRecorder(connection).applied_migrations()) == set(rows)


@pytest.mark.django_db
def test_a_changed_migration_is_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorded = snapshot.Snapshot.parse(snapshot.PATH.read_text(encoding="utf-8"))
    changed = tmp_path / "schema.sql"
    changed.write_text(str(replace(recorded, fingerprint="0" * 64)), encoding="utf-8")
    monkeypatch.setattr(snapshot, "PATH", changed)
    monkeypatch.setattr(connection.introspection, "table_names", lambda cursor: [])
    executed: list[str] = []

    def watch(execute: Any, sql: Any, *rest: Any) -> Any:
        executed.append(str(sql))
        return execute(sql, *rest)

    with as_login_role(), connection.execute_wrapper(watch):
        assert not snapshot.load(connection)
    assert not [sql for sql in executed if not sql.lstrip().startswith("SELECT")]


@pytest.mark.django_db
def test_a_database_with_a_table_is_left_alone() -> None:
    with as_login_role():
        assert not snapshot.load(connection)

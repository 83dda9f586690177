"""A database from before the migrations were made anew opens, and ends in the schema that a new one has."""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config.embedded.account import programs
from tenancy.database.base import as_login_role
from tenancy.database.history import LAST, adopt

ROOT = Path(__file__).resolve().parents[2]
BEFORE = Path(__file__).with_name("data") / "before_new_history.sql.xz"
MARK = ("tenancy", "0002_model_entries_and_endpoints")


def _url(name: str) -> str:
    at = connection.settings_dict
    person = ":".join(quote(at[key], safe="") for key in ("USER", "PASSWORD") if at[key])
    return f"postgresql://{person}@{at['HOST']}:{at['PORT']}/{name}"


def _schema(name: str) -> list[str]:
    """Return a database's schema with its rights and policies; the columns of a table in the order of their names."""
    said = subprocess.run(
        [programs(None, Path("/nonexistent")) / "pg_dump", "--schema-only", "-d", _url(name)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = re.sub(r"^(--.*|\\(un)?restrict .*)$", "", said, flags=re.MULTILINE)
    # What a dump gave back says the same with other casts: (ARRAY['a'::varchar])::text[], ARRAY[('a'::varchar)::text].
    said = re.sub(r"::(text|character varying)(\[\])?", "", said)
    statements = (s.strip() for s in said.split(";\n"))
    tables = (re.sub(r"(?s)(^CREATE (?:UNLOGGED )?TABLE [^(]+\()(.*)\)$", _columns, s) for s in statements)
    return sorted(re.sub(r"[()]", "", s) for s in tables)


def _columns(table: re.Match[str]) -> str:
    return table[1] + "\n".join(sorted(line.strip().rstrip(",") for line in table[2].strip().split("\n")))


@contextmanager
def _database_from_before() -> Iterator[str]:
    name = f"groundwork_before_{os.getpid()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        with psycopg.connect(_url(name)) as other:
            other.execute(lzma.decompress(BEFORE.read_bytes()))
        yield name
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


def _manage(name: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env={**os.environ, "DATABASE_URL": _url(name)},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.django_db
def test_a_database_from_before_opens_with_its_data_and_has_the_schema_of_a_new_one() -> None:
    with _database_from_before() as name:
        _manage(name, "migrate", "--verbosity", "0")
        hits = json.loads(
            _manage(
                name, "search", "--tenant", "harbour", "--json", "how long is the brake of the Model 7 used"
            )
        )
        with psycopg.connect(_url(name)) as other:
            rows = set(other.execute("SELECT app, name FROM django_migrations").fetchall())
        opened = _schema(name)
    assert "every 400 hours" in json.dumps(hits)
    new = _schema(str(connection.settings_dict["NAME"]))
    assert len(new) > 1000
    assert opened == new
    assert rows == set(MigrationLoader(connection).disk_migrations)


def _applied() -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


@pytest.mark.django_db
def test_a_database_that_stopped_on_the_way_is_refused_and_left_as_it_was() -> None:
    recorder = MigrationRecorder(connection)
    with as_login_role():
        for app, name in [MARK, *LAST.items()]:
            if app != "collections":
                recorder.record_applied(app, name)
        before = _applied()
        with pytest.raises(
            CommandError, match=r"did not reach collections\.0017_installed_embedders\. Start the last"
        ):
            adopt(connection)
        assert _applied() == before


@pytest.mark.django_db
def test_a_new_database_is_left_alone() -> None:
    with as_login_role():
        before = _applied()
        assert not adopt(connection)
        assert _applied() == before

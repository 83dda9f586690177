"""A database from before the migrations were made anew opens, and ends in the schema that a new one has."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tenancy.database.base import as_login_role
from tenancy.database.history import LAST, adopt
from tests.old_schema import database_url, dumped

ROOT = Path(__file__).resolve().parents[2]
BEFORE = Path(__file__).with_name("data") / "before_new_history.sql.xz"
MARK = ("tenancy", "0002_model_entries_and_endpoints")


@contextmanager
def _database_from_before() -> Iterator[str]:
    name = f"groundwork_before_{os.getpid()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        with psycopg.connect(database_url(name)) as other:
            other.execute(lzma.decompress(BEFORE.read_bytes()))
        yield name
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


def _manage(name: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env={**os.environ, "DATABASE_URL": database_url(name)},
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
        with psycopg.connect(database_url(name)) as other:
            rows = set(other.execute("SELECT app, name FROM django_migrations").fetchall())
        opened = dumped(name)
    assert "every 400 hours" in json.dumps(hits)
    new = dumped(str(connection.settings_dict["NAME"]))
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

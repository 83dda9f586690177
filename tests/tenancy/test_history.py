"""A database from before the migrations were made anew opens, and ends in the schema that a new one has."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tenancy.database.base import as_login_role
from tenancy.database.history import LAST, adopt
from tests.old_schema import database_url, dumped

BEFORE = Path(__file__).with_name("data") / "before_new_history.sql.xz"
MARK = ("tenancy", "0002_model_entries_and_endpoints")


@contextmanager
def _working_on_a_database_from_before() -> Iterator[str]:
    before = str(connection.settings_dict["NAME"])
    name = f"groundwork_before_{os.getpid()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        with psycopg.connect(database_url(name)) as other:
            other.execute(lzma.decompress(BEFORE.read_bytes()))
        _work_on(name)
        yield name
    finally:
        _work_on(before)
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


def _work_on(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()  # its numbers are others there


@pytest.mark.django_db(transaction=True)
def test_a_database_from_before_opens_with_its_data_and_has_the_schema_of_a_new_one() -> None:
    with _working_on_a_database_from_before() as name:
        call_command("migrate", verbosity=0)
        hits = StringIO()
        call_command(
            "search", "how long is the brake of the Model 7 used", tenant="harbour", json=True, stdout=hits
        )
        rows = _applied()
        opened = dumped(name)
    assert "every 400 hours" in hits.getvalue()
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

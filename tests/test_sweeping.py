"""After a test that commits, nothing of it is left for the next one."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import psycopg
import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection

from tenancy.database.base import as_login_role
from tenancy.row_security import tenant_models
from tests import sweeping
from tests.permissions.world import Side, make_row
from tests.servers import database_url


def rows_left() -> list[str]:
    """Return the tenants' tables that hold a row."""
    with as_login_role(), connection.cursor() as cursor:
        left = []
        for table in sorted(m._meta.db_table for m in tenant_models()):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')
            if cursor.fetchone()[0]:
                left.append(table)
        return left


@pytest.mark.parametrize("many", [1, 2000], ids=["truncated", "deleted"])
@pytest.mark.django_db(transaction=True)
def test_every_row_goes_and_what_migrate_made_stays(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side()
    for label in ("conversations.Turn", "evaluations.Trial", "collections.FileRevision"):
        make_row(apps.get_model(label), side.tenant, side.user("owner"))
    assert len(rows_left()) > 10
    monkeypatch.setattr(sweeping, "_MANY_ROWS", many)
    sweeping.sweep()
    assert rows_left() == []
    assert sweeping.rows_left() == {}
    assert ContentType.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_sweep_goes_on_after_a_test_that_cut_every_connection() -> None:
    Side()
    assert sweeping.rows_left() != {}
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] >= 1
    sweeping.sweep()
    assert sweeping.rows_left() == {}


@pytest.mark.django_db(transaction=True)
def test_a_server_that_still_writes_is_waited_for_and_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it writes first: the sweep holds no table of those that it has while it waits for another."""
    Side()
    tables, tried = sweeping._tables(), threading.Event()

    def pause(seconds: float) -> None:
        tried.set()
        time.sleep(seconds)

    monkeypatch.setattr(sweeping, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    with psycopg.connect(database_url()) as server:
        server.execute("SET lock_timeout = '60s'")
        server.execute(f'DELETE FROM "{tables[-1]}" WHERE false')
        sweep = threading.Thread(target=sweeping.sweep)
        sweep.start()
        assert tried.wait(60)
        server.execute(f'DELETE FROM "{tables[0]}" WHERE false')
        assert sweep.is_alive()
    sweep.join(60)
    assert sweeping.rows_left() == {}


@pytest.mark.django_db(transaction=True)
def test_nothing_that_a_test_sets_on_its_connection_stays() -> None:
    with as_login_role(), connection.cursor() as cursor:
        before = connection.connection.info.backend_pid
        cursor.execute("SET statement_timeout = '7s'; SELECT pg_advisory_lock(7); LISTEN something")
    sweeping.after_commits()
    with as_login_role(), connection.cursor() as cursor:
        assert connection.connection.info.backend_pid == before, "another connection costs Postgres 80 ms"
        cursor.execute(
            """SELECT current_setting('statement_timeout'), (SELECT count(*) FROM pg_listening_channels()),
                      (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"""
        )
        assert cursor.fetchone() == ("0", 0, 0)


@pytest.mark.django_db
def test_rows_that_could_not_be_committed_are_found_before_they_are_rolled_back() -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE one (id int PRIMARY KEY) ON COMMIT DROP;"
            "CREATE TEMPORARY TABLE two (id int REFERENCES one DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP"
        )
        assert not sweeping.constraints_are_to_check(connection)
        cursor.execute("SET CONSTRAINTS ALL DEFERRED; INSERT INTO two VALUES (7)")
        with pytest.raises(IntegrityError):
            sweeping.constraints_are_to_check(connection)

"""A migration waits for a lock in short tries: others pass between them, and it ends when the lock is let go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ModelState, ProjectState
from django.test.utils import CaptureQueriesContext

from config.env import database_settings
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.row_security import row_security_apply
from tenancy.scope import tenant_scope
from tenancy.upgrades import locks
from tenancy.upgrades.operations import AddIndexConcurrently
from tests.cast import Cast
from tests.old_schema import keys_as_before
from tests.pgbouncer import pooled
from webhooks.models import Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "webhooks_webhook"


@pytest.fixture
def behind() -> Iterator[None]:
    """The database lacks the last migrations of the webhooks; the test brings them, which is its subject."""
    with as_login_role():
        MigrationExecutor(connection).migrate([("webhooks", "0001_initial")])
    try:
        yield
    finally:
        if "rotated_at" not in columns():
            call_command("migrate", verbosity=0)


@pytest.fixture
def held() -> Iterator[psycopg.Connection[Any]]:
    """A session that has read the table and forgot to end its transaction."""
    with direct_connection() as session:
        session.execute("SET application_name = 'forgotten'")
        session.execute("BEGIN")
        session.execute(f"SELECT count(*), 'a secret' FROM {TABLE}")
        yield session


class Told(StringIO):
    """Calls back at each line that tells of a lock, in the thread that waits for it."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        super().__init__()
        self.count, self._tell = 0, tell

    def write(self, text: str) -> int:
        if "is in use" in text:
            self.count += 1
            self._tell(self.count)
        return super().write(text)


def columns() -> set[str]:
    with connection.cursor() as cursor:
        return {c.name for c in connection.introspection.get_table_description(cursor, TABLE)}


def test_others_pass_between_the_tries_and_it_ends_when_the_lock_is_let_go(
    behind: None, held: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[int] = []
    paused: list[float] = []

    def others_work(count: int) -> None:
        # Nothing waits for the table now, so nobody waits behind it: this would hang if migrate still did.
        with direct_connection() as other:
            other.execute("SET statement_timeout = '60s'")
            passed.extend(other.execute(f"SELECT count(*) FROM {TABLE}").fetchone() or ())
        if count == 3:
            held.execute("COMMIT")

    out = Told(others_work)
    monkeypatch.setattr(locks, "pause", paused.append)
    assert "rotated_at" not in columns()
    call_command("migrate", verbosity=0, lock_wait=0.1, lock_tries=9, stdout=out)
    assert "rotated_at" in columns()
    assert passed == [0, 0, 0]
    assert paused == [1, 2, 4]
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{TABLE} is in use (session {held.info.backend_pid} of ")
    assert "forgotten: idle in transaction" in lines[0]
    assert lines[0].endswith("Trying again in 1 s, 1 of 9 tries done")
    assert "secret" not in out.getvalue()
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


def test_after_the_last_try_it_says_which_table_and_which_session(
    behind: None, held: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "pause", lambda seconds: None)
    pid = held.info.backend_pid
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, lock_wait=0.1, lock_tries=2, stdout=StringIO())
    words = str(refused.value)
    assert words.startswith(f"{TABLE} stayed in use through 2 tries. In the way: session {pid} of ")
    assert f"SELECT pg_terminate_backend({pid});" in words
    assert "rotated_at" not in columns()
    # What it says to do helps.
    held.execute("COMMIT")
    call_command("migrate", verbosity=0, lock_wait=0.1, lock_tries=1)
    assert "rotated_at" in columns()


def test_walls_wait_in_tries_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} NO FORCE ROW LEVEL SECURITY")
    with direct_connection() as session:
        session.execute("BEGIN")
        session.execute(f"LOCK TABLE {TABLE} IN ACCESS SHARE MODE")
        monkeypatch.setattr(locks, "pause", lambda seconds: session.execute("ROLLBACK"))
        out = StringIO()
        call_command("migrate", verbosity=0, lock_wait=0.1, stdout=out)
    assert out.getvalue().count(f"{TABLE} is in use") == 1
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT relforcerowsecurity FROM pg_class WHERE relname = %s", [TABLE])
        assert cursor.fetchone() == (True,)


@pytest.fixture
def migrating() -> Iterator[psycopg.Connection[Any]]:
    """The session of another ``migrate`` that is at work."""
    with direct_connection() as session:
        session.execute("SET application_name = 'the other pod'")
        session.execute("SELECT pg_advisory_lock(%s)", [locks._MIGRATES])
        yield session


def test_two_migrates_never_run_at_once(
    behind: None, migrating: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def passed(seconds: float) -> None:
        seen.append("rotated_at" in columns())
        if len(seen) == 2:
            migrating.execute("SELECT pg_advisory_unlock_all()")

    monkeypatch.setattr(locks, "pause", passed)
    out = StringIO()
    call_command("migrate", verbosity=0, stdout=out)
    assert seen == [False, False]
    assert "rotated_at" in columns()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"Another migrate is at work (session {migrating.info.backend_pid} of ")
    assert ", the other pod, for " in lines[0]
    # It is free again for the next one.
    assert migrating.execute("SELECT pg_try_advisory_lock(%s)", [locks._MIGRATES]).fetchone() == (True,)


def test_a_migrate_that_waited_in_vain_for_another_says_so_and_a_plan_waits_for_none(
    migrating: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "pause", lambda seconds: None)
    call_command("migrate", plan=True, verbosity=0, stdout=StringIO())
    with pytest.raises(CommandError, match=r"Another migrate is still at work \(session .* after 2 tries"):
        call_command("migrate", verbosity=0, lock_tries=2, stdout=StringIO())


def test_another_failure_is_not_tried_again() -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '1ms'; SELECT pg_sleep(60)")

    with as_login_role():
        try:
            with pytest.raises(OperationalError):
                locks.in_tries(connection, work, say=calls.append)  # type: ignore[arg-type]
        finally:
            connection.close()
    assert calls == [1]


def test_migrate_goes_past_a_pooler(tmp_path: Path, settings: Any, behind: None) -> None:
    """``lock_timeout`` belongs to a session: behind a pooler it would bind whoever comes next."""
    seen: list[tuple[str, str]] = []

    def noted(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        at = context["connection"].settings_dict
        seen.append((str(sql), str(at["PORT"])))
        return execute(sql, params, many, context)

    direct = dict(connection.settings_dict)
    settings.LISTEN_DATABASE = {k: direct[k] for k in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
    with pooled(tmp_path / "pooler") as url:
        through = database_settings(url, pool=False)
        connection.close()
        connection.settings_dict.update({k: through[k] for k in ("HOST", "PORT", "PASSWORD")})
        try:
            with connection.execute_wrapper(noted):
                call_command("migrate", verbosity=0)
            assert str(connection.settings_dict["PORT"]) == str(through["PORT"])
        finally:
            connection.close()
            connection.settings_dict.update({k: direct[k] for k in ("HOST", "PORT", "PASSWORD")})
    altering = [port for sql, port in seen if "ADD COLUMN" in sql]
    assert altering
    assert set(altering) == {str(direct["PORT"])}


def test_an_index_built_concurrently_waits_longer_and_then_says_for_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stops nobody while it waits for old transactions, so the short bound is not for it."""
    state = ProjectState()
    state.add_model(
        ModelState(
            "webhooks",
            "Webhook",
            [("id", models.BigAutoField(primary_key=True)), ("url", models.TextField())],
        )
    )
    operation = AddIndexConcurrently("webhook", models.Index(fields=["url"], name="by_url"))
    after = state.clone()
    operation.state_forwards("webhooks", after)
    waits: list[str] = []

    def build() -> None:
        with (
            connection.execute_wrapper(_note_timeout(waits)),
            connection.schema_editor(atomic=False) as editor,
        ):
            operation.database_forwards("webhooks", editor, state, after)

    monkeypatch.setattr(locks, "LONG_S", 0.1)
    monkeypatch.setattr(locks, "pause", lambda seconds: None)
    with as_login_role(), direct_connection() as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        session.execute(f"INSERT INTO {TABLE} SELECT * FROM {TABLE}")
        told: list[str] = []
        pid = session.info.backend_pid

        def say(words: str) -> None:
            told.append(words)
            session.execute("ROLLBACK")

        try:
            locks.in_tries(connection, build, say=say, wait_s=0.05)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP INDEX IF EXISTS by_url")
    assert len(told) == 1
    assert f"session {pid} of " in told[0]
    assert waits[0] == "0.1s"
    assert "50ms" in waits


def _note_timeout(waits: list[str]) -> Any:
    def noted(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if str(sql).startswith("SET lock_timeout"):
            waits.append(str(sql).split("'")[1])
        return execute(sql, params, many, context)

    return noted


@pytest.fixture
def contracted() -> Iterator[None]:
    """Old keys that a test made are widened again."""
    yield
    row_security_apply(connection, contract=True)


@pytest.mark.usefixtures("contracted")
def test_walls_of_a_table_with_rows_are_checked_under_a_weak_lock(cast: Cast) -> None:
    """A new reference in a big table must not stop its writers, nor one to it."""
    with tenant_scope(cast.tenant.pk):
        webhook = Webhook.objects.create(tenant=cast.tenant, url="https://example.org", secret_encrypted=b"x")
        WebhookDelivery.objects.create(tenant=cast.tenant, webhook=webhook, object_key="1", payload={})
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            """SELECT n.conname, n.conrelid::regclass::text, n.confrelid::regclass::text FROM pg_constraint n
               WHERE n.contype = 'f' AND n.conname LIKE '%wall' AND pg_relation_size(n.conrelid) > 0
                 AND pg_relation_size(n.confrelid) > 0 ORDER BY 1 LIMIT 1"""
        )
        wall, table, target = cursor.fetchone()
        keys_as_before(cursor, table, target)
        key = f"{target}_tenant_key"[-63:]
        cursor.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
        before = cursor.fetchone()
        cursor.execute(f'ALTER TABLE {target} DROP CONSTRAINT "{key}" CASCADE')
    with CaptureQueriesContext(connection) as said:
        row_security_apply(connection)
    sql = [q["sql"] for q in said.captured_queries]
    assert any(s.startswith(f'CREATE UNIQUE INDEX CONCURRENTLY "{key}"') for s in sql)
    added = next(s for s in sql if f'ADD CONSTRAINT "{wall}"' in s)
    assert added.endswith("NOT VALID")
    assert f'ALTER TABLE "{table}" VALIDATE CONSTRAINT "{wall}"' in sql
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
        assert cursor.fetchone() == before
        cursor.execute("SELECT count(*) FROM pg_constraint WHERE NOT convalidated")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid")
        assert cursor.fetchone() == (0,)
    with CaptureQueriesContext(connection) as again:
        row_security_apply(connection)
    assert [
        q["sql"] for q in again.captured_queries if q["sql"].startswith(("ALTER TABLE", "CREATE UNI"))
    ] == []


@pytest.mark.usefixtures("contracted")
def test_a_key_whose_index_was_built_before_a_lock_came_in_the_way_is_not_built_again(cast: Cast) -> None:
    with as_login_role(), connection.cursor() as cursor:
        table, key = TABLE, f"{TABLE}_tenant_key"
        keys_as_before(cursor, table)
        cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{key}" CASCADE')
        cursor.execute(f'CREATE UNIQUE INDEX "{key}" ON {table} (tenant_id, id)')
        cursor.execute("SELECT oid FROM pg_class WHERE relname = %s", [key])
        before = cursor.fetchone()
    row_security_apply(connection)
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT conindid FROM pg_constraint WHERE conname = %s", [key])
        assert cursor.fetchone() == before

"""The scope is in force for one transaction and stays on no connection, whatever is sent and however it ends."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from apps.collections.models import Collection
from apps.collections.storage.bulk import binary_cursor
from jobs.notify import notify
from tenancy.database.base import as_login_role
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tests.cast import Cast
from tests.factories import make_collection
from tests.patience import PATIENCE_S
from tests.servers import database_url

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = f"SELECT name FROM {Collection._meta.db_table} ORDER BY name"
WHO = "SELECT current_user, current_setting('app.tenant_id', true)"


@pytest.fixture
def two(cast: Cast) -> Cast:
    make_collection(cast.tenant, "Ours")
    make_collection(cast.other_tenant, "Theirs")
    return cast


def _raw() -> Any:
    connection.ensure_connection()
    return connection.connection


def _left() -> tuple[Any, ...]:
    """Return what a connection carries into the next transaction: as its bare protocol shows it."""
    found: Any = psycopg.ClientCursor(_raw()).execute(WHO).fetchone()
    return found[0] == connection.settings_dict["USER"], found[1] or ""


def _ask(sql: str = NAMES) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [row[0] for row in cursor.fetchall()]


def test_a_statement_leaves_nothing_on_its_connection(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        assert _ask() == ["Ours"]
        assert _left() == (True, "")
        with transaction.atomic():
            assert _ask() == ["Ours"]
            assert _ask("SELECT current_user") == ["groundwork_rw"]
        assert _left() == (True, "")


def test_a_raw_connection_has_no_rows_without_a_scope(two: Cast) -> None:
    assert _raw().execute(NAMES).fetchall() == []
    with tenant_scope(two.tenant.pk):
        assert _raw().execute(NAMES).fetchall() == [("Ours",)]
        assert _raw().execute(b"" + NAMES.encode()).fetchall() == [("Ours",)]
        assert _raw().execute(psycopg.sql.SQL(NAMES)).fetchall() == [("Ours",)]


def test_the_scope_changes_inside_of_a_transaction_and_back(two: Cast) -> None:
    with transaction.atomic():
        with tenant_scope(two.tenant.pk):
            assert _ask() == ["Ours"]
        with platform_scope():
            assert _ask() == ["Ours", "Theirs"]
        assert _ask() == []
        with as_login_role():
            assert _ask("SELECT current_user") == [connection.settings_dict["USER"]]
        with tenant_scope(two.other_tenant.pk):
            assert _ask() == ["Theirs"]


def test_a_value_that_cannot_be_sent_does_not_pass_for_a_scope(two: Cast) -> None:
    with transaction.atomic():
        with platform_scope():
            assert _ask() == ["Ours", "Theirs"]
        with tenant_scope(two.tenant.pk):
            with pytest.raises(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT %s", [cast(Any, object())])
            assert _ask() == ["Ours"]


def test_an_error_outside_of_a_transaction_is_over_with_its_statement(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        with pytest.raises(DatabaseError, match="division by zero"):
            _ask("SELECT 1/0")
        assert _ask() == ["Ours"]


def test_rows_of_binary_and_named_cursors_are_the_scopes(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        with binary_cursor() as cursor:
            assert cursor.execute(NAMES).fetchall() == [("Ours",)]
        with transaction.atomic(), binary_cursor("named") as cursor:
            assert cursor.execute(NAMES).fetchall() == [("Ours",)]
        assert list(Collection.objects.values_list("name", flat=True).iterator()) == ["Ours"]
        with transaction.atomic():
            assert list(Collection.objects.values_list("name", flat=True).iterator()) == ["Ours"]
    assert list(Collection.objects.iterator()) == []


def test_many_statements_at_once_are_the_scopes(two: Cast) -> None:
    table = Collection._meta.db_table
    with tenant_scope(two.tenant.pk), connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {table} SET description = %s WHERE name = %s", [("a", "Ours"), ("b", "Theirs")]
        )
    with platform_scope():
        assert list(Collection.objects.order_by("name").values_list("description", flat=True)) == ["a", ""]


def test_bulk_rows_need_a_transaction(two: Cast) -> None:
    with tenant_scope(two.tenant.pk), connection.cursor() as cursor:
        with (
            pytest.raises(RuntimeError, match="outside of a transaction"),
            cursor.copy(f"COPY ({NAMES}) TO STDOUT"),
        ):
            pytest.fail("it was let through")
        with transaction.atomic(), cursor.copy(f"COPY ({NAMES}) TO STDOUT") as copy:
            assert list(copy.rows()) == [("Ours",)]


def _look_at_all_and_fail() -> None:
    with _raw().transaction(), platform_scope():
        assert len(_raw().execute(NAMES).fetchall()) == 2
        raise ZeroDivisionError


def test_a_transaction_that_psycopg_opens_knows_nothing_of_the_one_before(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        assert _ask() == ["Ours"]
        for _ in range(2):
            with _raw().transaction():
                assert _raw().execute(NAMES).fetchall() == [("Ours",)]
        with _raw().transaction():
            with pytest.raises(ZeroDivisionError):
                _look_at_all_and_fail()
            assert _raw().execute(NAMES).fetchall() == [("Ours",)]


_TOLD = """
CREATE TABLE committed (n int);
CREATE FUNCTION commit_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.n < 0 THEN RAISE EXCEPTION 'refused'; END IF;
    UPDATE committed SET n = CASE current_setting('synchronous_commit') WHEN 'on' THEN 1 ELSE 2 END;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER told AFTER INSERT ON committed DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION commit_told();
"""


def test_commit_that_others_wait_for_is_on_disk_only_after_it_let_them_go(two: Cast) -> None:
    """One that notifies, or adds to a workspace's chain of events, has a lock that one commit has at a time."""
    with as_login_role(), connection.cursor() as cursor, psycopg.connect(database_url()) as other:
        other.autocommit = True
        other.execute("LISTEN groundwork")
        cursor.execute(_TOLD)
        cursor.execute("SET synchronous_commit TO on")
        try:
            found = []
            for also in (
                lambda: None,
                lambda: notify(two.tenant.pk, "some", 1),
                lambda: audit_record(tenant=two.tenant, actor=two.actor("owner"), action="tests.some"),
            ):
                with transaction.atomic():
                    cursor.execute("DELETE FROM committed")
                    cursor.execute("INSERT INTO committed VALUES (0)")
                    also()
                cursor.execute("SELECT n, pg_current_wal_flush_lsn() - '0/0' FROM committed")
                found.append(cursor.fetchone())
            assert [n for n, _ in found] == [1, 2, 2]
            assert found[0][1] < found[1][1] < found[2][1]
            assert [word.payload for word in other.notifies(timeout=PATIENCE_S, stop_after=1)] == [
                f"{two.tenant.pk}:some 1"
            ]
            refused = "SELECT pg_notify('groundwork', 'some'); INSERT INTO committed VALUES (-1)"
            with pytest.raises(DatabaseError, match="refused"), transaction.atomic():
                cursor.execute(refused)
            cursor.execute("SELECT count(*) FROM committed")
            assert cursor.fetchone() == (1,)
            assert not list(other.notifies(timeout=0))
        finally:
            cursor.execute("RESET synchronous_commit")
            cursor.execute("DROP TABLE committed; DROP FUNCTION commit_told")

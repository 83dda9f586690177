"""Keys of tenants' tables get the tenant: at once where nobody can use the table yet, by a command where servers may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from apps.collections.models import Collection
from apps.tools.models import Toolkit, ToolkitMember
from tenancy.database.base import as_login_role
from tenancy.row_security import row_security_apply, tenant_models
from tenancy.scope import tenant_scope
from tenancy.wide_keys import Key, keys_narrow, keys_widen, tables_wide
from tests.cast import Cast
from tests.factories import make_collection
from tests.old_schema import keys_as_before, schema

pytestmark = pytest.mark.django_db(transaction=True)
TABLES = [m._meta.db_table for m in tenant_models()]
SOME = ("collections_collection", "collections_document", "collections_chunk", "jobs_job", "runs_run")
"""Those that most others refer to: changing all 150 tables to and fro takes some seconds each time."""


@pytest.fixture
def cursor() -> Iterator[Any]:
    with as_login_role(), connection.cursor() as opened:
        yield opened


@pytest.fixture
def old(cursor: Any) -> Iterator[list[Any]]:
    """A database of the version before; what its schema was at first."""
    first = schema(cursor)
    keys_as_before(cursor)
    yield first
    row_security_apply(connection, contract=True)


@pytest.fixture
def old_in_part(cursor: Any) -> Iterator[list[Any]]:
    """A database with some tables of the version before; what its schema was at first."""
    first = schema(cursor)
    keys_as_before(cursor, *SOME)
    assert {k.table for k in keys_narrow(cursor, TABLES)} == set(SOME)
    yield first
    row_security_apply(connection, contract=True)


def statements(said: CaptureQueriesContext) -> list[str]:
    """Return what changed the schema, functions left out: they are made again each time."""
    words = ("ALTER TABLE", "ALTER INDEX", "CREATE UNIQUE", "DROP INDEX")
    return [q["sql"] for q in said.captured_queries if q["sql"].startswith(words)]


def test_servers_of_the_version_before_keep_their_keys_until_they_are_gone(
    old: list[Any], cursor: Any, cast: Cast
) -> None:
    with tenant_scope(cast.tenant.pk):
        make_collection(cast.tenant)
    before = schema(cursor)
    assert len(keys_narrow(cursor, TABLES)) > 150
    with CaptureQueriesContext(connection) as said:
        row_security_apply(connection)
    assert statements(said) == []
    assert schema(cursor) == before
    assert {k.table for k in keys_narrow(cursor, TABLES)} == set(TABLES)

    told = StringIO()
    call_command("migrate", stdout=told)
    assert "schema_contract" in told.getvalue()

    with CaptureQueriesContext(connection) as said:
        call_command("schema_contract", stdout=StringIO())
    assert schema(cursor) == old
    made = statements(said)
    filled = [s for s in made if s.startswith("CREATE UNIQUE") and "collections_collection " in s]
    assert len(filled) == 1
    assert all(s.startswith("CREATE UNIQUE INDEX CONCURRENTLY") for s in filled)
    added = [s for s in made if "ADD CONSTRAINT" in s and "REFERENCES collections_collection(" in s]
    assert added
    assert all(s.endswith("NOT VALID") for s in added)

    told = StringIO()
    with CaptureQueriesContext(connection) as said:
        call_command("schema_contract", stdout=told)
    assert statements(said) == []
    assert "Nothing left" in told.getvalue()


def test_a_dry_run_tells_and_changes_nothing(old_in_part: list[Any], cursor: Any) -> None:
    before = schema(cursor)
    told = StringIO()
    call_command("schema_contract", "--dry-run", stdout=told)
    assert schema(cursor) == before
    assert "collections_chunk: its primary key lacks tenant_id" in told.getvalue()
    assert "runs_run: runs_run_job_id_wall changes rows when what they refer to goes" in told.getvalue()


def stopping(kind: str, which: int) -> Any:
    """Return what dies instead of this one of the statements of a kind."""
    left = which

    def stop(execute: Any, sql: Any, *context: Any) -> Any:
        nonlocal left
        left -= bool(re.search(kind, str(sql)))
        if not left:
            raise KeyboardInterrupt
        return execute(sql, *context)

    return stop


def test_what_was_killed_between_two_statements_again_and_again_ends_right(
    old_in_part: list[Any], cursor: Any
) -> None:
    """While indexes are built, then while keys are exchanged, then while references are laid again."""
    for kind, which in (("^CREATE UNIQUE", 5), ("ADD CONSTRAINT .* USING INDEX", 3), ("FOREIGN KEY", 9)):
        before = schema(cursor)
        with connection.execute_wrapper(stopping(kind, which)), pytest.raises(KeyboardInterrupt):
            row_security_apply(connection, contract=True)
        assert schema(cursor) not in (before, old_in_part)
    row_security_apply(connection, contract=True)
    assert schema(cursor) == old_in_part


def test_a_unique_index_that_comes_later_is_widened_at_once(cursor: Any) -> None:
    first = schema(cursor)
    cursor.execute(
        "CREATE UNIQUE INDEX later_once ON webhooks_webhook (lower(url), (')'::text)) WHERE url <> '(''\"'"
    )
    assert [k.name for k in keys_narrow(cursor, TABLES)] == ["later_once"]
    try:
        row_security_apply(connection)
        assert keys_narrow(cursor, TABLES) == []
        cursor.execute("SELECT pg_get_indexdef('later_once'::regclass)")
        (definition,) = cursor.fetchone()
        assert ", tenant_id) WHERE (" in definition
        assert "lower(" in definition
    finally:
        cursor.execute("DROP INDEX later_once")
    assert schema(cursor) == first


def test_a_new_table_gets_its_keys_before_its_walls(cursor: Any) -> None:
    cursor.execute("CREATE TABLE shelf (id bigint PRIMARY KEY, tenant_id bigint NOT NULL, code text, "
                   "CONSTRAINT shelf_code UNIQUE NULLS NOT DISTINCT (code) DEFERRABLE INITIALLY DEFERRED)")  # fmt: skip
    try:
        assert [k.name for k in keys_widen(cursor, ["shelf"])] == ["shelf_pkey", "shelf_code"]
        cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shelf'::regclass "
                       "AND contype <> 'n' ORDER BY 1")  # fmt: skip
        assert [d for (d,) in cursor.fetchall()] == [
            "PRIMARY KEY (id, tenant_id)",
            "UNIQUE NULLS NOT DISTINCT (code, tenant_id) DEFERRABLE INITIALLY DEFERRED",
        ]
        assert "shelf" in tables_wide(cursor)
    finally:
        cursor.execute("DROP TABLE shelf")


def test_what_isn_t_the_definition_of_a_unique_index_is_refused() -> None:
    with pytest.raises(ValueError, match="not the definition"):
        Key("t", "i", "CREATE INDEX i ON t USING btree (a)", False, False, "").wide(concurrently=False)
    with pytest.raises(ValueError, match="stays open"):
        Key("t", "i", "CREATE UNIQUE INDEX i ON t USING btree (a", False, False, "").wide(concurrently=False)


@pytest.mark.parametrize("is_old", [False, True])
def test_rows_are_counted_by_their_table_s_key(
    request: pytest.FixtureRequest, cast: Cast, is_old: bool
) -> None:
    """Django groups by ``id`` alone, on which no other column depends any more."""
    if is_old:
        request.getfixturevalue("old_in_part")
    with tenant_scope(cast.tenant.pk):
        make_collection(cast.tenant, "One")
        rows: Any = Collection.objects.annotate(found=Count("documents")).select_related("tenant")
        with CaptureQueriesContext(connection) as said:
            assert [(r.name, r.found, r.tenant.name) for r in rows] == [("One", 0, cast.tenant.name)]
        (sql,) = [q["sql"] for q in said.captured_queries if "GROUP BY" in q["sql"]]
        grouped = sql.split("GROUP BY ")[1]
        assert grouped.count("collections_collection") == 2, grouped
        some: Any = Collection.objects.annotate(found=Count("documents")).only("name")
        assert [(r.name, r.found) for r in some] == [("One", 0)]


def test_what_is_unique_in_a_row_s_parent_stays_so(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        kit = Toolkit.objects.create(tenant=cast.tenant, name="kit")
        ToolkitMember.objects.create(tenant=cast.tenant, toolkit=kit, tool_name="now")
        with pytest.raises(IntegrityError, match="toolkit_member_once"), transaction.atomic():
            ToolkitMember.objects.create(tenant=cast.tenant, toolkit=kit, tool_name="now")

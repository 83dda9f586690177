"""Prepared statements: whose rows a plan shows depends on who asks now, and never on who asked when it was made."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from apps.collections.models import Collection
from apps.collections.storage.bulk import binary_cursor
from tenancy.database import cursors, prepared
from tenancy.database.base import as_login_role
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.factories import make_collection
from tests.pgbouncer import pooled

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = Collection._meta.db_table
NAMES = f"SELECT name FROM {TABLE} ORDER BY name"
"""No condition at all: nothing but the wall decides."""
BY_NAME = f"SELECT name FROM {TABLE} WHERE name = ANY (%s) ORDER BY name"
ALL_NAMES = ["Ours", "Theirs"]
FORCED = ("force_generic_plan", "force_custom_plan", "auto")


@pytest.fixture
def two(cast: Cast) -> Iterator[Cast]:
    make_collection(cast.tenant, "Ours")
    make_collection(cast.other_tenant, "Theirs")
    connection.close()  # nothing is prepared on the next one
    yield cast
    connection.close()


def _raw() -> Any:
    connection.ensure_connection()
    return connection.connection


def _session(sql: str) -> list[Any]:
    """Run a statement on the connection as it is, past every cursor of ours."""
    result = _raw().pgconn.exec_(sql.encode())
    assert not result.error_message, result.error_message
    return [[result.get_value(row, at) for at in range(result.nfields)] for row in range(result.ntuples)]


def _held() -> list[str]:
    """Return the texts of what is prepared on this connection."""
    return [
        row[0].decode()
        for row in _session("SELECT statement FROM pg_prepared_statements ORDER BY prepare_time")
    ]


def _ask(sql: str = NAMES, params: Any = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def _scopes(two: Cast) -> dict[str, tuple[Callable[[], AbstractContextManager[None]], list[str]]]:
    return {
        "ours": (lambda: tenant_scope(two.tenant.pk), ["Ours"]),
        "theirs": (lambda: tenant_scope(two.other_tenant.pk), ["Theirs"]),
        "nobody": (nullcontext, []),
        "platform": (platform_scope, ALL_NAMES),
    }


def _by_orm() -> list[str]:
    return list(Collection.objects.order_by("name").values_list("name", flat=True))


def _by_array() -> list[str]:
    return _ask(BY_NAME, [ALL_NAMES])


def _by_binary(sql: str = NAMES, params: Any = None) -> list[str]:
    with binary_cursor() as cursor:
        return [row[0] for row in cursor.execute(sql, params).fetchall()]


@pytest.mark.parametrize("plans", FORCED)
@pytest.mark.parametrize("ask", [_ask, _by_array, _by_orm, _by_binary])
def test_rounds_of_tenants_and_roles_on_one_connection_see_their_own_rows(
    ask: Callable[[], list[str]], plans: str, two: Cast
) -> None:
    _session(f"SET plan_cache_mode = {plans}")
    scopes = _scopes(two)
    orders = list(itertools.permutations(scopes))
    for order in orders:
        for name in order:
            scope, own = scopes[name]
            with scope():
                assert ask() == own, f"{name} in {order}"
    uses = _session("SELECT generic_plans, custom_plans FROM pg_prepared_statements")
    assert sum(int(a) + int(b) for a, b in uses) > 3 * len(orders)  # the rounds did run what was prepared
    if plans == "force_generic_plan":
        assert all(int(custom) == 0 for _, custom in uses)


@pytest.mark.parametrize("plans", FORCED)
def test_a_scope_that_changes_inside_of_a_transaction_changes_what_a_plan_shows(
    plans: str, two: Cast
) -> None:
    _session(f"SET plan_cache_mode = {plans}")
    scopes = _scopes(two)
    for order in itertools.permutations(scopes):
        with transaction.atomic():
            for name in order:
                scope, own = scopes[name]
                with scope():
                    assert _ask() == own, f"{name} in {order}"
                    assert _by_orm() == own, f"{name} in {order}"
    assert _held()


@pytest.mark.parametrize("plans", FORCED)
def test_one_plan_of_postgres_follows_role_and_tenant(plans: str, two: Cast) -> None:
    # Ours are kept by role as well. This is what that rests on: even one name used by everyone shows each their own.
    _session(f"SET plan_cache_mode = {plans}")
    _session(f"PREPARE everyone AS {NAMES}")
    role, tenant = "SET LOCAL ROLE groundwork_rw", "SET LOCAL app.tenant_id"
    wanted = {
        f"{role}; {tenant} = '{two.tenant.pk}'": ["Ours"],
        f"SET LOCAL ROLE groundwork_platform; {tenant} = ''": ALL_NAMES,
        f"{role}; {tenant} = '{two.other_tenant.pk}'": ["Theirs"],
        f"{role}; {tenant} = ''": [],
    }
    for order in itertools.permutations(wanted):
        for prefix in order:
            found = _session(f"{prefix}; EXECUTE everyone")
            assert [row[0].decode() for row in found] == wanted[prefix]


def test_a_tenant_cannot_write_by_a_plan_that_another_made(two: Cast) -> None:
    _session("SET plan_cache_mode = force_generic_plan")
    theirs = Collection.objects  # by id alone, in statements that are written by hand
    with tenant_scope(two.other_tenant.pk):
        pk = theirs.get().pk
    update = f"UPDATE {TABLE} SET description = %s WHERE id = %s RETURNING id"
    for _ in range(6):
        with tenant_scope(two.other_tenant.pk):
            assert _ask(update, ["theirs", pk]) == [pk]
        with tenant_scope(two.tenant.pk):
            assert _ask(update, ["taken", pk]) == []
    with tenant_scope(two.other_tenant.pk):
        assert theirs.get().description == "theirs"
    row: Any
    insert = f"INSERT INTO {TABLE} SELECT (jsonb_populate_record(c, %s)).* FROM {TABLE} c WHERE id = %s"
    with platform_scope():
        for _ in range(3):
            assert _ask(f"SELECT 1 FROM {TABLE} WHERE tenant_id = %s", [two.tenant.pk]) == [1]
    with tenant_scope(two.tenant.pk):
        own = theirs.get().pk
        for number in range(6):
            row = Jsonb(
                {"id": 10_000 + number, "tenant_id": two.other_tenant.pk, "name": f"Smuggled {number}"}
            )
            with pytest.raises(DatabaseError, match="row-level security"), connection.cursor() as cursor:
                cursor.execute(insert, [row, own])
    assert any("jsonb_populate_record" in text for text in _held())


def test_what_is_piped_leaves_no_scope_and_no_transaction_behind(two: Cast) -> None:
    divided = f"SELECT name FROM {TABLE} WHERE 1 / %s = 1 AND name = ANY (%s)"
    left = "SELECT current_setting('role'), current_setting('app.tenant_id', true), current_setting('plan_cache_mode')"
    nothing = [[b"none", b"", b"auto"]]
    piped: list[bytes] = []
    send = cursors.BinaryCursor._piped

    def watched(self: Any, scope: bytes, *sent: Any) -> Any:
        piped.append(scope)
        return send(self, scope, *sent)

    with pytest.MonkeyPatch.context() as patch, tenant_scope(two.tenant.pk):
        patch.setattr(cursors.BinaryCursor, "_piped", watched)
        for _ in range(5):
            assert _by_binary(divided, [1, ["Ours", "Theirs"]]) == ["Ours"]
        assert len(piped) == 5 - prepared.LITERAL_TIMES
        assert _session(left) == nothing
        with pytest.raises(psycopg.DataError, match="division by zero"):
            _by_binary(divided, [0, ["Ours"]])
        assert len(piped) == 6 - prepared.LITERAL_TIMES
        assert _session(left) == nothing
        assert _by_binary(divided, [1, ["Ours", "Theirs"]]) == ["Ours"]
        _session("DEALLOCATE ALL")  # what it would run is gone: it is sent as it is written
        assert _by_binary(divided, [1, ["Ours", "Theirs"]]) == ["Ours"]
        with binary_cursor(is_planned_once=True) as cursor:
            assert cursor.execute(divided, [1, ["Ours", "Theirs"]]).fetchall() == [("Ours",)]
        assert b"force_generic_plan" in piped[-1]
        assert _session(left) == nothing
        sent = len(piped)
        with transaction.atomic():  # which has its scope, and isn't ended by a pipeline
            assert _by_binary(divided, [1, ["Ours", "Theirs"]]) == ["Ours"]
            assert len(piped) == sent
            assert _session("SELECT current_setting('app.tenant_id')") == [[str(two.tenant.pk).encode()]]


def _ask_and_fail(names: list[str]) -> None:
    with transaction.atomic():
        assert _ask() == names
        raise ZeroDivisionError


def test_a_rollback_leaves_the_scope_to_be_set_again(two: Cast) -> None:
    for _ in range(4):
        with tenant_scope(two.tenant.pk):
            with transaction.atomic():
                assert _ask() == ["Ours"]
                with platform_scope(), pytest.raises(ZeroDivisionError):
                    _ask_and_fail(ALL_NAMES)
                assert _ask() == ["Ours"]
            with pytest.raises(ZeroDivisionError):
                _ask_and_fail(["Ours"])
    assert len(_held()) == 2  # one for each of the two roles


def test_only_what_comes_again_is_prepared(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for times in range(prepared.LITERAL_TIMES):
            assert _ask() == ["Ours"]
            assert _held() == [], times
        assert _ask() == ["Ours"]
    assert len(_held()) == 1


def test_set_up_code_prepares_nothing(two: Cast) -> None:
    with as_login_role():
        for _ in range(5):
            _ask("SELECT current_user")
    assert _held() == []


def test_a_value_is_of_the_type_that_its_literal_has(two: Cast) -> None:
    """Every statement gives the same before and after it is prepared."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    asked: list[tuple[str, Any]] = [
        ("SELECT 7 / %s", [2]),  # not smallint, and not by way of a fraction
        ("SELECT 1.0 / %s", [4]),
        ("SELECT pg_typeof(%s)::text", [3]),
        ("SELECT pg_typeof(%s)::text", [3_000_000_000]),
        ("SELECT pg_typeof(%s)::text", [-3_000_000_000]),
        ("SELECT pg_typeof(%s)::text", [3 * 10**18 * 10]),
        ("SELECT pg_typeof(%s)::text", [1.5]),
        ("SELECT pg_typeof(%s)::text", [1e300]),
        ("SELECT pg_typeof(%s)::text", [float("inf")]),
        ("SELECT pg_typeof(%s)::text", [Decimal("1.50")]),
        ("SELECT pg_typeof(%s)::text", [True]),
        ("SELECT pg_typeof(%s)::text", [moment]),
        ("SELECT pg_typeof(%s)::text", [moment.date()]),
        ("SELECT pg_typeof(%s)::text", [b"\x00\xff"]),
        ("SELECT pg_typeof(%s)::text", [[1, 2]]),
        ("SELECT pg_typeof(%s)::text", [["a", 'b"\\']]),
        ("SELECT pg_typeof(%s)::text", [Jsonb({"a": "it's \\ '::int"})]),
        ("SELECT %s::jsonb -> 'a'", [Jsonb({"a": "it's \\ '::int"})]),
        ("SELECT %s || 'x'", ["it's \\ '::int"]),
        ("SELECT %s::text", ["'::bigint"]),
        ("SELECT '{\"a\": [5]}'::jsonb -> %s", ["a"]),
        ("SELECT '[5, 6]'::jsonb -> %s", [1]),
        ("SELECT coalesce(%s, 'none')", [None]),
        ("SELECT %s::timestamptz", [None]),
        ("SELECT 5 = ANY (%s)", [[4, 5]]),
        ("SELECT 5 = ANY (%s::bigint[])", [[]]),
        ("SELECT %s::halfvec(3) <=> '[1,2,3]'::halfvec", ["[1,2,4]"]),
        ("SELECT %s - interval '1 day'", [moment]),
        ("SELECT -%s", [-5]),
        ("SELECT 10 %% %s", [3]),
        ("SELECT 'a' LIKE %s", ["a%"]),
        ("SELECT '100%%' || %s", ["%s"]),
    ]
    with tenant_scope(two.tenant.pk):
        for sql, params in asked:
            first = _ask(sql, params)
            for _ in range(prepared.LITERAL_TIMES + 1):
                assert _ask(sql, params) == first, (sql, params)
    # Three more are numeric and one more bigint, of the same text; and nothing tells the type of a text there.
    assert len(_held()) == len(asked) - 5


def test_a_name_that_stands_twice_is_one_value(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(4):
            assert _ask("SELECT %(a)s + %(b)s * %(a)s", {"a": 3, "b": 4, "unused": object()}) == [15]
    assert any("$1 + $2 * $1" in text for text in _held())


def test_tenants_share_what_names_its_own_tenant(two: Cast) -> None:
    asked: list[tuple[str, Any]] = [
        (f"SELECT name FROM {TABLE} WHERE tenant_id = own_tenant()", None),
        (f"SELECT name FROM {TABLE} WHERE tenant_id = own_tenant() AND name = ANY (%s)", [ALL_NAMES]),
        (
            f"SELECT name FROM {TABLE} WHERE name = ANY (%(names)s) AND tenant_id = own_tenant()",
            {"names": ALL_NAMES},
        ),
    ]
    for _ in range(4):
        for tenant, own in ((two.tenant, ["Ours"]), (two.other_tenant, ["Theirs"])):
            with tenant_scope(tenant.pk):
                for sql, params in asked:
                    assert _ask(sql, params) == own
    assert len(_held()) == len(asked)


def test_what_cannot_be_prepared_is_sent_as_before(two: Cast) -> None:
    asked: list[tuple[str, list[Any], Any]] = [
        ("SELECT interval %s = '1 day'", ["1 day"], True),  # only a literal may stand there
        ("SELECT %s IS NULL", ["a"], False),  # nothing tells the type
        ("SELECT count(*) FROM (VALUES (1)) v (a) GROUP BY a + %s, a + %s HAVING a + %s > 0", [1, 1, 1], 1),
        ("SELECT ';' || %s", ["a"], ";a"),
    ]
    with tenant_scope(two.tenant.pk):
        for sql, params, answer in asked:
            for _ in range(5):
                with transaction.atomic():  # a failing PREPARE costs no transaction
                    assert _ask() == ["Ours"]
                    assert _ask(sql, params) == [answer]
                    assert _ask() == ["Ours"]
    assert all("interval" not in text and "';'" not in text for text in _held())


def test_two_statements_of_one_text_are_never_prepared(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(5):
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE {TABLE} SET description = 'x'; SELECT 1")
    assert _held() == []


def test_a_transactions_own_table_is_not_looked_for_between_transactions(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(5):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("CREATE TEMPORARY TABLE passing ON COMMIT DROP AS SELECT 1 AS id")
                assert _ask("SELECT id FROM pg_temp.passing WHERE id = %s", [1]) == [1]
            assert _ask() == ["Ours"]
        prepared: Any = connection.connection.prepared
        assert not [query for query, _, _ in prepared._held if "passing" in query], "asked for, and refused"


def test_a_transaction_that_began_before_is_not_lost_to_preparing(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(2):
            with transaction.atomic():
                for _ in range(4):
                    assert _ask() == ["Ours"]
        assert len(_held()) == 1


def test_a_transaction_begins_in_the_message_of_its_first_statement(two: Cast, tmp_path: Path) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(prepared.LITERAL_TIMES + 1):
            _ask()
        raw: Any = connection.connection
        with (tmp_path / "wire").open("w+") as wire:
            raw.pgconn.trace(wire.fileno())
            with transaction.atomic():
                assert _ask() == ["Ours"]
                assert raw.pgconn.transaction_status == TransactionStatus.INTRANS
                assert _ask() == ["Ours"]
            raw.pgconn.untrace()
        sent = [line for line in (tmp_path / "wire").read_text().splitlines() if "\tQuery\t" in line]
    assert ["BEGIN" in line for line in sent] == [True, False, False]  # both statements, and COMMIT
    assert "EXECUTE" in sent[0]


def test_a_table_that_changed_is_asked_once_more_where_nothing_is_lost(two: Cast) -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE prepared_probe (a integer); INSERT INTO prepared_probe VALUES (5)")
        cursor.execute("GRANT SELECT ON prepared_probe TO groundwork_rw")
    try:
        with tenant_scope(two.tenant.pk):
            probe = "SELECT a FROM prepared_probe"
            for _ in range(4):
                assert _ask(probe) == [5]
            _change("ALTER TABLE prepared_probe ALTER a TYPE text")
            assert _ask(probe) == ["5"]  # outside of a transaction
            for _ in range(4):
                assert _ask(probe) == ["5"]
            _change("ALTER TABLE prepared_probe ALTER a TYPE bigint USING a::bigint")
            with transaction.atomic():
                assert _ask(probe) == [5]  # first of its transaction
                assert _ask() == ["Ours"]
            for _ in range(4):
                assert _ask(probe) == [5]
            _change("ALTER TABLE prepared_probe ALTER a TYPE text")
            with transaction.atomic():
                assert _ask() == ["Ours"]
                with pytest.raises(DatabaseError, match="cached plan"):
                    _ask(probe)  # what came before would be lost
                transaction.set_rollback(True)
            with transaction.atomic():
                assert _ask() == ["Ours"]
                assert _ask(probe) == ["5"]  # and it is over with that
    finally:
        _change("DROP TABLE prepared_probe")


def _change(sql: str) -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.parametrize("reset", ["DISCARD ALL", "DEALLOCATE ALL"])
def test_a_connection_that_was_reset_by_others_goes_on(reset: str, two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(4):
            assert _ask() == ["Ours"]
        _session(reset)
        assert _ask() == ["Ours"]
        for _ in range(4):
            assert _ask() == ["Ours"]
    assert len(_held()) == 1


def test_a_connection_holds_so_many_and_lets_the_oldest_go(
    two: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "MAX_HELD", 3)
    with tenant_scope(two.tenant.pk):
        for number in range(6):
            for _ in range(4):
                assert _ask(f"SELECT {number} + %s", [1]) == [number + 1]
        assert [text.split(" AS ", 1)[1] for text in _held()] == [
            f"SELECT {number} + $1" for number in (3, 4, 5)
        ]
        assert _ask("SELECT 3 + %s", [1]) == [4]  # used again: the next one puts out another
        for _ in range(4):
            assert _ask("SELECT 6 + %s", [1]) == [7]
        assert sorted(text.split(" AS ", 1)[1] for text in _held()) == [f"SELECT {n} + $1" for n in (3, 5, 6)]


def test_what_a_test_captures_is_the_statement_and_not_its_name(two: Cast) -> None:
    with tenant_scope(two.tenant.pk):
        for _ in range(4):
            with CaptureQueriesContext(connection) as queries:
                assert _by_array() == ["Ours"]
            assert "WHERE name = ANY ('{Ours,Theirs}')" in queries[0]["sql"]
            assert queries[0]["sql"].startswith("SET LOCAL ROLE groundwork_rw; ")


def test_nothing_is_prepared_where_it_is_switched_off(two: Cast, settings: Any) -> None:
    settings.PREPARE_STATEMENTS = False
    with tenant_scope(two.tenant.pk):
        for _ in range(5):
            assert _ask() == ["Ours"]
    assert _held() == []


def test_nothing_is_prepared_behind_a_pooler(two: Cast, tmp_path: Path) -> None:
    with pooled(tmp_path / "pooler") as url:
        direct, behind = _prepares(psycopg.conninfo.make_conninfo(**_conninfo())), _prepares(url)
    assert direct
    assert not behind


def _conninfo() -> dict[str, Any]:
    from tenancy.database.waiting import connection_params

    return connection_params()


def _prepares(conninfo: str) -> bool:
    with psycopg.connect(conninfo, autocommit=True) as raw:
        keeper = prepared.Prepared(raw)
        for _ in range(prepared.LITERAL_TIMES + 1):
            call = keeper.call("SELECT 1 + %s", [1], "groundwork_rw")
        return call is not None

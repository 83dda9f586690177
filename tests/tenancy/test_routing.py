"""The product's statements say whose rows they mean; what doesn't is found, and who may ask all tenants is explained."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, models, transaction
from django.db.models import Count, Exists, OuterRef
from django.test.utils import CaptureQueriesContext

from apps.collections.models import Collection, Document
from runs.stream import aclose, rows_read
from tenancy.database.cursors import tenant_named
from tenancy.database.prepared import OWN
from tenancy.models import Membership
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.one_tenant import ACROSS, ROOT, AcrossTenants, loose, shortened
from tests.routing import tables_loose
from tests.walked import each

TABLES = {"a", "b", "c"}
STATEMENTS: list[tuple[str, list[str]]] = [
    ("SELECT x FROM a WHERE id = %s", ["a"]),
    ('SELECT x FROM "a" WHERE ("a"."id" = %s AND "a"."tenant_id" = %s)', []),
    ("SELECT x FROM a WHERE tenant_id = own_tenant()", []),
    ("SELECT x FROM a WHERE 7 = tenant_id AND x IS DISTINCT FROM 3", []),
    ("SELECT x FROM a WHERE tenant_id IN (%s)", []),
    ("SELECT x FROM a WHERE tenant_id = ANY (%s)", ["a"]),
    ("SELECT x FROM a WHERE tenant_id <> %s", ["a"]),
    ("SELECT x FROM a WHERE tenant_id = 1 OR x = 2", ["a"]),
    ("SELECT x FROM a WHERE (tenant_id = 1 OR x = 2) AND y", ["a"]),
    ("SELECT x FROM a WHERE tenant_id = 1 AND (x = 3 OR x = 2)", []),
    ("SELECT x FROM a WHERE NOT (tenant_id = 1)", ["a"]),
    ("SELECT x, tenant_id = 1 FROM a", ["a"]),
    ('SELECT x FROM "a" JOIN "b" T3 ON ("a"."b_id" = T3."id") WHERE "a"."tenant_id" = %s', ["b"]),
    (
        'SELECT x FROM "a" JOIN "b" T3 ON ("a"."b_id" = T3."id" AND ("a"."tenant_id" = T3."tenant_id")) '
        'WHERE "a"."tenant_id" = %s',
        [],
    ),
    ("SELECT * FROM a JOIN b ON b.tenant_id = a.tenant_id", ["a", "b"]),
    ("SELECT * FROM a JOIN b USING (tenant_id, id) WHERE b.tenant_id = %s", []),
    ("SELECT * FROM a LEFT JOIN b ON b.tenant_id = a.tenant_id AND b.id = 4 WHERE a.tenant_id = %s", []),
    ("SELECT (SELECT 1 FROM b U0 WHERE U0.tenant_id = (a.tenant_id)) FROM a WHERE a.tenant_id = 3", []),
    ("SELECT x FROM a WHERE a.tenant_id = 3 AND EXISTS (SELECT 1 FROM b WHERE b.id = a.id)", ["b"]),
    ("SELECT EXISTS (SELECT FROM a WHERE x)", ["a"]),
    ("SELECT * FROM (SELECT * FROM a WHERE a.id = 1) d WHERE d.tenant_id = 3", ["a"]),
    (
        "WITH n AS (SELECT * FROM a WHERE tenant_id = %(t)s) SELECT * FROM n JOIN b ON b.tenant_id = n.tenant_id",
        [],
    ),
    ("SELECT * FROM unnest(%s) u JOIN a ON a.tenant_id = u.tenant_id", ["a"]),
    ("SELECT 1 FROM a WHERE tenant_id = 1 UNION ALL SELECT 1 FROM b", ["b"]),
    ("(SELECT x FROM a WHERE tenant_id = 1) UNION (SELECT x FROM b WHERE x = 1)", ["b"]),
    ("INSERT INTO a (x, tenant_id) VALUES (1, 2)", []),
    ("INSERT INTO a (x) VALUES (1)", ["a"]),
    ("INSERT INTO a (x, tenant_id) SELECT x, tenant_id FROM b WHERE id = 4", ["b"]),
    ("UPDATE a SET tenant_id = 3 WHERE id = 3", ["a"]),
    ("UPDATE a SET x = 1 FROM c WHERE c.tenant_id = a.tenant_id AND a.tenant_id = %s", []),
    ("DELETE FROM a USING b WHERE a.tenant_id = b.tenant_id AND b.tenant_id = 1", []),
    ("DELETE FROM a WHERE id = 1", ["a"]),
    ("SELECT 'FROM b' FROM a WHERE tenant_id = 1 AND 'x' = '(' -- FROM c", []),
    ("SELECT extract(epoch FROM x) FROM others", []),
]


@each("sql, wanted", STATEMENTS)
def test_what_a_router_reads(sql: str, wanted: list[str]) -> None:
    assert tables_loose(sql, TABLES) == wanted
    assert tables_loose(shortened(sql), TABLES) == wanted


def test_longer_lists_of_values_are_read_as_two() -> None:
    several = [f"SELECT x FROM a WHERE tenant_id IN ({', '.join(['%s'] * n)})" for n in (1, 2, 3, 300)]
    assert [tables_loose(shortened(sql), TABLES) for sql in several] == [[], ["a"], ["a"], ["a"]]
    assert shortened(several[2]) == shortened(several[3])
    rows = [f"INSERT INTO a (x, tenant_id) VALUES {', '.join(['(%s, %s)'] * n)}" for n in (1, 300)]
    assert shortened(rows[0]) == shortened(rows[1])


def _collections() -> Any:
    return Collection.objects.filter(name="x")


QUERIES: dict[str, Callable[[], models.QuerySet[Any]]] = {
    "a filter": _collections,
    "all rows": lambda: Collection.objects.all(),
    "a join": lambda: Document.objects.select_related("collection").filter(collection__name="x"),
    "a join backwards": lambda: Collection.objects.filter(documents__name="x"),
    "one that may be missing": lambda: Document.objects.select_related("job"),
    "an exclusion": lambda: Collection.objects.exclude(documents__name="x"),
    "a subquery": lambda: Document.objects.filter(collection__in=_collections()),
    "whether there is one": lambda: Collection.objects.filter(
        Exists(Document.objects.filter(collection=OuterRef("pk")))
    ),
    "a count": lambda: Collection.objects.annotate(n=Count("documents")).filter(n__gt=1),
    "a union": lambda: _collections().union(Collection.objects.filter(name="y")),
    "an either": lambda: Collection.objects.filter(models.Q(name="x") | models.Q(description="y")),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_queryset_names_the_tenant_in_its_scope(name: str) -> None:
    with tenant_scope(7):
        sql = str(QUERIES[name]().query)
    assert loose(sql) == (), sql
    with platform_scope():
        assert " = 7" not in str(QUERIES[name]().query)


@pytest.mark.django_db
def test_changes_name_the_tenant(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk), CaptureQueriesContext(connection) as sent:
        Membership.objects.filter(pk=0).update(role="owner")
        Document.objects.filter(collection__name="x").update(name="y")
        Membership.objects.filter(pk=0).delete()
        Document.objects.filter(collection__name="x").delete()
    changes = [q["sql"] for q in sent.captured_queries if "tenant_id" in q["sql"]]
    assert len([sql for sql in changes if "UPDATE" in sql]) >= 2
    assert len([sql for sql in changes if "DELETE" in sql]) == 2
    assert {sql: loose(sql) for sql in changes if loose(sql)} == {}


def _planted(body: str) -> Callable[[], Any]:
    """Return a function that looks as if it stood in the product."""
    names: dict[str, Any] = {"__name__": "planted"}
    exec(compile(body, str(ROOT / "platform" / "planted.py"), "exec"), names)  # noqa: S102 - ours
    found: Callable[[], Any] = names["ask"]
    return found


BY_HAND = """
from django.db import connection
def ask():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM jobs_job WHERE {}")
        return cursor.fetchall()
"""
SWEEP = """
from jobs.models import Job
from tenancy.scope import platform_scope
def ask():
    with platform_scope():
        return list(Job.objects.all())
"""


@pytest.mark.django_db
def test_a_statement_by_hand_without_its_tenant_is_refused(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        assert _planted(BY_HAND.format("tenant_id = own_tenant()"))() == []
        with pytest.raises(AcrossTenants, match="planted:ask asks all tenants for jobs_job"):
            _planted(BY_HAND.format("id = 3"))()


@pytest.mark.django_db
def test_a_sweep_that_nobody_explained_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AcrossTenants, match="planted:ask asks all tenants for jobs_job"):
        _planted(SWEEP)()
    monkeypatch.setitem(ACROSS, "planted:ask", "planted")
    assert _planted(SWEEP)() == []


@each("place", ACROSS)
def test_every_place_that_is_explained_opens_the_platforms_scope(place: str) -> None:
    module, _, function = place.partition(":")
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    assert any("platform_scope" in ast.unparse(one) for one in found)


@pytest.mark.django_db
def test_a_statement_by_hand_gets_the_tenant_of_its_scope(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk), connection.cursor() as cursor:
        cursor.execute(f"SELECT {OWN}")
        assert cursor.fetchone() == (cast.tenant.pk,)
    assert tenant_named("SELECT 1", "") == "SELECT 1"
    for scope in ("", "*", "!"):
        with pytest.raises(RuntimeError, match="no value outside of a tenant's scope"):
            tenant_named(f"SELECT {OWN}", scope)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_citus", [False, True])
def test_on_citus_role_and_tenant_are_messages_of_their_own(
    cast: Cast, settings: Any, is_citus: bool
) -> None:
    settings.CITUS = is_citus
    asked = "SELECT current_query() AS sent, current_setting('app.tenant_id') AS tenant, current_user::text AS role"
    with tenant_scope(cast.tenant.pk):
        with connection.cursor() as cursor:
            cursor.execute(asked)
            alone = cursor.fetchone()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(asked)
            inside = cursor.fetchone()
        assert Membership.objects.exists()

    async def read() -> tuple[Any, ...]:
        try:
            (row,) = await rows_read(cast.tenant.pk, asked, ())
            return tuple(row.values())
        finally:
            await aclose()  # else its connections keep the event loop from ending

    streamed = async_to_sync(read)()
    for sent, tenant, role in (alone, inside, streamed):
        assert (tenant, role) == (str(cast.tenant.pk), "groundwork_rw")
        assert ("SET LOCAL" in sent) is not is_citus
    with connection.cursor() as cursor:
        cursor.execute(asked)
        assert cursor.fetchone()[1:] == ("", "groundwork_rw")

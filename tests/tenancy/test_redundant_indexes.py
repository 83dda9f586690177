"""No index is the beginning of another one, and every reference that a deletion follows has one that begins with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, models

from tenancy.database.base import as_login_role
from tenancy.fields import TenantKey
from tenancy.models import Tenant
from tenancy.redundant_indexes import redundant_indexes

pytestmark = pytest.mark.django_db
TABLE = "webhooks_webhookdelivery"
LIBRARIES = "the library makes it, and its table has few rows"
LEFT = {
    ("account_emailaddress", "user_id"): LIBRARIES,
    ("auth_group_permissions", "group_id"): LIBRARIES,
    ("auth_permission", "content_type_id"): LIBRARIES,
    ("tenancy_user_groups", "user_id"): LIBRARIES,
    ("tenancy_user_user_permissions", "user_id"): LIBRARIES,
}
"""Redundant indexes that stay, and why."""
BARE = {
    (
        "collections_chunkrevision",
        "document_id",
    ): "few rows a workspace, which deletions find by its own index",
    ("collections_embedding", "space_id"): "millions of rows, and a space is deleted when none is left",
    (
        "conversations_conversation",
        "project_id",
    ): "read with its owner; a deleted project looks through its workspace",
}
"""References without an index, and why."""
_BARE = """
WITH keys AS (
    SELECT f.conrelid, f.conrelid::regclass::text AS of_table, ARRAY(
        SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
            AND (array_length(f.conkey, 1) = 1 OR a.attname <> 'tenant_id')) AS columns
    FROM pg_constraint f WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace)
SELECT of_table, columns[1] FROM keys WHERE NOT EXISTS (
    SELECT FROM pg_index x WHERE x.indrelid = keys.conrelid AND x.indisvalid AND x.indpred IS NULL AND (
        pg_get_indexdef(x.indexrelid, 1, true) = columns[1]
        OR (pg_get_indexdef(x.indexrelid, 1, true) = 'tenant_id' AND pg_get_indexdef(x.indexrelid, 2, true) = columns[1])))
ORDER BY 1, 2
"""


@pytest.fixture
def cursor() -> Iterator[Any]:
    with as_login_role(), connection.cursor() as opened:
        yield opened


def _bare(cursor: Any) -> set[tuple[str, str]]:
    cursor.execute(_BARE)
    return set(cursor.fetchall())


def test_no_index_is_the_beginning_of_another_one(cursor: Any) -> None:
    found = {(r.table, ", ".join(r.columns)): str(r) for r in redundant_indexes(cursor)}
    more = [text for key, text in found.items() if key not in LEFT]
    assert more == [], "give the foreign key db_index=False, or take the index out of Meta.indexes"
    assert set(LEFT) == set(found), "an exception that isn't needed any more"


def test_every_reference_has_an_index_that_begins_with_it(cursor: Any) -> None:
    assert _bare(cursor) == set(BARE)
    cursor.execute("ALTER TABLE webhooks_webhook ADD planted bigint REFERENCES tenancy_tenant (id)")
    assert _bare(cursor) - set(BARE) == {("webhooks_webhook", "planted")}
    cursor.execute("CREATE INDEX planted ON webhooks_webhook (planted) WHERE planted > 5")
    assert _bare(cursor) - set(BARE) == {("webhooks_webhook", "planted")}
    cursor.execute("CREATE INDEX planted_too ON webhooks_webhook (planted, url)")
    assert _bare(cursor) == set(BARE)


ON = f"ON {TABLE}"
REDUNDANT = {
    "a column of a wider index": f"CREATE INDEX planted {ON} (webhook_id)",
    "the key of the table": f"CREATE INDEX planted {ON} (id)",
    "the same as an index": f"CREATE INDEX planted {ON} (webhook_id, id DESC)",
    "an expression": f"CREATE INDEX planted {ON} (lower(event)); CREATE INDEX wide {ON} (lower(event), id)",
    "the same condition": f"CREATE INDEX planted {ON} (id) WHERE id > 5; CREATE INDEX wide {ON} (id, event) WHERE id > 5",
    "the same operators": f"CREATE INDEX planted {ON} (event text_pattern_ops); CREATE INDEX wide {ON} (event text_pattern_ops, id)",
    "an index that holds more": f"CREATE INDEX planted {ON} (event); CREATE INDEX wide {ON} (event) INCLUDE (id)",
    "twice the same of another method": f"CREATE INDEX planted {ON} USING hash (event); CREATE INDEX other {ON} USING hash (event)",
}
NEEDED = {
    "not the first column": f"CREATE INDEX planted {ON} (tenant_id, webhook_id)",
    "a condition": f"CREATE INDEX planted {ON} (webhook_id) WHERE id > 5",
    "the other has a condition": f"CREATE INDEX planted {ON} (event); CREATE INDEX wide {ON} (event, id) WHERE id > 5",
    "other operators": f"CREATE INDEX planted {ON} (event text_pattern_ops); CREATE INDEX wide {ON} (event, id)",
    "another collation": f'CREATE INDEX planted {ON} (event COLLATE "C"); CREATE INDEX wide {ON} (event, id)',
    "another order": f"CREATE INDEX planted {ON} (event DESC); CREATE INDEX wide {ON} (event, id)",
    "another method": f"CREATE INDEX planted {ON} USING hash (id)",
    "it holds more": f"CREATE INDEX planted {ON} (webhook_id) INCLUDE (event)",
    "it is unique": f"CREATE UNIQUE INDEX planted {ON} (id, event)",
    "it is a constraint's": f"ALTER TABLE {TABLE} ADD CONSTRAINT planted EXCLUDE (id WITH =)",
}


@pytest.mark.parametrize(
    ("statements", "is_redundant"),
    [(s, True) for s in REDUNDANT.values()] + [(s, False) for s in NEEDED.values()],
    ids=[*REDUNDANT, *NEEDED],
)
def test_a_planted_index_is_told_when_it_is_needless(
    cursor: Any, statements: str, is_redundant: bool
) -> None:
    before = {r.name for r in redundant_indexes(cursor)}
    cursor.execute(statements)
    new = [r for r in redundant_indexes(cursor) if r.name not in before]
    told = [str(r) for r in new if r.name in {"planted", "wide"}]
    assert len(told) == is_redundant, told
    if is_redundant:
        (found,) = new
        assert found.table == TABLE
        assert told == [
            f"{TABLE}: {found.other} begins with ({', '.join(found.columns)}), so planted is needless"
        ]


RULES: list[tuple[str, Any, bool]] = [
    ("index", models.Index(fields=["tenant", "name"], name="x"), True),
    ("unique", models.UniqueConstraint(fields=["tenant"], name="x"), True),
    ("second", models.Index(fields=["name", "tenant"], name="x"), False),
    ("falling", models.Index(fields=["-tenant"], name="x"), False),
    ("condition", models.Index(fields=["tenant"], condition=models.Q(name="a"), name="x"), False),
    ("check", models.CheckConstraint(condition=models.Q(name="a"), name="x"), False),
    ("expression", models.Index(models.F("tenant"), name="x"), False),
]


@pytest.mark.parametrize(("rule", "has_other"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_the_tenant_has_an_index_only_where_no_other_begins_with_it(rule: Any, has_other: bool) -> None:
    kind = "indexes" if isinstance(rule, models.Index) else "constraints"
    field = TenantKey(Tenant, models.CASCADE, related_name="+")
    field.contribute_to_class(_model(kind, rule), "tenant")
    assert field.db_index is not has_other
    assert field.deconstruct()[1] == "django.db.models.ForeignKey"
    assert field.deconstruct()[3].get("db_index", True) is not has_other


def _model(kind: str, rule: Any) -> Any:
    from django.apps.registry import Apps

    meta = type("Meta", (), {"app_label": "shelf", "apps": Apps(), kind: [rule]})
    name = models.TextField()
    return type("Shelf", (models.Model,), {"__module__": __name__, "Meta": meta, "name": name})

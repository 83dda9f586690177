"""The schema can be sharded by tenant; each rule is seen to find what breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from jobs.models import Job
from tenancy.database.base import as_login_role
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tenancy.sharding import ROUTINES, breaches, distribution, has_citus
from tests.cast import Cast
from tests.one_tenant import AcrossTenants, check

pytestmark = pytest.mark.django_db
TABLE = "webhooks_webhook"
FUNCTION = "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql {} AS 'BEGIN RETURN NULL; END'"


@pytest.fixture
def cursor() -> Iterator[Any]:
    with as_login_role(), connection.cursor() as opened:
        yield opened


def test_the_schema_can_be_sharded(cursor: Any) -> None:
    assert breaches(cursor) == []


PLANTED = {
    "a primary key": (
        [
            f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey CASCADE",
            f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id)",
        ],
        f"{TABLE}: its primary key lacks tenant_id, or it has none",
    ),
    "no primary key": (
        [f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey CASCADE"],
        f"{TABLE}: its primary key lacks tenant_id, or it has none",
    ),
    "a unique constraint": (
        [f"ALTER TABLE {TABLE} ADD CONSTRAINT planted UNIQUE (url)"],
        f"{TABLE}: the unique index planted lacks tenant_id",
    ),
    "a unique index": (
        [f"CREATE UNIQUE INDEX planted ON {TABLE} (lower(url)) INCLUDE (tenant_id) WHERE url <> ''"],
        f"{TABLE}: the unique index planted lacks tenant_id",
    ),
    "an exclusion": (
        [f"ALTER TABLE {TABLE} ADD CONSTRAINT planted EXCLUDE USING btree (url WITH =)"],
        f"{TABLE}: the unique index planted lacks tenant_id",
    ),
    "an empty tenant": (
        [
            f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey CASCADE",
            f"ALTER TABLE {TABLE} ALTER tenant_id DROP NOT NULL",
        ],
        f"{TABLE}: tenant_id may be empty",
    ),
    "a reference without the tenant": (
        [
            f"CREATE UNIQUE INDEX spare ON {TABLE} (id)",
            f"ALTER TABLE webhooks_webhookdelivery ADD CONSTRAINT planted FOREIGN KEY (webhook_id) REFERENCES {TABLE} (id)",
        ],
        "webhooks_webhookdelivery: planted lacks tenant_id: FOREIGN KEY (webhook_id) REFERENCES webhooks_webhook(id)",
    ),
    "a reference from a shared table": (
        [
            "ALTER TABLE jobs_worker ADD planted bigint, ADD planted_tenant bigint",
            "ALTER TABLE jobs_worker ADD CONSTRAINT planted FOREIGN KEY (planted_tenant, planted) "
            f"REFERENCES {TABLE} (tenant_id, id)",
        ],
        "jobs_worker: planted refers to a tenant's table from a shared one",
    ),
    "set null": (
        [
            "ALTER TABLE webhooks_webhookdelivery ADD planted bigint",
            "ALTER TABLE webhooks_webhookdelivery ADD CONSTRAINT planted FOREIGN KEY (tenant_id, planted) "
            f"REFERENCES {TABLE} (tenant_id, id) ON DELETE SET NULL (planted)",
        ],
        "webhooks_webhookdelivery: planted changes rows when what they refer to goes",
    ),
    "a trigger": (
        [
            FUNCTION.format(""),
            f"CREATE TRIGGER tell BEFORE UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION planted()",
        ],
        f"{TABLE}: the trigger tell calls planted, and nothing tells why that touches one tenant only",
    ),
    "a function that looks past the walls": (
        [FUNCTION.format("SECURITY DEFINER")],
        "planted is SECURITY DEFINER, and nothing tells why it touches one tenant only",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_finds_what_breaks_it(cursor: Any, name: str) -> None:
    statements, told = PLANTED[name]
    for statement in statements:
        cursor.execute(statement)
    assert told in breaches(cursor)


def test_every_routine_that_is_explained_is_there(cursor: Any) -> None:
    cursor.execute("SELECT DISTINCT proname FROM pg_proc WHERE proname = ANY(%s)", [list(ROUTINES)])
    assert {name for (name,) in cursor.fetchall()} == set(ROUTINES)


def test_functions_that_look_past_the_walls_name_the_tenant(cursor: Any) -> None:
    cursor.execute(
        "SELECT proname, prosrc FROM pg_proc WHERE prosecdef AND proname = ANY(%s)", [list(ROUTINES)]
    )
    for name, source in cursor.fetchall():
        assert "tenant_id" in source or "audit_seal" in source, name


def test_the_dry_run_distributes_each_table_once_and_lays_each_reference_again(cursor: Any) -> None:
    cursor.execute(
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid IN "
        "(SELECT attrelid FROM pg_attribute WHERE attname = 'tenant_id' AND NOT attisdropped)"
    )
    references = cursor.fetchone()[0]
    told = StringIO()
    call_command("citus_distribute", "--dry-run", stdout=told)
    lines = told.getvalue().splitlines()
    spread = [s for s in lines if "create_distributed_table(" in s]
    copied = [s for s in lines if "create_reference_table(" in s]
    tables = {m._meta.db_table for m in tenant_models()}
    assert {s.split('"')[1] for s in spread} == tables
    assert len(spread) == len(tables)
    assert [s for s in spread if "colocate_with => 'none'" in s] == spread[:1]
    assert not tables.intersection(s.split('"')[1] for s in copied)
    names = [s.split('"')[1] for s in copied]
    assert (
        names.index("tenancy_user")
        < names.index("account_emailaddress")
        < names.index("account_emailconfirmation")
    )
    assert "django_migrations" not in names
    dropped = [s for s in lines if " DROP CONSTRAINT " in s]
    laid = [s for s in lines if " ADD CONSTRAINT " in s]
    assert len(dropped) == len(laid) == references
    stopped = [s for s in lines if s.startswith("DROP TRIGGER ")]
    set_again = [s for s in lines if re.match("CREATE (CONSTRAINT )?TRIGGER ", s)]
    assert len(stopped) == len(set_again) == 5
    assert lines == [*dropped, *stopped, *copied, *spread, *laid, *set_again]


def test_the_statements_about_references_and_triggers_can_be_run_and_change_nothing(cursor: Any) -> None:
    sql = (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' UNION ALL "
        "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
    )
    cursor.execute(sql)
    before = cursor.fetchall()
    for statement in distribution(cursor):
        if not statement.startswith("SELECT"):
            cursor.execute(statement)
    cursor.execute(sql)
    assert cursor.fetchall() == before


def test_without_the_extension_nothing_is_distributed(cursor: Any) -> None:
    assert not has_citus(cursor)
    with pytest.raises(CommandError, match="doesn't have the extension citus"):
        call_command("citus_distribute")


def test_a_schema_that_breaks_a_rule_isnt_distributed(cursor: Any) -> None:
    cursor.execute(f"CREATE UNIQUE INDEX planted ON {TABLE} (url)")
    with pytest.raises(CommandError, match=r"schema_contract.*\n.*the unique index planted lacks tenant_id"):
        call_command("citus_distribute", "--dry-run")


def test_rows_are_locked_within_a_tenant_only(cast: Cast) -> None:
    rows = Job.objects.select_for_update(skip_locked=True)
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        assert list(rows.all()) == []
    with platform_scope(), transaction.atomic(), pytest.raises(AcrossTenants, match="jobs_job"):
        list(rows.all())


@pytest.mark.parametrize(
    ("sql", "scope", "is_refused"),
    [
        ("UPDATE jobs_job SET x = 1 WHERE id IN (SELECT id FROM jobs_job FOR UPDATE SKIP LOCKED)", "*", True),
        ('SELECT 1 FROM "jobs_job" FOR UPDATE SKIP LOCKED', "!", True),
        ('SELECT 1 FROM "jobs_job" FOR UPDATE SKIP LOCKED', "7", False),
        ('SELECT 1 FROM "jobs_job" FOR UPDATE', "*", False),
        (
            "DELETE FROM django_q_ormq WHERE id IN (SELECT id FROM django_q_ormq FOR UPDATE SKIP LOCKED)",
            "*",
            False,
        ),
    ],
)
def test_which_statements_lock_across_tenants(sql: str, scope: str, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(AcrossTenants, match="jobs_job"):
            check(sql, scope)
    else:
        check(sql, scope)

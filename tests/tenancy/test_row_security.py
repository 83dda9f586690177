"""The database refuses what a forgotten filter would leak."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from apps.collections.models import Collection, Document
from tenancy.database.base import as_login_role
from tenancy.models import AuditEvent, TenantModel
from tenancy.row_security import constraint_name, tenant_foreign_keys, tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.factories import make_collection
from tests.walked import each

MODELS = tenant_models()


def _fetch(sql: str, *params: str) -> list[tuple[Any, ...]]:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


@pytest.mark.django_db
@each("model", MODELS)
def test_every_tenant_table_is_walled(model: type[TenantModel]) -> None:
    table = model._meta.db_table
    assert _fetch(
        "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", table
    ) == [(True, True)]
    policies = dict(_fetch("SELECT policyname, with_check FROM pg_policies WHERE tablename = %s", table))
    assert set(policies) == {"tenant_isolation", "platform_access"}
    assert "current_setting('app.tenant_id'" in str(policies["tenant_isolation"])


@pytest.mark.django_db
@each("model", MODELS)
def test_every_reference_between_tenant_tables_is_bound_to_the_tenant(model: type[TenantModel]) -> None:
    for field in model._meta.local_fields:
        target = field.related_model
        if target in MODELS:
            assert field in tenant_foreign_keys(model), f"{field}: use TenantForeignKey"
            keys = _fetch(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s",
                constraint_name(model, field),
            )
            assert len(keys) == 1
            assert f"FOREIGN KEY (tenant_id, {field.column})" in str(keys[0][0])


@pytest.mark.django_db
def test_every_row_has_a_tenant_that_is_there() -> None:
    """By a reference of its own, or by one to a row that it can't be without and goes with: one of the two, never both."""
    references = _fetch(
        """
        SELECT t.relname, p.relname, n.conname,
            bool_and(a.attnotnull) AND n.convalidated AND (n.confdeltype = 'c' OR p.relname = 'tenancy_tenant')
        FROM pg_constraint n JOIN pg_class t ON t.oid = n.conrelid JOIN pg_class p ON p.oid = n.confrelid
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (n.conkey)
        WHERE n.contype = 'f' AND (p.relname = 'tenancy_tenant' OR cardinality(n.conkey) = 2)
        GROUP BY t.relname, p.relname, n.conname, n.convalidated, n.confdeltype"""
    )
    leads = {(table, target) for table, target, _, is_firm in references if is_firm}
    own = {table for table, target in leads if target == "tenancy_tenant"}
    reached = set(own)
    while more := {table for table, target in leads if target in reached} - reached:
        reached |= more
    tables = {m._meta.db_table for m in MODELS}
    assert reached >= tables
    assert own.isdisjoint(table for table, target in leads if target in tables)
    assert len(tables - own) > 60  # else the second way is gone, and each row asks for its tenant again


@pytest.mark.django_db
def test_no_table_of_a_tenant_escapes_the_model_list() -> None:
    with_column = {
        row[0]
        for row in _fetch(
            "SELECT table_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND column_name = 'tenant_id'"
        )
    }
    assert with_column == {m._meta.db_table for m in MODELS}


@pytest.mark.django_db
def test_raw_queries_see_only_the_scoped_tenant(cast: Cast) -> None:
    make_collection(cast.tenant, "Ours")
    make_collection(cast.other_tenant, "Theirs")
    query = f"SELECT name FROM {Collection._meta.db_table} ORDER BY name"

    def names() -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return [row[0] for row in cursor.fetchall()]

    with tenant_scope(cast.tenant.pk):
        assert names() == ["Ours"]
    with tenant_scope(cast.other_tenant.pk):
        assert names() == ["Theirs"]
    with platform_scope():
        assert names() == ["Ours", "Theirs"]
    assert names() == []


@pytest.mark.django_db
def test_row_is_refused_when_it_belongs_to_another_tenant(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            AuditEvent.objects.create(tenant=cast.other_tenant, actor_kind="user", action="collection.create")
        assert AuditEvent.objects.count() == 0


@pytest.mark.django_db
def test_reference_is_refused_when_it_points_into_another_tenant(cast: Cast) -> None:
    theirs = make_collection(cast.other_tenant)
    with (
        tenant_scope(cast.tenant.pk),
        pytest.raises(IntegrityError, match="violates foreign key"),
        transaction.atomic(),
    ):
        Document.objects.create(
            tenant=cast.tenant,
            collection_id=theirs.pk,
            name="a",
            media_type="text/plain",
            size=1,
            sha256="0" * 64,
            file="x",
        )


@pytest.mark.django_db
def test_scope_is_right_again_after_a_rollback_inside_it(cast: Cast) -> None:
    make_collection(cast.tenant)

    def look_and_fail() -> None:
        with transaction.atomic(), platform_scope():
            assert Collection.objects.count() == 1
            raise KeyError

    with tenant_scope(cast.tenant.pk):
        with pytest.raises(KeyError):
            look_and_fail()
        assert Collection.objects.count() == 1
    assert Collection.objects.count() == 0


@pytest.mark.django_db
def test_audit_rows_cannot_be_changed_or_deleted(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        AuditEvent.objects.create(tenant=cast.tenant, actor_kind="user", action="x.y")
        for change in (
            lambda: AuditEvent.objects.update(action="other"),
            lambda: AuditEvent.objects.all().delete(),
        ):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                change()

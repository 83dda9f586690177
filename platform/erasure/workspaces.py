"""Erase a workspace: the rows of all its tables, its files, and what was made of them on every machine."""

from __future__ import annotations

import shutil
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from psycopg import sql

from blobs.hold import removal_may_begin
from blobs.stores import store
from erasure.models import Erasure
from erasure.places import file_prefixes
from erasure.reports import KEPT, REMOVED, Report
from erasure.rules import workspace_hooks
from tenancy.database.base import as_login_role
from tenancy.fields import SET_NULL
from tenancy.losses import loss_tell
from tenancy.models import AuditChain, Membership, Tenant, TenantModel
from tenancy.row_security import tenant_foreign_keys, tenant_models
from tenancy.scope import platform_scope, tenant_scope


def deletion_order() -> list[type[TenantModel]]:
    """Return the tables of workspaces, each before those that it refers to; what can be cleared binds no order."""
    sorter: TopologicalSorter[Any] = TopologicalSorter()
    for model in tenant_models():
        sorter.add(model)
        for field in tenant_foreign_keys(model):
            if field.db_on_delete != SET_NULL and field.related_model is not model:
                sorter.add(field.related_model, model)
    return list(sorter.static_order())


def workspace_close(tenant: Tenant) -> None:
    """Let nobody in any more, and end what goes on: streams, runs, keys."""
    with platform_scope(), transaction.atomic():
        Tenant.objects.filter(pk=tenant.pk).update(is_active=False)
        members = list(Membership.objects.filter(tenant=tenant).values_list("user_id", flat=True))
    for user_id in members:
        with tenant_scope(tenant.pk), transaction.atomic():
            loss_tell(tenant_id=tenant.pk, user_id=user_id)


def workspace_rows_erase(tenant: Tenant, report: Report) -> None:
    """Delete every row of a workspace, and the workspace, in one transaction.

    Its row is locked first: a row that someone adds meanwhile waits for it, and is then refused by its reference. A row
    that knows its workspace by its owner goes with that, or is refused by the owner's reference.
    """
    order = deletion_order()
    afterwards = [hook(tenant) for hook in workspace_hooks()]
    with transaction.atomic(), as_login_role(), connection.cursor() as cursor:
        Tenant.objects.select_for_update().get(pk=tenant.pk)
        head = AuditChain.objects.filter(tenant_id=tenant.pk).first()
        if head is not None:
            report.add(f"audit trail up to {head.seq}:{head.hash}", REMOVED, head.seq)
        report.add("Administration log", REMOVED, _admin_log(cursor, tenant.pk, order))
        for model in order:
            _clear(cursor, model, tenant.pk)
        for model in order:
            statement = sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(_table(model))
            cursor.execute(statement, [tenant.pk])
            report.add(model._meta.label, REMOVED, cursor.rowcount)
        cursor.execute("DELETE FROM tenancy_tenant WHERE id = %s", [tenant.pk])
        report.add("tenancy.Tenant", REMOVED, cursor.rowcount)
    for follow in afterwards:
        follow()


def _clear(cursor: Any, model: type[TenantModel], tenant_id: int) -> None:
    columns = [f.column for f in tenant_foreign_keys(model) if f.db_on_delete == SET_NULL]
    for column in columns:
        name = sql.Identifier(column)
        statement = sql.SQL("UPDATE {} SET {c} = NULL WHERE tenant_id = %s AND {c} IS NOT NULL").format(
            _table(model), c=name
        )
        cursor.execute(statement, [tenant_id])


def _admin_log(cursor: Any, tenant_id: int, order: list[type[TenantModel]]) -> int:
    """Delete what Django's admin noted about rows of the workspace; it has no column for the workspace."""
    types = {
        t.pk: t.model_class()
        for t in ContentType.objects.filter(pk__in=LogEntry.objects.values("content_type"))
    }
    gone = LogEntry.objects.filter(
        content_type__in=[pk for pk, model in types.items() if model is Tenant], object_id=str(tenant_id)
    ).delete()[0]
    for pk, model in types.items():
        if model in order:
            statement = sql.SQL(
                "DELETE FROM django_admin_log WHERE content_type_id = %s AND object_id IN "
                "(SELECT id::text FROM {} WHERE tenant_id = %s)"
            ).format(_table(model))
            cursor.execute(statement, [pk, tenant_id])
            gone += cursor.rowcount
    return gone


def _table(model: type[TenantModel]) -> sql.Identifier:
    return sql.Identifier(model._meta.db_table)


def workspace_files_erase(tenant_id: int, report: Report) -> bool:
    """Delete a workspace's files, here and in the store; returns False where a backup copies files at this moment.

    Raises:
        StoreAway: the store doesn't answer.
    """
    with platform_scope(), transaction.atomic():
        if not removal_may_begin():
            return False
        prefixes = file_prefixes(tenant_id)
        report.add("files", REMOVED, sum(1 for prefix in prefixes for _ in store().below(prefix)))
        for prefix in prefixes:
            store().remove_below(prefix)
    report.add("copies and caches of this machine", REMOVED, workspace_copies_erase(tenant_id))
    report.add(
        "copies and caches of other machines",
        KEPT,
        0 if store().is_local else 1,
        "removed as soon as each looks, within seconds",
    )
    return True


def workspace_copies_erase(tenant_id: int) -> int:
    """Delete what this machine made or fetched of a workspace's files; returns how many folders that were."""
    home = Path(settings.DATA_DIR)
    name = f"t{tenant_id}"
    found = [*home.glob(f"cache/*/{name}"), *home.glob(f"cache/*/{name}-*"), home / "trees" / name]
    found = [folder for folder in found if folder.is_dir()]
    for folder in found:
        shutil.rmtree(folder)
    return len(found)


def copies_look() -> int:
    """Delete what this machine still has of workspaces that were erased; returns how many folders that were."""
    home = Path(settings.DATA_DIR)
    there = {f.name[1:].partition("-")[0] for f in [*home.glob("cache/*/t*"), *home.glob("trees/t*")]}
    numbers = {int(n) for n in there if n.isdecimal()}
    if not numbers:
        return 0
    gone = Erasure.objects.filter(kind=Erasure.Kind.WORKSPACE, subject__in=numbers).exclude(
        state__in=[Erasure.State.WAITING, Erasure.State.UNDONE]
    )
    erased = set(gone.values_list("subject", flat=True))
    erased -= set(Tenant.objects.filter(pk__in=erased).values_list("pk", flat=True))
    return sum(workspace_copies_erase(number) for number in sorted(erased))

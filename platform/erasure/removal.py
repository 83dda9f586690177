"""Remove what retention rules say: a little of each workspace in a round, each step in a transaction of its own.

A killed process loses the step it was in, and the next round continues with what is still due. Counts are kept in the
step's transaction, so that none is lost or told twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import structlog
from django.db import Error, transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone

from erasure.holds import hold_of, removal_lock, tenants_held
from erasure.models import RetentionRule
from erasure.retention import RetentionKind, Rows, Use, due_rows, kind_add, own_days
from jobs.registry import on_sweep
from tenancy.actors import system_actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

log = structlog.get_logger(__name__)


def retention_kind_register(
    kind: RetentionKind, uses: Iterable[Use] = (), *, every_s: float = 3600.0
) -> None:
    """Give a kind a rule, and have the sweeper carry it out; at start-up.

    Args:
        uses: why a row is kept although it is old.
        every_s: seconds from one look at it to the next; a workspace with more than a batch is continued at once.
    """

    def sweep() -> int:
        return removal_round(kind)

    sweep.__qualname__ = f"retention of {kind.name}"  # its name in the log
    kind_add(kind, uses)
    on_sweep(sweep, every_s=every_s, batch=kind.batch)


def ended_remove(tenant: Tenant, rows: Rows) -> int:
    """Delete rows that nobody else is writing, as a kind's ``remove``: for those that have no files and nothing below."""
    ended = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    rows.model._base_manager.filter(tenant_id=tenant.pk, pk__in=ended).delete()
    return len(ended)


def removal_round(
    kind: RetentionKind, *, now: datetime.datetime | None = None, batch: int | None = None
) -> int:
    """Remove what is due of one kind, up to a batch of each workspace; safe in several processes at once.

    Args:
        now: the moment that days are counted back from.
        batch: instead of the kind's own.

    Returns:
        How many things were removed.
    """
    now = now or timezone.now()
    return sum(_tenant_round(kind, tenant, now, batch or kind.batch) for tenant in _tenants(kind, now))


def _tenants(kind: RetentionKind, now: datetime.datetime) -> list[Tenant]:
    """Return the workspaces that have a rule of their own, or something older than the server's default."""
    own = kind.own_days().filter(tenant=OuterRef("pk"))
    chosen = Q(own__isnull=False)
    if default := kind.days(None):
        old = kind.rows().filter(**{f"{kind.column or 'since'}__lt": now - datetime.timedelta(days=default)})
        chosen |= Q(pk__in=old.values("tenant_id"))
    with platform_scope():
        rows = Tenant.objects.annotate(own=Subquery(own)).filter(chosen).exclude(pk__in=tenants_held())
        return [tenant for tenant in rows.order_by("pk") if kind.days(tenant.own)]


def _tenant_round(kind: RetentionKind, tenant: Tenant, now: datetime.datetime, batch: int) -> int:
    removed = 0
    try:
        with tenant_scope(tenant.pk):
            due = _due(kind, tenant, now)
            pks = (
                [] if due is None else list(due.order_by("since", "pk").values_list("pk", flat=True)[:batch])
            )
            for start in range(0, len(pks), kind.step):
                removed += _step(kind, tenant, now, pks[start : start + kind.step])
            if pks:
                _report(kind, tenant)
    except Error:
        raise
    except Exception:  # the other workspaces don't wait for one whose files, for example, can't be reached
        log.exception("retention_failed", kind=kind.name, tenant=tenant.pk)
    return removed


def _step(kind: RetentionKind, tenant: Tenant, now: datetime.datetime, pks: list[int]) -> int:
    """Remove some things in one transaction, after looking again at hold and rule under the lock."""
    with transaction.atomic():
        if not removal_lock(tenant.pk, waits=False) or hold_of(tenant.pk) is not None:
            return 0
        due = _due(kind, tenant, now)
        count = 0 if due is None else kind.remove(tenant, due.filter(pk__in=pks))
        if count:
            row, _ = RetentionRule.objects.get_or_create(tenant=tenant, kind=kind.name)
            RetentionRule.objects.filter(tenant=tenant, pk=row.pk).update(
                removed=F("removed") + count, removed_at=now
            )
    return count


def _due(kind: RetentionKind, tenant: Tenant, now: datetime.datetime) -> Rows | None:
    """Return what the rule removes at a moment, None where it keeps everything or hasn't started."""
    days = kind.days(own_days(tenant, kind))
    waiting = RetentionRule.objects.filter(tenant=tenant, kind=kind.name, starts_at__gt=now)
    if not days or waiting.exists():
        return None
    return due_rows(kind, tenant.pk, now - datetime.timedelta(days=days))


def _report(kind: RetentionKind, tenant: Tenant) -> None:
    """Record how many were removed since the last such event; also what a killed round removed before."""
    with transaction.atomic():
        rules = RetentionRule.objects.select_for_update(of=("self",))
        row = rules.filter(tenant=tenant, kind=kind.name, removed__gt=F("reported")).first()
        if row is None:
            return
        audit_record(
            tenant=tenant,
            actor=system_actor(tenant.pk),
            action="retention.remove",
            object=row,
            data={"kind": kind.name, "count": row.removed - row.reported},
        )
        row.reported = row.removed
        row.save(update_fields=["reported"])

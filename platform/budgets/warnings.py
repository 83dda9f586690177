"""Warnings of budgets: from which share on people are told, who is told, and that each hears of it once a period."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from budgets.models import Budget, BudgetKind, BudgetSpend
from notices.services import notice_put
from tenancy.actors import system_actor
from tenancy.models import ApiKey, Membership
from tenancy.permissions import ROLE_ACTIONS
from tenancy.services import audit_record
from webhooks.models import Event
from webhooks.services import webhook_emit

WARN_AT = Decimal("0.8")
"""The share of a budget from which on people are told."""
JOB_KIND = BudgetKind.JOB.value


def is_late(spent_usd: Decimal, amount_usd: Decimal) -> bool:
    """Tell whether so much of a budget is spent that people are told."""
    return spent_usd >= amount_usd * WARN_AT


def budgets_tell(tenant_id: int) -> int:
    """Tell about budgets of which ``WARN_AT`` is spent or that are used up, each once a period: audit and webhook; returns how many.

    Call it in the tenant's scope, after a call was settled or refused. What a crash leaves untold, the next call tells.
    """
    late = Q(warned_at=None, spent_usd__gte=F("budget__amount_usd") * Value(WARN_AT))
    over = Q(exceeded_at=None) & (Q(refused_at__isnull=False) | Q(spent_usd__gte=F("budget__amount_usd")))
    due = BudgetSpend.objects.filter(late | over, tenant_id=tenant_id)
    told = 0
    for pk in list(due.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = due.select_related("budget", "tenant").select_for_update(of=("self",)).filter(pk=pk).first()
            if row is not None:
                told += _tell(row)
    return told


def _tell(row: BudgetSpend) -> int:
    is_over = row.refused_at is not None or row.spent_usd >= row.budget.amount_usd
    event = Event.BUDGET_EXCEEDED if is_over else Event.BUDGET_WARNED
    fields = {"exceeded_at": Now()} if is_over else {}
    if row.warned_at is None:  # Nobody needs to hear of ``WARN_AT`` after all.
        fields["warned_at"] = Now()
    BudgetSpend.objects.filter(pk=row.pk).update(**fields)
    data = {
        **budget_facts(row.budget),
        "budget": row.budget_id,
        "subject": row.subject_id or None,
        "starts_at": row.starts_at.isoformat(),
        "spent_usd": str(row.spent_usd),
    }
    audit_record(
        tenant=row.tenant, actor=system_actor(row.tenant_id), action=event.value, object=row.budget, data=data
    )
    webhook_emit(tenant_id=row.tenant_id, event=event, object_key=f"budget:{row.budget_id}", data=data)
    notice_put(
        tenant_id=row.tenant_id,
        people=_people(row),
        kind="budget",
        pk=row.budget_id,
        state="exceeded" if is_over else "warned",
    )
    return 1


def _people(row: BudgetSpend) -> list[int | None]:
    """Return who is told of a budget: whom it limits, or who manages budgets. Of a job's, its own notice tells."""
    kind = row.budget.kind
    if kind == JOB_KIND:
        return []
    if kind == BudgetKind.MEMBER:
        return [row.subject_id]
    roles = [role for role, actions in ROLE_ACTIONS.items() if "budget.manage" in actions]
    managers = Membership.objects.filter(tenant_id=row.tenant_id, role__in=roles)
    people: list[int | None] = list(managers.values_list("user_id", flat=True))
    if kind == BudgetKind.KEY:
        keys = ApiKey.objects.filter(tenant_id=row.tenant_id, pk=row.subject_id)
        people += keys.values_list("user_id", flat=True)
    return people


def budget_facts(row: Budget) -> dict[str, Any]:
    """Return what the audit log and webhooks say of a budget."""
    return {
        "kind": row.kind,
        "subject_id": row.subject_id,
        "period": row.period,
        "amount_usd": str(row.amount_usd),
    }

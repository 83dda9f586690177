"""Set and remove budgets, and clear what dead processes held."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction
from django.db.models.functions import Now

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from budgets.assistants import assistant_names
from budgets.models import Budget, BudgetHold, BudgetKind, BudgetPeriod, BudgetRules, BudgetSpend
from budgets.money import dollars
from budgets.warnings import JOB_KIND, WARN_AT, budget_facts
from jobs.models import Job
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

MAX_USD = Decimal(10_000_000)


@transaction.atomic
def budget_set(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    amount_usd: Decimal,
    period: str = BudgetPeriod.MONTH,
    subject_id: int | None = None,
) -> Budget:
    """Say what may be spent on models in a period; another amount for a budget that is there keeps what is spent.

    Args:
        kind: tenant, member, key or assistant.
        amount_usd: 0 stops all that costs money.
        subject_id: one person, key or assistant; None for each of them.

    Raises:
        Denied: without the right ``budget.manage``.
        Invalid: a value cannot be used.
        Missing: no such member, key or assistant.
    """
    actor.require("budget.manage")
    if kind not in BudgetKind.values or kind == JOB_KIND:
        known = ", ".join(value for value in BudgetKind.values if value != JOB_KIND)
        raise _invalid("kind", _("Use one of %(values)s.") % {"values": known})
    with tenant_scope(tenant.pk):
        _subject_check(tenant, actor, kind, subject_id)
        return _set(tenant, actor, kind, amount_usd, period, subject_id)


@transaction.atomic
def job_budget_set(*, tenant: Tenant, actor: Actor, job: Job, amount_usd: Decimal) -> Budget:
    """Say what one job may spend in all, for whoever may start it; the caller checks that right.

    Model calls count in it whose ``BillingAccount.job_id`` names the job.

    Raises:
        Invalid: the amount cannot be used.
    """
    with tenant_scope(tenant.pk):
        return _set(tenant, actor, JOB_KIND, amount_usd, BudgetPeriod.TOTAL, job.pk)


@transaction.atomic
def budget_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a budget; its usage stays recorded. Raises Denied, Missing."""
    actor.require("budget.manage")
    with tenant_scope(tenant.pk):
        row = Budget.objects.select_for_update().filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("budget")
        audit_record(tenant=tenant, actor=actor, action="budget.remove", object=row, data=budget_facts(row))
        row.delete()


@transaction.atomic
def budget_rules_set(*, tenant: Tenant, actor: Actor, refuses_unpriced: bool) -> BudgetRules:
    """Say whether models without a known price are refused or estimated while a budget applies. Raises Denied."""
    actor.require("budget.manage")
    with tenant_scope(tenant.pk):
        row, _is_new = BudgetRules.objects.update_or_create(
            tenant=tenant, defaults={"refuses_unpriced": refuses_unpriced}
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="budget.rules",
            object=row,
            data={"refuses_unpriced": refuses_unpriced},
        )
    return row


def budgets_sweep() -> int:
    """Forget holds that have expired: of processes that died. They count no more already."""
    with platform_scope():
        return BudgetHold.objects.filter(expires_at__lt=Now()).delete()[0]


def _subject_check(tenant: Tenant, actor: Actor, kind: str, subject_id: int | None) -> None:
    if subject_id is None:
        return
    if kind == BudgetKind.TENANT:
        raise _invalid("subject_id", _("A workspace budget can't name a person."))
    if kind == BudgetKind.MEMBER:
        if not Membership.objects.filter(tenant=tenant, user_id=subject_id).exists():
            raise Missing("member")
    elif kind == BudgetKind.KEY and not ApiKey.objects.filter(tenant=tenant, pk=subject_id).exists():
        raise Missing("key")
    elif kind == BudgetKind.ASSISTANT and not assistant_names(actor, [subject_id]):
        raise Missing("assistant")


def _set(
    tenant: Tenant, actor: Actor, kind: str, amount_usd: Decimal, period: str, subject_id: int | None
) -> Budget:
    if period not in BudgetPeriod.values:
        raise _invalid("period", _("Use one of %(values)s.") % {"values": ", ".join(BudgetPeriod.values)})
    if not amount_usd.is_finite() or not 0 <= amount_usd <= MAX_USD:
        raise _invalid("amount_usd", _("Give an amount from $0 to %(most)s.") % {"most": dollars(MAX_USD)})
    row, _is_new = Budget.objects.update_or_create(
        tenant=tenant,
        kind=kind,
        subject_id=subject_id,
        period=period,
        defaults={"amount_usd": amount_usd.quantize(Decimal("0.0001"))},
    )
    row.refresh_from_db()
    # A raised budget is not late any more, and tells anew when it is.
    spends = BudgetSpend.objects.filter(tenant=tenant, budget=row)
    spends.filter(spent_usd__lt=row.amount_usd * WARN_AT).update(warned_at=None)
    spends.filter(spent_usd__lt=row.amount_usd).update(exceeded_at=None, refused_at=None)
    audit_record(tenant=tenant, actor=actor, action="budget.set", object=row, data=budget_facts(row))
    return row


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("budget_invalid", message, data={"fields": {field: [message]}, "field": field})

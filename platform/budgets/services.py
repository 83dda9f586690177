"""Set and remove budgets, tell people about them, and clear what dead processes held."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from budgets.assistants import assistant_names
from budgets.models import Budget, BudgetHold, BudgetKind, BudgetPeriod, BudgetRules, BudgetSpend
from budgets.money import dollars
from jobs.models import Job
from notices.services import notice_put
from tenancy.actors import Actor, system_actor
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.permissions import ROLE_ACTIONS
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from webhooks.models import Event
from webhooks.services import webhook_emit

MAX_USD = Decimal(10_000_000)
WARN_AT = Decimal("0.8")
_JOB_KIND = BudgetKind.JOB.value


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
    if kind not in BudgetKind.values or kind == _JOB_KIND:
        known = ", ".join(value for value in BudgetKind.values if value != _JOB_KIND)
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
        return _set(tenant, actor, _JOB_KIND, amount_usd, BudgetPeriod.TOTAL, job.pk)


@transaction.atomic
def budget_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a budget; its usage stays recorded. Raises Denied, Missing."""
    actor.require("budget.manage")
    with tenant_scope(tenant.pk):
        row = Budget.objects.select_for_update().filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("budget")
        audit_record(tenant=tenant, actor=actor, action="budget.remove", object=row, data=_facts(row))
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


def budgets_tell(tenant_id: int) -> int:
    """Tell about budgets that have crossed 80 % or are used up, each once a period: audit and webhook; returns how many.

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


def budgets_sweep() -> int:
    """Forget holds that have expired: of processes that died. They count no more already."""
    with platform_scope():
        return BudgetHold.objects.filter(expires_at__lt=Now()).delete()[0]


def _tell(row: BudgetSpend) -> int:
    is_over = row.refused_at is not None or row.spent_usd >= row.budget.amount_usd
    event = Event.BUDGET_EXCEEDED if is_over else Event.BUDGET_WARNED
    fields = {"exceeded_at": Now()} if is_over else {}
    if row.warned_at is None:  # Nobody needs to hear of 80 % after all.
        fields["warned_at"] = Now()
    BudgetSpend.objects.filter(pk=row.pk).update(**fields)
    data = {
        **_facts(row.budget),
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
    if kind == _JOB_KIND:
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
    audit_record(tenant=tenant, actor=actor, action="budget.set", object=row, data=_facts(row))
    return row


def _facts(row: Budget) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "subject_id": row.subject_id,
        "period": row.period,
        "amount_usd": str(row.amount_usd),
    }


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("budget_invalid", message, data={"fields": {field: [message]}, "field": field})

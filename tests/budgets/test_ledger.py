"""A budget holds, however many spend at once: on real Postgres, with real connections."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from budgets.ledger import (
    BillingAccount,
    Refusal,
    ReservationRequest,
    Reserved,
    budget_reserve,
    budget_reserve_each,
    holds_release,
)
from budgets.models import Budget, BudgetHold, BudgetSpend
from budgets.selectors import budget_notices
from budgets.services import budget_rules_set, budget_set, budgets_sweep
from budgets.warnings import budgets_tell
from runs.models import UsageRecord
from tenancy.models import AuditEvent
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from webhooks.models import WebhookDelivery
from webhooks.services import webhook_create

pytestmark = pytest.mark.django_db(transaction=True)

CALL = ReservationRequest(needed_usd=0.1, fair_usd=0.5, most_usd=1.0, is_priced=True, seconds=60)


def set_budget(
    cast: Cast, amount: str, kind: str = "tenant", *, period: str = "total", **more: Any
) -> Budget:
    """Set a budget, of no month unless a test is about months: one may end while the test spends."""
    amount_usd, actor = Decimal(amount), cast.actor("owner")
    return budget_set(
        tenant=cast.tenant, actor=actor, kind=kind, amount_usd=amount_usd, period=period, **more
    )


def spend(cast: Cast, usd: float, hold: int | None = None, **more: Any) -> None:
    UsageRecord.objects.create(
        tenant=cast.tenant, kind="test", provider="p", model="m", cost_usd=f"{usd:.8f}", hold_id=hold, **more
    )


def reserve(cast: Cast, asked: ReservationRequest = CALL, **more: Any) -> Reserved:
    return budget_reserve(BillingAccount(cast.tenant.pk, **more), asked)


def refusal(cast: Cast, asked: ReservationRequest = CALL, **more: Any) -> Refusal:
    found = reserve(cast, asked, **more).refusal
    assert found is not None
    return found


def test_twenty_at_once_spend_no_more_than_the_budget(cast: Cast) -> None:
    """Each takes what it may and spends all of it, again and again until it is refused for good."""
    set_budget(cast, "5")
    start = threading.Barrier(20)

    def work() -> int:
        start.wait()
        calls = 0
        with tenant_scope(cast.tenant.pk):
            while True:
                reserved = budget_reserve(BillingAccount(cast.tenant.pk), CALL)
                if reserved.refusal is None:
                    calls += 1
                    spend(cast, reserved.granted_usd, reserved.hold_id)
                elif reserved.refusal.why == "spent":
                    return calls

    def thread() -> int:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(20) as pool:
        made = sum(future.result(60) for future in [pool.submit(thread) for _ in range(20)])
    with tenant_scope(cast.tenant.pk):
        used = sum(row.cost_usd or 0 for row in UsageRecord.objects.all())
        row = BudgetSpend.objects.get()
        assert UsageRecord.objects.count() == made >= 5
        assert row.spent_usd == used
        assert Decimal("4.9") <= used <= Decimal(5)
        assert not BudgetHold.objects.exists()


def test_holds_count_until_they_are_settled_released_or_expired(cast: Cast) -> None:
    set_budget(cast, "1")
    all_of_it = ReservationRequest(0.9, 1.0, 1.0, is_priced=True, seconds=60)
    with tenant_scope(cast.tenant.pk):
        first = reserve(cast, all_of_it)
        assert refusal(cast).why == "held"
        assert first.hold_id is not None
        holds_release(first.hold_id)
        second = reserve(cast, all_of_it)
        BudgetHold.objects.filter(pk=second.hold_id or 0).update(expires_at=timezone.now())
        third = reserve(cast, all_of_it)
        assert third.refusal is None
        spend(cast, 0.25, third.hold_id)
        spend(cast, 0.25, second.hold_id)  # late, after its hold had expired: counted once all the same
        assert BudgetSpend.objects.get().spent_usd == Decimal("0.5")
    BudgetHold.objects.all().delete()


def test_calls_that_reserve_together_hold_no_more_than_there_is(cast: Cast) -> None:
    set_budget(cast, "1")
    each = ReservationRequest(needed_usd=0.3, fair_usd=0.3, most_usd=0.3, is_priced=True, seconds=60)
    with tenant_scope(cast.tenant.pk):
        found = budget_reserve_each(BillingAccount(cast.tenant.pk), [each] * 5)
        held = {hold.pk: hold.amount_usd for hold in BudgetHold.objects.all()}
    assert [r.refusal and r.refusal.why for r in found] == [None, None, None, "held", "held"]
    assert set(held) == {r.hold_id for r in found[:3]}
    assert sum(held.values()) == Decimal("0.9")


def test_sweep_forgets_what_dead_processes_held(cast: Cast) -> None:
    set_budget(cast, "1")
    with tenant_scope(cast.tenant.pk):
        dead, alive = reserve(cast), reserve(cast)
        BudgetHold.objects.filter(pk=dead.hold_id or 0).update(expires_at=timezone.now())
    assert budgets_sweep() == 1
    with tenant_scope(cast.tenant.pk):
        assert [row.pk for row in BudgetHold.objects.all()] == [alive.hold_id]


def test_money_is_given_in_smaller_pieces_when_it_runs_out(cast: Cast) -> None:
    set_budget(cast, "3")
    with tenant_scope(cast.tenant.pk):
        granted = [reserve(cast).granted_usd for _ in range(5)]
    assert granted == [0.75, 0.5625, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("kind", "billing_account"),
    [
        ("member", lambda cast: {"user_id": cast.user("member").pk}),
        ("key", lambda cast: {"api_key_id": 7}),
        ("assistant", lambda cast: {"assistant_id": 3}),
    ],
    ids=["member", "key", "assistant"],
)
def test_each_has_their_own_when_a_budget_names_nobody(
    cast: Cast, kind: str, billing_account: Callable[[Cast], dict[str, Any]]
) -> None:
    set_budget(cast, "1", kind)
    one = billing_account(cast)
    other = {name: value + 1 for name, value in one.items()}
    facts = {"api_key_id": one.get("api_key_id"), "assistant": one.get("assistant_id")}
    with tenant_scope(cast.tenant.pk):
        spend(cast, 1, user_id=one.get("user_id"), attribution=facts)
        assert refusal(cast, **one).kind == kind
        assert reserve(cast, **other).refusal is None
        assert reserve(cast).hold_id is None


def test_one_that_names_somebody_goes_before_that_of_each(cast: Cast) -> None:
    person = cast.user("member").pk
    set_budget(cast, "1", "member")
    set_budget(cast, "3", "member", subject_id=person)
    with tenant_scope(cast.tenant.pk):
        spend(cast, 2, user_id=person)
        assert reserve(cast, user_id=person).refusal is None
        assert [row.spent_usd for row in BudgetSpend.objects.all()] == [2]


def test_usage_from_before_counts_when_a_budget_is_set_in_mid_month(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        spend(cast, 4)
    set_budget(cast, "5", period="month")
    set_budget(cast, "5", period="total")
    with tenant_scope(cast.tenant.pk):
        spend(cast, 1)
        assert refusal(cast).period == "month"
        spends = {row.budget.period: row.spent_usd for row in BudgetSpend.objects.select_related("budget")}
    assert spends == {"month": Decimal(5), "total": Decimal(1)}


def test_spend_survives_deletion_and_another_tenant_pays_nothing(cast: Cast) -> None:
    set_budget(cast, "1")
    with tenant_scope(cast.other_tenant.pk):
        UsageRecord.objects.create(tenant=cast.other_tenant, kind="t", provider="p", model="m", cost_usd=9)
        assert budget_reserve(BillingAccount(cast.other_tenant.pk), CALL).hold_id is None
        assert not Budget.objects.exists()
        # A billing account of another tenant sees nothing of its budgets either.
        assert budget_reserve(BillingAccount(cast.tenant.pk), CALL).hold_id is None
    with tenant_scope(cast.tenant.pk):
        assert reserve(cast).refusal is None


def test_unpriced_models_are_refused_when_the_workspace_says_so(cast: Cast) -> None:
    unpriced = ReservationRequest(0.1, 0.5, 1.0, is_priced=False, seconds=60)
    budget_rules_set(tenant=cast.tenant, actor=cast.actor("owner"), refuses_unpriced=True)
    with tenant_scope(cast.tenant.pk):
        assert reserve(cast, unpriced).refusal is None  # no budget, nothing to guard
    set_budget(cast, "5")
    with tenant_scope(cast.tenant.pk):
        assert "Settings > Models" in refusal(cast, unpriced).message
        assert reserve(cast).refusal is None


def test_people_are_told_once_at_eighty_percent_and_once_at_the_end(cast: Cast) -> None:
    webhook_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        url="https://hooks.example.com/x",
        events=["budget.warned", "budget.exceeded"],
    )
    set_budget(cast, "1")

    def told() -> tuple[list[str], list[str]]:
        audit = AuditEvent.objects.filter(action__in=["budget.warned", "budget.exceeded"])
        return (
            list(audit.order_by("pk").values_list("action", flat=True)),
            list(WebhookDelivery.objects.order_by("pk").values_list("event", flat=True)),
        )

    with tenant_scope(cast.tenant.pk):
        reserved = reserve(cast)
        spend(cast, 0.96, reserved.hold_id)
        assert budgets_tell(cast.tenant.pk) == 1
        assert budgets_tell(cast.tenant.pk) == 0
        assert told() == (["budget.warned"], ["budget.warned"])
        assert reserve(cast, ReservationRequest(0.2, 0.2, 0.2, is_priced=True, seconds=9)).must_tell
        assert budgets_tell(cast.tenant.pk) == 1
        assert budgets_tell(cast.tenant.pk) == 0
        assert told()[0] == told()[1] == ["budget.warned", "budget.exceeded"]
    set_budget(cast, "10")
    with tenant_scope(cast.tenant.pk):
        assert reserve(cast).refusal is None
        spend(cast, 8)
        assert budgets_tell(cast.tenant.pk) == 1


def test_notice_is_for_whom_the_budget_is_about(cast: Cast) -> None:
    set_budget(cast, "10", period="month")
    set_budget(cast, "5", "member", period="month")

    def told(role: str) -> set[str]:
        return {notice.text for notice in budget_notices(actor=cast.actor(role))}

    with tenant_scope(cast.tenant.pk):
        spend(cast, 4.5, user_id=cast.user("member").pk)
        spend(cast, 4.5, user_id=cast.user("owner").pk)
        month = timezone.now().strftime("%B")
        own = f"Your budget of $5 for {month} is 90\u00a0% spent."
        whole = f"The workspace's budget of $10 for {month} is 90\u00a0% spent."
        assert told("member") == {own, whole}
        assert told("owner") == {own, whole}
        assert told("viewer") == {whole}


def test_refusal_says_what_happened_and_what_to_do(cast: Cast) -> None:
    set_budget(cast, "20", period="month")
    with tenant_scope(cast.tenant.pk):
        spend(cast, 20)
        now = timezone.now()
        month = now.strftime("%B")
        later = now.replace(day=28) + datetime.timedelta(days=4)
        assert refusal(cast).message == (
            f"The workspace's budget of $20 for {month} is used up. It starts again on 1 {later:%B} (UTC). "
            "An owner can raise it under Settings > Budgets."
        )


def test_no_right_to_the_ledger_lets_an_application_role_skip_the_trigger(cast: Cast) -> None:
    """Who writes usage cannot switch the counting off."""
    with (
        tenant_scope(cast.tenant.pk),
        connection.cursor() as cursor,
        pytest.raises(Exception, match="must be owner"),
    ):
        cursor.execute("ALTER TABLE runs_usagerecord DISABLE TRIGGER budget_settle")
    with platform_scope():
        assert not BudgetHold.objects.exists()


def test_audit_trail_writes_amounts_as_people_do(cast: Cast) -> None:
    set_budget(cast, "40", period="month")
    with tenant_scope(cast.tenant.pk):
        event = AuditEvent.objects.get(action="budget.set")
    assert event.object_name == "$40 a month for the whole workspace"

"""Runs and questions pay out of the workspace's budgets, stop when these are used up, and hold nothing afterwards."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from budgets.ledger import BillingAccount, budget_reserve
from budgets.models import Budget, BudgetHold, BudgetSpend
from budgets.services import budget_set, job_budget_set
from jobs.models import Job
from runs import reservations as reservations
from runs.actors import actor_facts
from runs.models import Run, RunStatus, UsageRecord
from runs.reservations import RunReservations, run_billing_account
from runs.services import CompletionFailed, completion_run, run_abandon, run_execute
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.budgets.test_ledger import CALL
from tests.cast import Cast
from tests.runs.support import make_run, take
from tests.statements import statements_noted
from toolloop.errors import ProviderUnavailable
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, says
from toolloop.reservations import CostEstimate
from toolloop.tokens import Usage
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "anthropic/claude-sonnet-4-5"  # $3 and $15 a million tokens
CENT = Usage(1_000, 0, 0, 1_000, 0, 1)  # $0.018


@tool
def look() -> str:
    """Look."""
    return "Seen."


def set_budget(cast: Cast, amount: str, **more: Any) -> Budget:
    return budget_set(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        kind=more.pop("kind", "tenant"),
        amount_usd=Decimal(amount),
        **more,
    )


async def carry(
    cast: Cast,
    lane: Executor,
    provider: ScriptedProvider,
    *,
    budget: str = "",
    toolset: Toolset | None = None,
) -> Run:
    """Carry out a run; ``budget`` is set when it has been asked for and not begun."""
    run, job = await sync_to_async(make_run)(cast, MODEL)
    if budget:
        await sync_to_async(set_budget)(cast, budget)
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(cast.tenant.pk):
        row = await ctx.in_db(Run.objects.get, pk=run.pk)
        row.request["actor"] = actor_facts(cast.actor("member"))
        toolset = toolset or Toolset([look])
        history = [UserMessage("Hi")]
        await run_execute(ctx, row, toolset=toolset, provider=provider, system="", history=history)
        return await ctx.in_db(Run.objects.get, pk=run.pk)


def spent(cast: Cast) -> tuple[Decimal, int]:
    """Return what the budget counts, and how many holds are open."""
    with tenant_scope(cast.tenant.pk):
        row = BudgetSpend.objects.first()
        return (Decimal(0) if row is None else row.spent_usd), BudgetHold.objects.count()


async def test_twenty_runs_at_once_spend_no_more_than_the_budget(cast: Cast) -> None:
    await sync_to_async(set_budget)(cast, "0.30")
    with ThreadPoolExecutor(4) as lane:
        runs = await asyncio.gather(
            *(
                carry(cast, lane, ScriptedProvider([says("Yes.", usage=CENT)], name="anthropic"))
                for _ in range(20)
            )
        )
        together = threading.Barrier(4)

        def close() -> None:
            together.wait()
            connections.close_all()

        for closed in [lane.submit(close) for _ in range(4)]:
            closed.result()
    used, held = await sync_to_async(spent)(cast)
    ended = [(run.status, run.error_code) for run in runs]
    paid = sum(status == RunStatus.COMPLETED for status, _ in ended)
    assert used == Decimal("0.018") * paid
    assert used <= Decimal("0.30") + Decimal("0.018")  # the script writes more than it was allowed
    assert held == 0
    assert set(ended) <= {("completed", ""), ("failed", "budget_exceeded")}
    assert 0 < paid < 20


async def test_answer_is_given_with_what_there_is_when_the_money_ends_between_steps(
    cast: Cast, lane_threads: Executor
) -> None:
    await sync_to_async(set_budget)(cast, "0.03")
    script = [calls(call("look"), usage=CENT), says("So far.", usage=Usage(100, 0, 0, 100, 0, 1))]
    run = await carry(cast, lane_threads, ScriptedProvider(script, name="anthropic"))
    assert (run.status, run.limit_reached, run.answer) == ("completed", "budget", "So far.")
    assert (await sync_to_async(spent)(cast))[1] == 0


async def test_run_fails_with_the_reason_when_nothing_is_left(cast: Cast, lane_threads: Executor) -> None:
    provider = ScriptedProvider([says("Never said.")], name="anthropic")
    run = await carry(cast, lane_threads, provider, budget="0")
    assert (run.status, run.error_code, run.limit_reached) == ("failed", "budget_exceeded", "budget")
    assert "is used up. It starts again on 1 " in run.error_message
    assert "An owner can raise it under Settings > Budgets." in run.error_message
    assert provider.requests == []

    def told() -> list[str]:
        with tenant_scope(cast.tenant.pk):
            return list(
                AuditEvent.objects.filter(action__startswith="budget.e").values_list("action", flat=True)
            )

    assert await sync_to_async(told)() == ["budget.exceeded"]


async def test_attempt_that_was_billed_in_vain_is_reserved_and_paid_apart(
    cast: Cast, lane_threads: Executor
) -> None:
    await sync_to_async(set_budget)(cast, "1")
    lost = ProviderUnavailable("cut", retry_after_s=0.01)
    lost.usage = CENT
    free = ProviderUnavailable("away", retry_after_s=0.01)
    script = [fails(free), fails(lost), says("Well.", usage=CENT)]
    await carry(cast, lane_threads, ScriptedProvider(script, name="anthropic"))
    assert await sync_to_async(spent)(cast) == (Decimal("0.036"), 0)

    def holds() -> list[bool]:
        with tenant_scope(cast.tenant.pk):
            rows = UsageRecord.objects.order_by("pk").values_list("hold_id", flat=True)
            return [row is not None for row in rows] + [len(set(rows)) == 2]

    assert await sync_to_async(holds)() == [True, True, True]


async def test_calls_ask_for_no_money_while_there_is_no_budget(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservations, "_KNOWN_S", 3600.0)
    script = [calls(call("look"), usage=CENT), calls(call("look"), usage=CENT), says("Seen.", usage=CENT)]
    with statements_noted() as sent:
        run = await carry(cast, lane_threads, ScriptedProvider(script, name="anthropic"))
    assert run.answer == "Seen."
    assert [one for one in sent if "budget_reserve" in one] == []


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_budget_that_is_set_during_a_run_counts_at_its_next_call(
    cast: Cast, lane_threads: Executor, after: int
) -> None:
    seen: list[int] = []

    @tool(name="look")
    def look_and_set() -> str:
        """Look."""
        seen.append(1)
        if len(seen) == after:
            set_budget(cast, "0")
        return "Seen."

    script = [*(calls(call("look"), usage=CENT) for _ in range(4)), says("Never said.")]
    provider = ScriptedProvider(script, name="anthropic")
    run = await carry(cast, lane_threads, provider, toolset=Toolset([look_and_set]))
    assert (run.status, run.error_code) == ("failed", "budget_exceeded")
    assert len(provider.requests) == after


async def test_what_is_known_of_budgets_is_good_for_one_call(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservations, "_KNOWN_S", 3600.0)
    asked: list[Any] = []

    async def in_db(function: Any, *args: Any) -> Any:
        asked.append(function)
        return await sync_to_async(function)(*args)

    quote = CostEstimate("anthropic", "m", 0.01, 0.0, 1_000, 0.0, is_priced=True, seconds=60)
    with tenant_scope(cast.tenant.pk):
        account = RunReservations(BillingAccount(cast.tenant.pk), in_db)
        for known, statements in ((False, 0), (True, 1), (None, 1), (False, 0)):
            asked.clear()
            account.known(known)
            assert account.none_needed() or (await account.reserve(quote)).hold is None
            assert len(asked) == statements
        assert not account.none_needed()
        await account.reserve(quote)
        assert len(asked) == 1


async def test_model_that_costs_nothing_needs_no_money(cast: Cast, lane_threads: Executor) -> None:
    await sync_to_async(set_budget)(cast, "0")
    run, job = await sync_to_async(make_run)(cast, "scripted/test")
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    with tenant_scope(cast.tenant.pk):
        row = await ctx.in_db(Run.objects.get, pk=run.pk)
        provider = ScriptedProvider([says("Free.")])
        await run_execute(
            ctx, row, toolset=Toolset(), provider=provider, system="", history=[UserMessage("?")]
        )
    run = await sync_to_async(_again)(run)
    assert (run.status, run.answer) == ("completed", "Free.")


def _again(run: Run) -> Run:
    with tenant_scope(run.tenant_id):
        found: Run = Run.objects.get(pk=run.pk)
        return found


def test_what_a_dead_worker_held_is_free_when_its_run_is_given_up(cast: Cast) -> None:
    set_budget(cast, "1")
    run, job = make_run(cast, MODEL)
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
        assert budget_reserve(run_billing_account(run), CALL, run_id=run.pk).hold_id is not None
        other = budget_reserve(run_billing_account(run), CALL, run_id=run.pk + 1)
        with transaction.atomic():
            run_abandon(job=job)
        assert [row.pk for row in BudgetHold.objects.all()] == [other.hold_id]


def ask(cast: Cast, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    """Ask a model whose adapter is a script."""
    from runs.providers import TenantProvider
    from toolloop.models import get_model_info

    provider = TenantProvider(
        ScriptedProvider([says("Fine.", usage=CENT)], name="anthropic"), get_model_info(MODEL)
    )
    monkeypatch.setattr("runs.services.completions.provider_for", lambda tenant, model: provider)
    with tenant_scope(cast.tenant.pk):
        return completion_run(
            tenant=cast.tenant, actor=cast.actor("member"), model=MODEL, prompt="?", purpose="judge", **more
        )


def test_question_outside_of_runs_counts_and_is_refused(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    set_budget(cast, "1")
    assert ask(cast, monkeypatch).text == "Fine."
    assert spent(cast) == (Decimal("0.018"), 0)
    set_budget(cast, "0.01")
    with pytest.raises(CompletionFailed, match="is used up") as caught:
        ask(cast, monkeypatch)
    assert (caught.value.code, caught.value.status, caught.value.is_retryable) == (
        "budget_exceeded",
        402,
        False,
    )
    assert spent(cast) == (Decimal("0.018"), 0)


def test_job_stops_at_its_own_budget(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with tenant_scope(cast.tenant.pk):
        job = Job.objects.create(tenant=cast.tenant, kind="test", lane="loop")
    job_budget_set(tenant=cast.tenant, actor=cast.actor("member"), job=job, amount_usd=Decimal("0.02"))
    assert (
        ask(cast, monkeypatch, billing_account=BillingAccount(cast.tenant.pk, job_id=job.pk)).text == "Fine."
    )
    with pytest.raises(CompletionFailed, match="This job's budget"):
        ask(cast, monkeypatch, billing_account=BillingAccount(cast.tenant.pk, job_id=job.pk))
    assert ask(cast, monkeypatch).text == "Fine."  # the rest of the workspace has no budget


def test_price_that_is_not_known_counts_by_the_documented_estimate(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(cast, "1")
    with tenant_scope(cast.tenant.pk):
        from toolloop.reservations import charged_usd

        assert charged_usd(Usage(1_000_000, 0, 0, 1_000_000, 0, 1), None) == 30.0
        UsageRecord.objects.create(tenant=cast.tenant, kind="t", provider="p", model="m", charged_usd="0.5")
    with tenant_scope(cast.tenant.pk):
        budget_reserve(BillingAccount(cast.tenant.pk), CALL)
        assert BudgetSpend.objects.get().spent_usd == Decimal("0.5")
        BudgetHold.objects.all().delete()


async def test_call_waits_for_money_that_others_hold(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(set_budget)(cast, "1")
    waited = asyncio.Event()

    async def pause(seconds: float) -> None:
        waited.set()

    monkeypatch.setattr("runs.reservations.asyncio.sleep", pause)
    monkeypatch.setattr(reservations, "HELD_WAIT_S", 0.15)

    def hold() -> None:
        from budgets.ledger import ReservationRequest

        with tenant_scope(cast.tenant.pk):
            budget_reserve(
                BillingAccount(cast.tenant.pk), ReservationRequest(1, 1, 1, is_priced=True, seconds=60)
            )

    await sync_to_async(hold)()
    run = await carry(cast, lane_threads, ScriptedProvider([says("No.")], name="anthropic"))
    assert waited.is_set()
    assert (run.error_code, run.is_retryable) == ("budget_exceeded", True)
    assert "is reserved for answers in progress" in run.error_message
    assert "\u2068the " in run.error_message.kept, "a reader of another language is told it in theirs"

"""What each request cost is kept, once, for good, and behind the tenant's wall."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from runs.models import Run, ToolCall, UsageRecord
from runs.services import run_execute, run_stop
from runs.usage_figures import usage_read
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.runs.support import make_run, take, until
from toolloop.errors import ProviderUnavailable
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, fails, hangs, says
from toolloop.tokens import Usage
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def _run(cast: Cast, lane: Executor, provider: ScriptedProvider) -> Run:
    run, job = await sync_to_async(make_run)(cast, "anthropic/claude-sonnet-4-5")
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(cast.tenant.pk):
        await run_execute(
            ctx,
            await ctx.in_db(Run.objects.get, pk=run.pk),
            toolset=Toolset(),
            provider=provider,
            system="",
            history=[UserMessage("Hi")],
        )
        return await ctx.in_db(Run.objects.get, pk=run.pk)


def _records(cast: Cast) -> list[UsageRecord]:
    with tenant_scope(cast.tenant.pk):
        return list(UsageRecord.objects.order_by("pk"))


async def test_each_request_is_recorded_when_one_was_billed_in_vain(
    cast: Cast, lane_threads: Executor
) -> None:
    lost = ProviderUnavailable("cut", retry_after_s=0.01)
    lost.usage = Usage(100, 0, 0, 7, 0, 1)
    used = Usage(1000, 200, 50, 70, 30, 1)
    provider = ScriptedProvider([fails(lost), says("Hello.", usage=used)], name="anthropic")
    run = await _run(cast, lane_threads, provider)
    rows = await sync_to_async(_records)(cast)
    assert [(r.kind, r.step, r.input_tokens, r.output_tokens) for r in rows] == [
        ("lost", 0, 100, 7),
        ("turn", 0, 1000, 70),
    ]
    turn = rows[1]
    assert (turn.cached_tokens, turn.cache_write_tokens, turn.reasoning_tokens) == (200, 50, 30)
    assert (turn.run_id, turn.user_id) == (run.pk, cast.actor("member").user_id)
    assert turn.attribution["run_kind"] == "test.run"
    costs = [row.cost_usd or 0 for row in rows]
    assert min(costs) > 0
    assert run.usage["input_total"] == sum(r.input_tokens for r in rows)
    assert float(run.cost_usd or 0) == pytest.approx(float(sum(costs)), abs=1e-6)


@tool
async def wait_long() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize(
    ("script", "seen"),
    [([hangs(after="As far as ")], "text"), ([says("", call("wait_long"))], "tool_started")],
    ids=["text", "tool"],
)
async def test_answer_that_somebody_stopped_counts_but_has_not_failed(
    cast: Cast, lane_threads: Executor, script: list[Any], seen: str
) -> None:
    run, job = await sync_to_async(make_run)(cast, "anthropic/claude-sonnet-4-5")
    ctx = await sync_to_async(take)(job, "w1", lane_threads)

    async def carry() -> None:
        with tenant_scope(cast.tenant.pk):
            await run_execute(
                ctx,
                await ctx.in_db(Run.objects.get, pk=run.pk),
                toolset=Toolset([wait_long]),
                provider=ScriptedProvider(script, name="anthropic"),
                system="",
                history=[UserMessage("Hi")],
            )

    def stop() -> None:
        with tenant_scope(cast.tenant.pk):
            run_stop(tenant=cast.tenant, actor=cast.actor("member"), run=run)

    def figures() -> Any:
        with tenant_scope(cast.tenant.pk):
            today = timezone.localdate()
            return usage_read(actor=cast.actor("owner"), since=today, until=today).total

    task = asyncio.create_task(carry())
    await until(run, seen)
    await sync_to_async(stop)()
    await asyncio.wait_for(task, 60)
    total = await sync_to_async(figures)()
    assert (total.requests, total.lost, total.errors) == (1, 0, 0)
    kinds = [row.kind for row in await sync_to_async(_records)(cast)]
    assert kinds == ["turn" if seen == "tool_started" else "stopped"]
    if seen == "tool_started":
        calls = await sync_to_async(_statuses)(cast)
        assert (total.calls, calls) == (1, ["stopped"])


def _statuses(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        return list(ToolCall.objects.values_list("status", flat=True))


async def test_records_outlive_the_run_and_cannot_be_changed(cast: Cast, lane_threads: Executor) -> None:
    run = await _run(cast, lane_threads, ScriptedProvider([says("Hello.")]))

    def tamper() -> None:
        with tenant_scope(cast.tenant.pk):
            Run.objects.filter(pk=run.pk).delete()
            (row,) = UsageRecord.objects.all()
            assert row.run_id == run.pk
            with pytest.raises(DatabaseError, match="permission denied"):
                UsageRecord.objects.update(cost_usd=0)
            with pytest.raises(DatabaseError, match="permission denied"):
                row.delete()
        with tenant_scope(cast.other_tenant.pk):
            assert not UsageRecord.objects.exists()

    await sync_to_async(tamper)()

"""Tiers and answers in the background over a run's rows: what is billed, and what a later worker takes up again."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from contextlib import suppress
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async

from jobs.context import LeaseLost
from runs.models import Run, RunStep, UsageRecord
from runs.providers import service_problem
from runs.services import run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S
from tests.runs.support import make_run, take, transcript, until
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.test_background import DONE, Server, for_ever, stream, told
from tests.toolloop.providers.test_service_options import served
from tests.toolloop.providers.wires import OPENAI, Recorder
from toolloop.messages import UserMessage
from toolloop.providers.base import Provider
from toolloop.tools import Toolset

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "openai/gpt-5"


async def carry(
    cast: Cast, run: Run, job: Any, lane: Executor, worker: str, provider: Provider, **given: Any
) -> None:
    ctx = await sync_to_async(take)(job, worker, lane)
    with tenant_scope(cast.tenant.pk):
        await run_execute(
            ctx,
            await ctx.in_db(Run.objects.get, pk=run.pk),
            toolset=Toolset(),
            provider=provider,
            system="",
            history=[UserMessage("Count to three.")],
            **given,
        )


def rows(cast: Cast) -> tuple[list[UsageRecord], list[RunStep]]:
    with tenant_scope(cast.tenant.pk):
        return list(UsageRecord.objects.order_by("pk")), list(RunStep.objects.order_by("index"))


@pytest.mark.parametrize(
    ("asked", "word", "tier", "factor"),
    [
        ("flex", "flex", "flex", "0.5"),
        ("priority", "default", "standard", "1"),
        ("priority", "priority", "priority", "2"),
    ],
)
async def test_the_bill_says_which_tier_was_used_and_charges_for_it(
    cast: Cast, lane_threads: Executor, asked: str, word: str, tier: str, factor: str
) -> None:
    run, job = await sync_to_async(make_run)(cast, MODEL)
    provider = OPENAI.provider(Recorder(served(OPENAI, word)))
    options = {"service_tier": asked}
    await carry(cast, run, job, lane_threads, "w1", provider, options=options)
    [record], [step] = await sync_to_async(rows)(cast)
    assert (record.service_tier, step.turn["service_tier"]) == (tier, tier)
    # 53 read, 40 from the cache at a tenth, 7 written, 20 told: USD per million tokens.
    usual = (Decimal(60) * Decimal("1.25") + 40 * Decimal("0.125") + 20 * Decimal(10)) / 1_000_000
    assert record.cost_usd == record.charged_usd == usual * Decimal(factor)


async def test_a_turn_without_a_tier_is_billed_as_ever(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast, MODEL)
    provider = OPENAI.provider(Recorder(OPENAI.encode(Script(text=["x"]))))
    await carry(cast, run, job, lane_threads, "w1", provider)
    [record], [step] = await sync_to_async(rows)(cast)
    assert record.service_tier == ""
    assert "service_tier" not in step.turn


async def test_the_answer_of_a_dead_worker_is_fetched_and_paid_for_once(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast, MODEL)
    first = Server(stream(*told(0, 4), then=for_ever))
    options = {"background": True}
    task = asyncio.create_task(
        carry(cast, run, job, lane_threads, "w1", OPENAI.provider(first), options=options)
    )
    await until(run, "text")
    task.cancel()  # As when its process goes down: nobody has asked it to stop.
    with suppress(asyncio.CancelledError):
        await task
    assert first.asked == [("POST", "/responses")]
    second = Server(httpx2.Response(200, json=DONE))
    await carry(cast, run, job, lane_threads, "w2", OPENAI.provider(second), options=options)
    assert second.asked == [("GET", "/responses/resp_7")]
    records, steps = await sync_to_async(rows)(cast)
    assert [(r.kind, r.input_tokens, r.output_tokens) for r in records if r.kind == "turn"] == [
        ("turn", 100, 20)
    ]
    assert [step.turn["text"] for step in steps] == ["one two three"]
    assert (await sync_to_async(transcript)(run)).text == "one two three"


async def test_a_worker_that_has_lost_its_job_writes_no_id_over_that_of_the_next(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast, MODEL)
    gate = asyncio.Event()
    late = Server(stream(then=gate.wait))
    late.answers.append(stream(*(piece.replace(b"resp_7", b"resp_8") for piece in told(0, 7))))
    options = {"background": True}
    old = asyncio.create_task(
        carry(cast, run, job, lane_threads, "w1", OPENAI.provider(late), options=options)
    )
    async with asyncio.timeout(PATIENCE_S):
        while not late.asked:  # noqa: ASYNC110 - another task asks
            await asyncio.sleep(0.005)
        new = Server(stream(*told(0, 7)))
        await carry(cast, run, job, lane_threads, "w2", OPENAI.provider(new), options=options)
        gate.set()
        with pytest.raises(LeaseLost):
            await old
    with tenant_scope(cast.tenant.pk):
        stored = await sync_to_async(Run.objects.get)(pk=run.pk)
    assert stored.background == {"step": 0, "id": "resp_7"}
    assert stored.answer == "one two three"


def test_what_a_model_lacks_is_said_before_anybody_asks_it(cast: Cast) -> None:
    problem = service_problem
    assert problem(cast.tenant, MODEL, {"service_tier": "flex", "background": True}) == ""
    assert problem(cast.tenant, MODEL, {"temperature": 0.5}) == ""
    said = problem(cast.tenant, "anthropic/claude-haiku-4-5", {"service_tier": "flex"})
    assert said == ("anthropic/claude-haiku-4-5 has no service tier “flex”. It has: standard, priority.")
    assert "Choose one of" in problem(cast.tenant, MODEL, {"service_tier": "cheap"})
    assert "nowhere" in problem(cast.tenant, "nowhere/x", {"service_tier": "flex"})

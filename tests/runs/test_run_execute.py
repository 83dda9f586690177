"""A run is recorded as it happens, ends together with its job, and survives being killed at any write."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs.context import JobContext, LeaseLost
from jobs.models import Job, JobStatus
from runs.models import Run, RunStatus
from runs.services import run_execute, run_stop
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S
from tests.runs.support import events_of, kinds_of, make_run, take, transcript, until
from toolloop.errors import AuthFailed, ProviderUnavailable
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.tools import Toolset, tool
from webhooks.models import Event, Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db(transaction=True)

HISTORY = [UserMessage("What is the duty?")]


class World:
    """Counts what tools did outside."""

    def __init__(self) -> None:
        self.looked = 0
        self.sent = 0

    def tools(self) -> Toolset:
        @tool
        async def look(query: str) -> dict[str, Any]:
            """Look something up.

            Args:
                query: what.
            """
            self.looked += 1
            return {"found": query}

        @tool(side_effects=True)
        async def send(to: str) -> str:
            """Send a letter.

            Args:
                to: whom.
            """
            self.sent += 1
            return f"sent to {to}"

        return Toolset([look, send])


SCRIPT = [
    says(["Let me ", "look."], call("look", query="duty"), call("send", to="Ann")),
    says(["It is ", "5 %", "."]),
]


def script() -> ScriptedProvider:
    return ScriptedProvider(SCRIPT, by_history=True)


async def execute(ctx: JobContext, run: Run, provider: Any, toolset: Toolset, **more: Any) -> Any:
    with tenant_scope(ctx.tenant_id):
        run = await ctx.in_db(Run.objects.get, pk=run.pk)
        return await run_execute(
            ctx, run, toolset=toolset, provider=provider, system="Be brief.", history=HISTORY, **more
        )


def state(run: Run) -> tuple[Run, Job]:
    with tenant_scope(run.tenant_id):
        fresh = Run.objects.select_related("job").get(pk=run.pk)
        return fresh, fresh.job


async def test_run_is_recorded_and_ends_with_its_job(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    world, ended = World(), []
    finished = await execute(
        ctx, run, script(), world.tools(), before_finish=lambda r, f: ended.append((r.answer, f.status))
    )
    stored, its_job = await sync_to_async(state)(run)
    assert finished.status == "completed"
    assert (stored.status, its_job.status, ctx.is_complete) == ("completed", "succeeded", True)
    assert stored.answer == "Let me look.\n\nIt is 5 %."
    assert ended == [(stored.answer, "completed")]
    assert stored.usage["requests"] == 2
    assert (world.looked, world.sent) == (1, 1)
    events = await sync_to_async(events_of)(run)
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
    assert stored.last_seq == len(events)
    kinds = [kind for _, kind, _ in events]
    assert kinds[0] == "step_started"
    assert kinds[-1] == "finished"
    assert kinds.count("tool_started") == kinds.count("tool_finished") == 2
    assert (await sync_to_async(transcript)(run)).text == stored.answer


@pytest.mark.parametrize("wanted", [Event.RUN_FINISHED, Event.BUDGET_WARNED, None])
async def test_webhooks_that_want_to_know_hear_that_a_run_has_ended(
    wanted: Event | None, cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)

    def hooks() -> None:
        for tenant, event in ((cast.tenant, wanted), (cast.other_tenant, Event.RUN_FINISHED)):
            with tenant_scope(tenant.pk):
                if event is not None:
                    Webhook.objects.create(tenant=tenant, url="https://example.org", events=[event.value])
                    Webhook.objects.create(tenant=tenant, url="x", events=[event.value], is_enabled=False)

    def told() -> list[tuple[str, str]]:
        with platform_scope():
            return [(d.webhook.url, d.object_key) for d in WebhookDelivery.objects.select_related("webhook")]

    await sync_to_async(hooks)()
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    await execute(ctx, run, ScriptedProvider([says("5 %")]), Toolset([]))
    expected = [("https://example.org", f"run:{run.pk}")] if wanted == Event.RUN_FINISHED else []
    assert await sync_to_async(told)() == expected


async def test_nothing_is_done_when_the_run_has_ended(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    world = World()
    await execute(ctx, run, script(), world.tools())
    before = await sync_to_async(events_of)(run)
    again = await sync_to_async(take)(job, "w2", lane_threads)
    assert await execute(again, run, script(), world.tools()) is None
    assert await sync_to_async(events_of)(run) == before
    assert world.sent == 1


async def test_step_is_reset_when_the_worker_dies_in_mid_text(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    provider = ScriptedProvider([hangs(after="Half an ans")])
    task = asyncio.create_task(execute(ctx, run, provider, Toolset()))
    await until(run, "text")
    task.cancel()  # what a draining worker does; the job goes back to the queue
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.open_streams == 0
    second = await sync_to_async(take)(job, "w2", lane_threads)
    await execute(second, run, ScriptedProvider([says("Whole.")]), Toolset())
    events = await sync_to_async(events_of)(run)
    assert [kind for _, kind, _ in events] == [
        "step_started",
        "text",
        "step_reset",
        "step_started",
        "text",
        "finished",
    ]
    assert (await sync_to_async(transcript)(run)).text == "Whole."


async def test_run_leaves_a_worker_that_ends_at_a_step_and_asks_for_no_turn_twice(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)
    world, turns = World(), [calls(call("send", to="Ada")), says("Sent.")]
    first = ScriptedProvider(turns)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)

    @tool(side_effects=True)
    async def send(to: str) -> str:
        """Send a letter, while the worker is told to end.

        Args:
            to: whom.
        """
        ctx.interrupted.set()
        world.sent += 1
        return f"sent to {to}"

    with pytest.raises(asyncio.CancelledError):
        await execute(ctx, run, first, Toolset([send]))
    again = await sync_to_async(take)(job, "w2", lane_threads)
    second = ScriptedProvider(turns[1:])
    await execute(again, run, second, world.tools())
    assert (len(first.requests), len(second.requests), world.sent) == (1, 1, 1)
    ended, _ = await sync_to_async(state)(run)
    assert (ended.status, ended.answer) == (RunStatus.COMPLETED, "Sent.")


async def test_old_worker_writes_nothing_when_its_job_was_taken_over(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)
    first = await sync_to_async(take)(job, "w1", lane_threads)
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "late"

    slow = asyncio.create_task(
        execute(first, run, ScriptedProvider([calls(call("wait")), says("Old.")]), Toolset([wait]))
    )
    await until(run, "tool_started")
    second = await sync_to_async(take)(job, "w2", lane_threads)
    gate.set()  # the tool is idempotent: the second worker runs it again and gets its answer
    await execute(second, run, ScriptedProvider([says("New.")]), Toolset([wait]))
    with pytest.raises(LeaseLost):
        await slow
    stored, its_job = await sync_to_async(state)(run)
    assert stored.answer == "New."
    assert (its_job.worker, its_job.status) == ("w2", JobStatus.SUCCEEDED)
    events = await sync_to_async(events_of)(run)
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("listening", [True, False])
async def test_stop_ends_a_silent_run_and_keeps_the_text(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch, listening: bool
) -> None:
    if not listening:
        monkeypatch.setattr("runs.hub.stops._channel", "nobody_listens_here")
        monkeypatch.setattr("runs.hub.LoopHub.is_listening", False)
    else:  # what is heard is not asked for: the next question would come too late
        monkeypatch.setattr("runs.stopping.POLL_S", 10 * PATIENCE_S)
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    provider = ScriptedProvider([hangs(after="As far as ")])
    task = asyncio.create_task(execute(ctx, run, provider, Toolset()))
    await until(run, "text")

    def ask() -> None:
        with tenant_scope(cast.tenant.pk):
            run_stop(tenant=cast.tenant, actor=cast.actor("member"), run=run)

    await sync_to_async(ask)()
    finished = await asyncio.wait_for(task, PATIENCE_S)
    assert finished.status == "stopped"
    assert provider.open_streams == 0
    stored, its_job = await sync_to_async(state)(run)
    assert (stored.status, stored.answer) == ("stopped", "As far as ")
    assert its_job.status == JobStatus.SUCCEEDED


async def test_run_ends_at_once_when_it_is_stopped_in_the_queue(cast: Cast) -> None:
    run, _ = await sync_to_async(make_run)(cast)

    def ask() -> None:
        with tenant_scope(cast.tenant.pk):
            run_stop(tenant=cast.tenant, actor=cast.actor("member"), run=run)

    await sync_to_async(ask)()
    await sync_to_async(ask)()  # twice is the same as once
    stored, its_job = await sync_to_async(state)(run)
    assert (stored.status, its_job.status) == (RunStatus.STOPPED, JobStatus.CANCELLED)
    assert await sync_to_async(kinds_of)(run) == ["finished"]


async def test_failure_is_stored_with_its_reason(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    await execute(ctx, run, ScriptedProvider([fails(AuthFailed("bad key"), after="Some ")]), Toolset())
    stored, its_job = await sync_to_async(state)(run)
    assert (stored.status, stored.error_code, stored.error_message) == ("failed", "auth_failed", "bad key")
    assert stored.answer == "Some "
    assert its_job.status == JobStatus.SUCCEEDED


async def test_text_is_not_doubled_when_the_provider_is_asked_again(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    provider = ScriptedProvider(
        [fails(ProviderUnavailable("gone", retry_after_s=0.2), after="It is "), says("It is 5 %.")]
    )
    await execute(ctx, run, provider, Toolset())
    assert "step_reset" in await sync_to_async(kinds_of)(run)
    assert (await sync_to_async(transcript)(run)).text == "It is 5 %."


async def test_what_postgres_refuses_is_replaced_when_a_model_writes_it(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)

    @tool
    async def odd(value: str) -> dict[str, Any]:
        """Give odd things back.

        Args:
            value: any.
        """
        return {"text": "a\x00b\ud800", "number": float("inf")}

    provider = ScriptedProvider(
        [says("nul \x00 half \udc00", call("odd", value="\x00"), call("x" * 300)), says("end")]
    )
    await execute(ctx, run, provider, Toolset([odd]))
    stored, _ = await sync_to_async(state)(run)
    assert stored.status == "completed"
    assert stored.answer == "nul \ufffd half \ufffd\n\nend"


async def test_deltas_are_coalesced_and_the_first_is_written_at_once(
    cast: Cast, lane_threads: Executor
) -> None:
    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    words = [f"w{i} " for i in range(100)]
    provider = ScriptedProvider([says(words, chunk_delay_s=0.005)])
    task = asyncio.create_task(execute(ctx, run, provider, Toolset()))
    await until(run, "text")
    first = (await sync_to_async(events_of)(run))[1]
    assert len(first[2]["text"]) < 40
    await task
    texts = [d["text"] for _, k, d in await sync_to_async(events_of)(run) if k == "text"]
    assert "".join(texts) == "".join(words)
    assert 3 <= len(texts) <= 20

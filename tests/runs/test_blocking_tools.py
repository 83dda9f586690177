"""Blocking tools use the ORM in their run's tenant, and ones that hang hold up nobody."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from jobs.blocking import BlockingThreads
from jobs.context import JobContext
from runs.models import Run, ToolCall
from runs.services import run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S
from tests.runs.support import make_run, take
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def _carry(ctx: JobContext, run: Run, toolset: Toolset, *called: ScriptedCall) -> list[str]:
    with tenant_scope(ctx.tenant_id):
        await run_execute(
            ctx,
            await ctx.in_db(Run.objects.get, pk=run.pk),
            toolset=toolset,
            provider=ScriptedProvider([says("", *called), says("Done.")]),
            system="",
            history=[UserMessage("Go.")],
        )
        rows = ToolCall.objects.filter(run=run).order_by("pk").values_list("content", flat=True)
        return await ctx.in_db(list, rows)


async def test_blocking_tool_reads_its_own_tenant_only(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    with tenant_scope(cast.other_tenant.pk):
        await sync_to_async(Run.objects.create)(tenant=cast.other_tenant, kind="x", model="y")

    @tool(blocking=True)
    def count_runs() -> str:
        """Count runs."""
        with connection.cursor() as cursor:  # no filter: the wall holds
            cursor.execute("SELECT count(*) FROM runs_run")
            return f"{cursor.fetchone()[0]} in {threading.current_thread().name}"

    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    told = await _carry(ctx, run, Toolset([count_runs]), ScriptedCall("count_runs", {}, "a"))
    assert told == ["1 in lane-blocking"]


async def test_run_goes_on_when_tools_hang(cast: Cast, lane_threads: Executor) -> None:
    run, job = await sync_to_async(make_run)(cast)
    gate = threading.Event()

    @tool(blocking=True, timeout_s=0.2)
    def hang() -> str:
        """Hang."""
        gate.wait(PATIENCE_S)
        return "late"

    @tool(blocking=True)
    def quick() -> str:
        """Answer."""
        return "here"

    job_ctx = await sync_to_async(take)(job, "w1")
    ctx = JobContext(job, lane_threads, BlockingThreads(2))
    ctx.attempt, ctx.worker = job_ctx.attempt, job_ctx.worker
    hanging = [ScriptedCall("hang", {}, f"h{n}") for n in range(4)]
    try:
        told = await _carry(ctx, run, Toolset([hang, quick]), *hanging, ScriptedCall("quick", {}, "q"))
    finally:
        gate.set()
    assert told[-1] == "here"
    assert all("did not answer within" in text for text in told[:-1])


async def test_threads_are_reused_and_end_when_told() -> None:
    threads = BlockingThreads()
    names = {await threads.run(threading.get_ident) for _ in range(20)}
    (ident,) = names
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(lambda: next(iter(())))
    threads.close()
    for _ in range(100):
        if ident not in {t.ident for t in threading.enumerate()}:
            break
        await asyncio.sleep(0.02)
    else:
        raise AssertionError("the thread did not end")
    assert await threads.run(lambda: 7) == 7

"""Whoever follows a run gets its last events, however the end falls between two reads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from runs import stream
from runs.models import Run, RunEvent, RunStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.patience import PATIENCE_S
from tests.runs.support import make_run

pytestmark = pytest.mark.django_db(transaction=True)


def _event(run: Run, seq: int, kind: str) -> None:
    with tenant_scope(run.tenant_id):
        RunEvent.objects.create(tenant_id=run.tenant_id, run=run, seq=seq, kind=kind, data={})


def _end(run: Run) -> None:
    _event(run, 2, "finished")
    with tenant_scope(run.tenant_id):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED, last_seq=2)


async def test_last_events_come_when_the_run_ends_right_after_a_read(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await sync_to_async(make_run)(cast)
    await sync_to_async(_event)(run, 1, "text")
    reader = stream._reader()
    read, asked = reader.read, 0

    async def ends_just_now(*args: Any) -> list[dict[str, Any]]:
        nonlocal asked
        asked += 1
        rows = await read(*args)
        if asked == 1:
            await sync_to_async(_end)(run)
        return rows

    monkeypatch.setattr(reader, "read", ends_just_now)
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(stream, "LOOK_S", 0.2)
    async with asyncio.timeout(PATIENCE_S):
        batches = [b async for b in stream.events_follow(run.tenant_id, run.pk, 1)]
    assert [[kind for _, kind, _ in batch] for batch in batches if batch] == [["finished"]]
    assert asked == 2


async def test_more_events_than_one_read_takes_all_come_and_then_the_end(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await sync_to_async(make_run)(cast)
    await sync_to_async(_event)(run, 1, "text")
    await sync_to_async(_end)(run)
    monkeypatch.setattr(stream, "READ_LIMIT", 1)
    async with asyncio.timeout(PATIENCE_S):
        events, is_active = await stream.events_after(run.tenant_id, run.pk, 0)
        batches = [b async for b in stream.events_follow(run.tenant_id, run.pk, 0)]
        gone = [b async for b in stream.events_follow(run.tenant_id, run.pk + 1000, 0)]
        foreign = [b async for b in stream.events_follow(run.tenant_id + 1000, run.pk, 0)]
    assert ([kind for _, kind, _ in events], is_active) == (["text", "finished"], False)
    assert [len(b or ()) for b in batches] == [2]
    assert gone == foreign == []


async def test_equal_reads_of_one_moment_are_one_and_a_later_one_reads_for_itself(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await sync_to_async(make_run)(cast)
    reader, gate, began = stream._reader(), asyncio.Event(), 0
    read = reader.read

    async def slow(*args: Any) -> list[dict[str, Any]]:
        nonlocal began
        began += 1
        rows = await read(*args)
        await gate.wait()
        return rows

    monkeypatch.setattr(reader, "read", slow)
    first = [asyncio.ensure_future(stream.events_after(run.tenant_id, run.pk, 0)) for _ in range(5)]
    async with asyncio.timeout(PATIENCE_S):
        while not began:  # noqa: ASYNC110 - another task counts
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        await sync_to_async(_event)(run, 1, "text")
        later = asyncio.ensure_future(stream.events_after(run.tenant_id, run.pk, 0))
        await asyncio.sleep(0.05)
        gate.set()
        assert await asyncio.gather(*first) == [([], True)] * 5
        events, _ = await later
    assert [kind for _, kind, _ in events] == ["text"]
    assert began == 2


async def test_runs_that_are_woken_together_are_read_together_and_each_reader_gets_its_own(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [(await sync_to_async(make_run)(cast))[0] for _ in range(5)]
    for run in runs[1:]:
        for seq in range(1, run.pk % 3 + 2):
            await sync_to_async(_event)(run, seq, f"text of {run.pk}")
    reader, reads = stream._reader(), 0
    read = reader.read

    async def counted(*args: Any) -> list[dict[str, Any]]:
        nonlocal reads
        reads += 1
        return await read(*args)

    monkeypatch.setattr(reader, "read", counted)
    monkeypatch.setattr(stream, "TOGETHER", 3)
    asked = [(run, after) for run in runs for after in (0, 1)]
    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.gather(
            *(stream.events_after(cast.tenant.pk, run.pk, after) for run, after in asked),
            stream.events_after(cast.tenant.pk, runs[0].pk + 10_000, 0),
        )
    assert reads == 4  # eleven questions, three at a time
    *known, gone = found
    assert gone == ([], False)
    for (run, after), (events, is_active) in zip(asked, known, strict=True):
        wanted = range(after + 1, 0 if run == runs[0] else run.pk % 3 + 2)
        assert [(seq, kind) for seq, kind, _ in events] == [(seq, f"text of {run.pk}") for seq in wanted]
        assert is_active


async def test_another_workspace_s_run_is_not_read_along(cast: Cast) -> None:
    other = await sync_to_async(make_cast)()
    runs = [(await sync_to_async(make_run)(whose))[0] for whose in (cast, other)]
    for run in runs:
        await sync_to_async(_event)(run, 1, "text")
    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.gather(*(stream.events_after(cast.tenant.pk, run.pk, 0) for run in runs))
    assert [len(events) for events, _ in found] == [1, 0]


async def test_what_is_read_again_is_prepared_and_read_also_when_the_server_has_dropped_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "POOL_SIZE", 1)
    run, _ = await sync_to_async(make_run)(cast)
    await sync_to_async(_event)(run, 1, "text")
    pool = await stream._reader().pool()

    async def names() -> list[str]:
        async with pool.connection() as conn:
            found = await conn.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE 'again%'")
            return [name for (name,) in await found.fetchall()]

    async def kinds() -> list[str]:
        events, _ = await stream.events_after(run.tenant_id, run.pk, 0)
        return [kind for _, kind, _ in events]

    async with asyncio.timeout(PATIENCE_S):
        assert [await kinds() for _ in range(5)] == [["text"]] * 5
        assert len(await names()) == 1
        async with pool.connection() as conn:
            await conn.execute("DEALLOCATE ALL")
        assert [await kinds() for _ in range(3)] == [["text"]] * 3
        assert len(await names()) == 1  # known again


async def test_what_one_workspace_has_prepared_shows_another_nothing(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "POOL_SIZE", 1)
    other = await sync_to_async(make_cast)()
    runs = [(await sync_to_async(make_run)(whose))[0] for whose in (cast, other)]
    for run in runs:
        await sync_to_async(_event)(run, 1, "text")
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(4):
            for run in runs:
                for tenant in (cast.tenant, other.tenant):
                    events, is_active = await stream.events_after(tenant.pk, run.pk, 0)
                    is_theirs = run.tenant_id == tenant.pk
                    assert (len(events), is_active) == (int(is_theirs), is_theirs)
        async with (await stream._reader().pool()).connection() as conn:
            found = await conn.execute("SELECT statement, generic_plans FROM pg_prepared_statements")
            ((statement, generic_plans),) = await found.fetchall()
    assert "runs_runevent" in statement
    assert generic_plans > 10  # of sixteen reads; the first two were sent as they are

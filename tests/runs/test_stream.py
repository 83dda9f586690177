"""Whoever follows a run gets its last events, however the end falls between two reads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from runs import stream
from runs.models import Run, RunEvent, RunStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
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
    async with asyncio.timeout(5):
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
    async with asyncio.timeout(5):
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
    async with asyncio.timeout(5):
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

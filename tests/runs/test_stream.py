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


async def test_last_events_come_when_the_run_ends_between_the_two_reads(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await sync_to_async(make_run)(cast)
    await sync_to_async(_event)(run, 1, "text")
    has_ended, asked = stream._has_ended, 0

    async def ends_just_now(tenant_id: int, run_id: int) -> bool:
        nonlocal asked
        asked += 1
        await sync_to_async(_end)(run)
        return await has_ended(tenant_id, run_id)

    monkeypatch.setattr(stream, "_has_ended", ends_just_now)
    async with asyncio.timeout(5):
        batches = [b async for b in stream.events_follow(run.tenant_id, run.pk, 1)]
    assert asked == 1
    assert [[kind for _, kind, _ in b or ()] for b in batches] == [["finished"]]


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
        assert await asyncio.gather(*first) == [[]] * 5
        assert [kind for _, kind, _ in await later] == ["text"]
    assert began == 2

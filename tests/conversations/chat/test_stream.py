"""What the stream leaves on a page is what a reload shows, from wherever it is joined; it ends with the answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.template.loader import render_to_string

from apps.conversations.answering import tasks
from apps.conversations.chat.frames import Target, answer_frames
from apps.conversations.citations.markers import passages_of
from apps.conversations.display.presentation import TurnView, turn_view_live, turn_view_new
from apps.conversations.models import Turn
from apps.conversations.transcript import selectors
from apps.conversations.turns import services
from runs.recorder import Recorder
from runs.selectors import payload_list
from runs.stream import event_frames, hub
from runs.transcript import transcript_of
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.dom import Node, apply, parse, shape
from tests.conversations.support import Library, answer, ask, fresh, job_of
from tests.patience import PATIENCE_S
from tests.runs.support import events_of, take, until
from toolloop.errors import ProviderUnavailable
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says

pytestmark = pytest.mark.django_db(transaction=True)


def target(cast: Cast, turn: Turn) -> Target:
    view = turn_view_new(turn, turn.run, "")
    actor = cast.actor("member")
    return Target(cast.tenant, actor, turn.conversation_id, turn.pk, turn.run_id, view)


def page_of(cast: Cast, turn: Turn, view: TurnView) -> Node:
    """Return the page as the server renders it for this state."""
    context = {
        "tenant": cast.tenant,
        "conversation": {"pk": turn.conversation_id},
        "turn": view,
        "turns": [view],
    }
    html = render_to_string("conversations/_turn.html", context)
    return parse(f'<div id="turns">{html}</div>' + render_to_string("conversations/_refs.html", context))


def reload(cast: Cast, turn: Turn) -> Node:
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        stored = selectors.turn_get(actor=actor, conversation=turn.conversation, pk=turn.pk)
        return page_of(cast, turn, selectors.turn_view(stored))


def parts(page: Node, run_id: int) -> dict[str, Any]:
    names = [f"r{run_id}-work", f"r{run_id}-blocks", f"r{run_id}-foot", f"sources-{run_id}"]
    return {name: shape(page.find(name)) for name in names}


def messages(raw: bytes) -> list[tuple[int | None, str, str]]:
    """Return the (id, event, data) of a piece of stream."""
    found = []
    for block in raw.decode().split("\n\n"):
        fields = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        data = "\n".join(value for name, _, value in fields if name in {"data", "data:"})
        ident = next((int(value) for name, _, value in fields if name == "id"), None)
        event = next((value for name, _, value in fields if name == "event"), "")
        if any(name.startswith(("data", "event")) for name, _, _ in fields):
            found.append((ident, event, data))
    return found


async def read(stream: AsyncIterator[bytes]) -> list[tuple[int | None, str, str]]:
    async with asyncio.timeout(PATIENCE_S):
        return messages(b"".join([piece async for piece in stream]))


async def followed() -> None:
    """Wait until a reader that was started hears of what comes."""
    async with asyncio.timeout(PATIENCE_S):
        while not (hub.here.is_listening and hub.here._topics):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.005)


async def long_answer(cast: Cast, library: Library, lane: Executor, monkeypatch: Any) -> tuple[Turn, int]:
    """Return a finished turn whose text was reset, cited, cut in mid-marker and merged blocks on its way."""

    def apart(recorder: Recorder, kind: str, step: int, text: str) -> None:
        """Each piece is an event of its own, however slow the database is to take them."""
        recorder.add(kind, {"step": step, "text": text})
        recorder._wake(0.0)

    monkeypatch.setattr(Recorder, "delta", apart)
    one, two, three = library.chunks
    text = (
        f"# Duties\n\nCars pay 2.5 percent [c{one.pk}].\nTitle\n=====\n\n* a [c{two.pk}, c{one.pk}]\n* b [c777]\n\n"
        f"| x | y |\n|--:|---|\n| 1 | <script>alert(1)</script> [c{three.pk}] |\n\n```python\nx = 1  # [c{one.pk}]\n```\n\nEnd."
    )
    pieces = re.findall(r"(?s).{1,7}", text)
    turn = await sync_to_async(ask)(cast)
    await answer(
        turn,
        lane,
        monkeypatch,
        [
            says(["I will ", "look."], call("search_documents", query="<b>duty</b>"), call("nonsense", x=1)),
            says(pieces),
        ],
    )
    return await sync_to_async(fresh)(turn), turn.run_id


async def test_page_is_what_a_reload_shows_from_whatever_event_it_joined(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn, run_id = await long_answer(cast, library, lane_threads, monkeypatch)
    events = await sync_to_async(events_of)(turn.run)
    assert len(events) > 15
    final = await sync_to_async(reload)(cast, turn)
    with tenant_scope(cast.tenant.pk):
        passages = passages_of(await sync_to_async(payload_list)(turn.run))
    for after in range(len(events) + 1):
        view = turn_view_live(
            turn, turn.run, "", transcript=transcript_of(events[:after]), passages=passages, calls=[]
        )
        page = page_of(cast, turn, view)
        got = await read(answer_frames(target(cast, turn), after))
        assert got[-1][:2] == (len(events), "end")
        for ident, event, data in got[:-1]:
            assert (event, ident) == ("", len(events))
            apply(page, data)
        assert parts(page, run_id) == parts(final, run_id), after


async def test_live_page_is_what_a_reload_shows_after_every_event(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    """Events handed out one at a time: after each frame the text and sources are those of a fresh render."""
    turn, run_id = await long_answer(cast, library, lane_threads, monkeypatch)
    events = await sync_to_async(events_of)(turn.run)
    with tenant_scope(cast.tenant.pk):
        passages = passages_of(await sync_to_async(payload_list)(turn.run))

    async def one_by_one(tenant_id: int, run: int, seq: int) -> AsyncGenerator[Any, None]:
        for event in events:
            yield [event]

    monkeypatch.setattr("apps.conversations.chat.frames.events_follow", one_by_one)
    monkeypatch.setattr("apps.conversations.chat.frames._COST_FACTOR", 0)
    page = page_of(cast, turn, turn_view_new(turn, turn.run, ""))
    compared = 0
    async for piece in answer_frames(target(cast, turn), 0):
        for ident, event, data in messages(piece):
            if event or ident is None:
                continue
            apply(page, data)
            if ident == len(events):
                continue
            view = turn_view_live(
                turn, turn.run, "", transcript=transcript_of(events[:ident]), passages=passages, calls=[]
            )
            fresh_page = page_of(cast, turn, view)
            for name in (f"r{run_id}-blocks", f"r{run_id}-foot", f"sources-{run_id}"):
                assert shape(page.find(name)) == shape(fresh_page.find(name)), (ident, name)
            compared += 1
    assert compared > 10


async def test_stream_follows_a_run_under_way_and_ends_with_it(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    page = page_of(cast, turn, turn_view_new(turn, turn.run, turn.asked or ""))
    reader = asyncio.create_task(read(answer_frames(target(cast, turn), 0)))
    await followed()
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            calls(call("search_documents", query="duty")),
            says([f"word{i} " for i in range(60)] + [f"[c{library.chunks[0].pk}]"], chunk_delay_s=0.005),
        ],
    )
    got = await reader
    for _, event, data in got:
        if not event:
            apply(page, data)
    final = await sync_to_async(reload)(cast, turn)
    assert parts(page, turn.run_id) == parts(final, turn.run_id)
    assert len(got) > 1, "some of it while it was written"
    ids = [ident or 0 for ident, _, _ in got]
    assert ids == sorted(ids)


async def test_reset_text_disappears_from_the_page(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    reader = asyncio.create_task(read(answer_frames(target(cast, turn), 0)))
    await followed()
    script = [
        fails(ProviderUnavailable("gone", retry_after_s=0.2), after="One.\n\nTwo.\n\nThree."),
        says("Whole."),
    ]
    provider = ScriptedProvider(script)
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    await answer(turn, lane_threads)
    page = page_of(cast, turn, turn_view_new(turn, turn.run, ""))
    for _, event, data in await reader:
        if not event:
            apply(page, data)
    final = await sync_to_async(reload)(cast, turn)
    assert parts(page, turn.run_id) == parts(final, turn.run_id)


async def test_readers_read_again_when_the_listener_lost_its_connection(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    reader = asyncio.create_task(read(event_frames(cast.tenant.pk, turn.run_id, 0)))
    await followed()

    def cut() -> int:
        with as_login_role(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
            )
            return int(cursor.fetchone()[0])

    assert await sync_to_async(cut)() == 1
    await answer(turn, lane_threads, monkeypatch, [says("Hello.")])
    events = await reader
    assert [event for _, event, _ in events] == ["step_started", "text", "finished", "end"]


async def test_json_stream_resumes_after_a_position_without_gap(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn, run_id = await long_answer(cast, library, lane_threads, monkeypatch)
    events = await sync_to_async(events_of)(turn.run)
    for after in range(0, len(events) + 1, 3):
        got = await read(event_frames(cast.tenant.pk, run_id, after))
        assert [i for i, e, _ in got if e != "end"] == [s for s, _, _ in events if s > after]
        assert got[-1][1] == "end"


async def test_many_readers_of_one_run_share_their_reads(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    readers = [asyncio.create_task(read(event_frames(cast.tenant.pk, turn.run_id, 0))) for _ in range(50)]
    await followed()
    await answer(turn, lane_threads, monkeypatch, [says("Hello.")])
    results = await asyncio.gather(*readers)
    assert all(r == results[0] for r in results)


async def test_heartbeat_comes_while_nothing_happens(cast: Cast, monkeypatch: Any) -> None:
    monkeypatch.setattr("runs.stream.HEARTBEAT_S", 0.05)
    turn = await sync_to_async(ask)(cast)
    stream = answer_frames(target(cast, turn), 0)
    seen = [await anext(stream) for _ in range(3)]
    assert seen[0].startswith(b"retry:")
    assert seen[1:] == [b": ping\n\n"] * 2
    await stream.aclose()
    assert hub.here._topics == {}


async def test_stop_from_the_page_keeps_the_text_and_ends_the_stream(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    provider = ScriptedProvider([hangs(after="As far as ")])
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    job = await sync_to_async(job_of)(turn)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    reader = asyncio.create_task(read(answer_frames(target(cast, turn), 0)))
    with tenant_scope(cast.tenant.pk):
        work = asyncio.create_task(tasks.turn_run(ctx, **job.payload))
        await until(turn.run, "text")
        await sync_to_async(services.turn_stop)(tenant=cast.tenant, actor=cast.actor("member"), turn=turn)
        await asyncio.wait_for(work, PATIENCE_S)
    got = await asyncio.wait_for(reader, PATIENCE_S)
    assert "As far as" in got[-2][2]
    assert "Stopped" in got[-2][2]

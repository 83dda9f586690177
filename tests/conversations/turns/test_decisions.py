"""A conversation that waits for its person: what the page shows, who may decide, and how it goes on."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.conversations.chat.frames import answer_frames
from apps.conversations.models import Turn
from apps.conversations.toolset import bundle as tools
from basics.errors import Conflict
from notices.selectors import notice_list
from runs.models import PendingDecision, Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.chat.test_stream import messages, reload, target
from tests.conversations.dom import Node, apply, shape
from tests.conversations.support import answer, ask, fresh
from toolloop.providers.scripted import ScriptedCall, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
sent: list[str] = []


@tool(side_effects=True, needs_approval=True)
async def send_letter(to: str) -> str:
    """Send a letter.

    Args:
        to: whom.
    """
    sent.append(to)
    return f"sent to {to}"


SCRIPT = [says("I write. ", ScriptedCall("send_letter", {"to": "Ann <b>"}, "a")), says("It is on its way.")]


@pytest.fixture(autouse=True)
def _letters(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setattr(tools, "TOOLSET", Toolset([*tools.TOOLSET, send_letter]))


async def _parked(cast: Cast, lane: Executor, monkeypatch: pytest.MonkeyPatch) -> Turn:
    turn = await sync_to_async(ask)(cast, "Write to Ann.")
    await answer(turn, lane, monkeypatch, SCRIPT)
    assert (await sync_to_async(fresh)(turn)).run.status == "parked"
    return turn


def _waiting(turn: Turn) -> PendingDecision:
    with tenant_scope(turn.tenant_id):
        row: PendingDecision = PendingDecision.objects.get(run=turn.run_id)
        return row


def _client(cast: Cast, role: str = "member") -> Client:
    client = Client(headers={"hx-request": "true"})
    client.force_login(cast.user(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


def _url(cast: Cast, turn: Turn, tail: str) -> str:
    return f"/t/{cast.tenant.slug}/chat/{turn.conversation_id}/{tail}"


async def test_next_question_is_refused_and_says_what_is_waited_for(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _parked(cast, lane_threads, monkeypatch)
    with pytest.raises(Conflict, match="waiting for your decision about send_letter") as caught:
        await sync_to_async(ask)(cast, "And?", conversation=turn.conversation)
    assert caught.value.code == "conversation_busy"
    waiting = await sync_to_async(_waiting)(turn)
    assert caught.value.data["decisions"] == [waiting.pk]


async def test_stream_shows_on_every_tab_what_a_reload_shows(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await sync_to_async(ask)(cast, "Write to Ann.")
    page = await sync_to_async(reload)(cast, turn)
    stream = answer_frames(target(cast, turn), 0)
    await anext(stream)  # hello
    await answer(turn, lane_threads, monkeypatch, SCRIPT)
    waiting = await sync_to_async(_waiting)(turn)
    card = f"r{turn.run_id}-d{waiting.pk}"
    while page.find(card) is None:
        _apply(page, await anext(stream))
    reloaded = await sync_to_async(reload)(cast, turn)
    for part in ("decisions", "work", "foot"):
        ident = f"r{turn.run_id}-{part}"
        assert shape(page.find(ident)) == shape(reloaded.find(ident)), part
    assert "Waiting for your decision" in str(shape(reloaded))

    def decide() -> None:
        url = _url(cast, turn, f"runs/{turn.run_id}/decisions/{waiting.pk}/")
        assert _client(cast).post(url, {"decision": "reject", "reason": "No."}).status_code == 204

    await sync_to_async(decide)()
    while page.find(card) is not None:
        _apply(page, await anext(stream))
    await answer(turn, lane_threads, monkeypatch, SCRIPT)
    async for piece in stream:
        _apply(page, piece)
    reloaded = await sync_to_async(reload)(cast, turn)
    for part in ("decisions", "work", "blocks"):
        ident = f"r{turn.run_id}-{part}"
        assert shape(page.find(ident)) == shape(reloaded.find(ident)), part
    assert sent == []


def _apply(page: Node, piece: bytes) -> None:
    for _, event, data in messages(piece):
        if not event and data:
            apply(page, data)


async def test_page_shows_the_call_and_takes_the_decision(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _parked(cast, lane_threads, monkeypatch)
    waiting = await sync_to_async(_waiting)(turn)

    def told() -> list[tuple[str, str]]:
        with tenant_scope(cast.tenant.pk):
            found = notice_list(tenant=cast.tenant, actor=cast.actor("member"))
            return [(str(one.text), one.url) for one in found]

    def look_and_decide() -> None:
        assert told() == [("Approval needed", _url(cast, turn, ""))]
        client = _client(cast)
        html = client.get(_url(cast, turn, "")).content.decode()
        assert "send_letter" in html
        assert "Ann &lt;b&gt;" in html
        assert f'id="r{turn.run_id}-d{waiting.pk}"' in html
        url = _url(cast, turn, f"runs/{turn.run_id}/decisions/{waiting.pk}/")
        assert client.post(url, {"decision": "maybe"}).status_code == 400
        bad = client.post(url, {"decision": "approve", "arguments": "{"})
        assert (bad.status_code, b"not JSON" in bad.content) == (400, True)
        for role in ("owner", "admin", "viewer"):
            assert _client(cast, role).post(url, {"decision": "approve"}).status_code == 404
        edited = {"decision": "approve", "arguments": '{"to": "Bob"}', "reason": "ignored"}
        assert client.post(url, edited).status_code == 204
        assert client.post(url, {"decision": "reject"}).status_code == 409

    await sync_to_async(look_and_decide)()
    await answer(turn, lane_threads, monkeypatch, SCRIPT)
    ended = await sync_to_async(fresh)(turn)
    assert (ended.run.status, ended.is_active) == ("completed", False)
    assert ended.said["assistant"] == "I write. \n\nIt is on its way."
    assert sent == ["Bob"]
    assert await sync_to_async(told)() == [("Answer ready", _url(cast, turn, ""))]


async def test_turn_is_closed_when_a_parked_answer_is_stopped_or_deleted(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _parked(cast, lane_threads, monkeypatch)
    other = await _parked(cast, lane_threads, monkeypatch)

    def end() -> Any:
        client = _client(cast)
        assert client.post(_url(cast, turn, f"runs/{turn.run_id}/stop/")).status_code == 204
        assert client.post(_url(cast, other, "delete/")).status_code == 204
        with tenant_scope(cast.tenant.pk):
            assert not Run.objects.filter(pk=other.run_id).exists()
            assert not PendingDecision.objects.filter(run=other.run_id).exists()
        page = client.get(_url(cast, turn, "")).content.decode()
        assert "Stopped" in page
        assert "run-decide" not in page
        return fresh(turn)

    ended = await sync_to_async(end)()
    assert (ended.run.status, ended.is_active) == ("stopped", False)
    assert ended.said["assistant"] == "I write. "
    assert sent == []

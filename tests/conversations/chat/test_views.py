"""The pages and the REST API: what they answer, to whom, and what they refuse."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.conversations.answering import tasks
from apps.conversations.models import Conversation, Turn
from apps.conversations.transcript import selectors
from apps.conversations.turns import services
from runs.models import Run, RunEvent, ToolCall
from runs.selectors import transcript_read
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.chat.test_stream import messages
from tests.conversations.support import Library, answer, ask, fresh
from toolloop.errors import AuthFailed
from toolloop.providers.scripted import call, calls, fails, says

pytestmark = pytest.mark.django_db(transaction=True)
HTMX = {"HX-Request": "true"}


def client_of(cast: Cast, role: str) -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(cast.user(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(name: str, cast: Cast, *args: object) -> str:
    return reverse(f"conversations:{name}", args=[cast.tenant.slug, *args])


def key_headers(cast: Cast, role: str = "member") -> dict[str, str]:
    with tenant_scope(getattr(cast, role).tenant_id):
        made = api_key_create(
            tenant=getattr(cast, role).tenant,
            actor=cast.actor("owner" if role != "outsider" else role),
            name="test",
            scopes=["conversation.*", "run.read", "model.read", "search.run"],
        )
    key = made[1] if isinstance(made, tuple) else made.secret
    return {"Authorization": f"Bearer {key}"}


def test_home_offers_models_and_collections(cast: Cast, library: Library) -> None:
    client = client_of(cast, "member")
    page = client.get(url("home", cast))
    text = page.content.decode()
    assert page.status_code == 200
    assert "Quotes only (no AI model)" in text
    assert "Tariff" in client.get(url("suggest", cast), {"what": "collections"}).content.decode()
    assert "What do you want to know?" in text


def test_first_question_leads_to_its_conversation(cast: Cast, library: Library) -> None:
    client, ident = client_of(cast, "member"), str(uuid.uuid4())
    form = {"text": "Why?", "client_id": ident, "collections": [library.collection.pk], "model": "extractive"}
    sent = client.post(url("create", cast), form, headers=HTMX)
    again = client.post(url("create", cast), form, headers=HTMX)
    assert sent["HX-Redirect"] == again["HX-Redirect"]
    page = client.get(sent["HX-Redirect"]).content.decode()
    assert "Why?" in page
    assert "hx-sse:connect=" in page
    assert 'aria-label="Answering"' in page


def test_next_question_answers_with_its_turn(cast: Cast) -> None:
    client = client_of(cast, "member")
    with tenant_scope(cast.tenant.pk):
        conversation = Conversation.objects.create(
            tenant=cast.tenant, user=cast.user("member"), model="extractive"
        )
    form = {"text": "<b>Why?</b>", "client_id": str(uuid.uuid4())}
    sent = client.post(url("turn-create", cast, conversation.pk), form, headers=HTMX)
    text = sent.content.decode()
    assert sent.status_code == 200
    assert "&lt;b&gt;Why?&lt;/b&gt;" in text
    assert "<nav" not in text
    again = client.post(url("turn-create", cast, conversation.pk), form, headers=HTMX)
    assert again.content == sent.content
    waits = client.post(
        url("turn-create", cast, conversation.pk),
        {"text": "And <then>?", "client_id": str(uuid.uuid4())},
        headers=HTMX,
    )
    assert waits.status_code == 200
    assert "And &lt;then&gt;?" in waits.content.decode()
    assert 'hx-target="#queue"' in waits.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert Turn.objects.filter(conversation=conversation).count() == 1


async def test_page_streams_answer_and_shows_its_source(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    script = [
        calls(call("search_documents", query="q")),
        says(f"It is 2.5 percent [c{library.chunks[0].pk}]. **<img src=x onerror=alert(1)>**"),
    ]
    client = AsyncClient()
    await client.aforce_login(cast.user("member"), backend="django.contrib.auth.backends.ModelBackend")
    response: Any = await client.get(url("run-stream", cast, turn.conversation_id, turn.run_id))
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"
    assert "no-cache" in response["Cache-Control"]

    async def drain() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    reader = asyncio.create_task(drain())
    await asyncio.sleep(0.05)
    await answer(turn, lane_threads, monkeypatch, script)
    html = "".join(data for _, _, data in messages(await reader))
    assert 'data-cite="' in html
    assert "<img" not in html
    assert "&lt;x&gt;.pdf" in html

    def look() -> None:
        member = client_of(cast, "member")
        page = member.get(url("detail", cast, turn.conversation_id)).content.decode()
        assert "<img src=x" not in page
        assert f'id="src-{turn.run_id}-1"' in page
        source = member.get(url("source", cast, turn.conversation_id, f"{turn.run_id}-1"))
        text = source.content.decode()
        assert "<mark>Cars of heading 8703 pay a duty of 2.5 percent.</mark>" in text
        assert "Trucks pay 25 percent." in text
        for bad in (f"{turn.run_id}-2", f"{turn.run_id + 1}-1", "x", f"{turn.run_id}-"):
            assert member.get(url("source", cast, turn.conversation_id, bad)).status_code == 404

    await sync_to_async(look)()


async def test_whole_output_of_a_tool_can_be_opened_from_its_card(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    script = [calls(call("search_documents", query="q")), says("It is 2.5 percent.")]
    await answer(turn, lane_threads, monkeypatch, script)
    whole = "<b>" + "x" * 4_000 + " and its end"

    def look() -> None:
        with tenant_scope(cast.tenant.pk):
            made = ToolCall.objects.get(run_id=turn.run_id)
        path = url("run-output", cast, turn.conversation_id, turn.run_id, made.pk)
        detail = url("detail", cast, turn.conversation_id)
        member = client_of(cast, "member")
        assert path not in member.get(detail).content.decode()
        with tenant_scope(cast.tenant.pk):
            ToolCall.objects.filter(pk=made.pk).update(content=whole)
        page = member.get(detail).content.decode()
        assert path in page
        assert "its end" not in page
        output = member.get(path)
        assert output.content.decode() == whole
        assert output["Content-Type"] == "text/plain; charset=utf-8"
        assert output["X-Content-Type-Options"] == "nosniff"
        assert client_of(cast, "owner").get(path).status_code == 404
        other = url("run-output", cast, turn.conversation_id, turn.run_id, made.pk + 1)
        assert member.get(other).status_code == 404

    await sync_to_async(look)()


def test_conversation_is_hidden_from_everybody_else(cast: Cast) -> None:
    turn = ask(cast)
    args = (turn.conversation_id,)
    gets = [
        url("detail", cast, *args),
        url("run-stream", cast, *args, turn.run_id),
        url("source", cast, *args, f"{turn.run_id}-1"),
    ]
    posts = [
        url("turn-create", cast, *args),
        url("turn-retry", cast, *args, turn.pk),
        url("rename", cast, *args),
        url("run-stop", cast, *args, turn.run_id),
        url("delete", cast, *args),
        url("scope", cast, *args),
    ]
    form = {"text": "x", "title": "x", "client_id": str(uuid.uuid4())}
    for role in ("owner", "viewer", "outsider"):
        client = client_of(cast, role)
        assert [client.get(u).status_code for u in gets] == [404] * 3, role
        assert [client.post(u, form).status_code for u in posts] == [404] * 6, role
    anonymous = Client()
    assert {anonymous.get(u).status_code for u in gets} == {302}
    with tenant_scope(cast.tenant.pk):
        assert Turn.objects.filter(is_active=True).count() == 1


def test_rename_scope_stop_and_delete(cast: Cast, library: Library) -> None:
    turn = ask(cast)
    client, pk = client_of(cast, "member"), turn.conversation_id
    client.post(url("rename", cast, pk), {"title": "  New   name "})
    assert fresh(turn).conversation.title == "New name"
    label = client.post(url("scope", cast, pk), {"collections": [library.collection.pk]})
    assert label.content.decode().strip() == "Tariff"
    assert client.post(url("scope", cast, pk), {"collections": ["9" * 30]}).status_code == 400
    assert client.post(url("run-stop", cast, pk, turn.run_id)).status_code == 204
    assert fresh(turn).run.status == "stopped"
    assert client.post(url("turn-retry", cast, pk, turn.pk), headers=HTMX).status_code == 200
    assert fresh(turn).is_active
    assert client.post(url("delete", cast, pk)).status_code == 302
    assert client.get(url("detail", cast, pk)).status_code == 404


async def test_failed_answer_says_why_on_the_page(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    await answer(turn, lane_threads, monkeypatch, [fails(AuthFailed("The key is wrong."), after="Half")])
    client = await sync_to_async(client_of)(cast, "member")
    response = await sync_to_async(client.get)(url("detail", cast, turn.conversation_id))
    text = response.content.decode()
    assert "The key is wrong." in text
    assert "Half" in text
    assert "auth_failed" in text


def test_page_of_a_long_conversation_needs_few_queries(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    first = ask(cast)
    with tenant_scope(cast.tenant.pk):
        for _ in range(5):
            services.turn_stop(tenant=cast.tenant, actor=cast.actor("member"), turn=_last(first))
            ask(cast, "more", conversation=first.conversation)
        services.turn_stop(tenant=cast.tenant, actor=cast.actor("member"), turn=_last(first))
    client = client_of(cast, "member")
    with django_assert_max_num_queries(24):
        client.get(url("detail", cast, first.conversation_id))


def _last(turn: Turn) -> Turn:
    return Turn.objects.select_related("run").filter(conversation=turn.conversation).latest("index")


def test_rest_asks_once_per_idempotency_key(cast: Cast) -> None:
    client = Client(headers=key_headers(cast))
    made = client.post("/api/v1/conversations", {"title": "From REST"}, content_type="application/json")
    assert made.status_code == 201, made.content
    pk = made.json()["id"]
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    turns = f"/api/v1/conversations/{pk}/turns"
    first, again = (
        client.post(turns, {"text": "Why?"}, content_type="application/json", headers=headers)
        for _ in range(2)
    )
    assert first.status_code == 201
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["question"] == "Why?"
    busy = client.post(turns, {"text": "x"}, content_type="application/json")
    assert (busy.status_code, busy.json()["code"]) == (409, "conversation_busy")
    assert client.get(turns).json()["results"][0]["status"] == "queued"
    run = first.json()["run_id"]
    assert client.post(f"/api/v1/runs/{run}/stop").json()["status"] == "stopped"
    assert client.get(f"/api/v1/runs/{run}").json()["last_seq"] == 1
    listed = client.get("/api/v1/conversations").json()["results"]
    assert [(row["id"], row["is_answering"]) for row in listed] == [(pk, False)]
    assert client.delete(f"/api/v1/conversations/{pk}").status_code == 204
    assert client.get(f"/api/v1/conversations/{pk}").status_code == 404


def test_rest_hides_other_peoples_runs(cast: Cast) -> None:
    turn = ask(cast)
    for role in (
        "member",
        "outsider",
    ):  # the key acts for the owner who made it, not for the member who asked
        client = Client(headers=key_headers(cast, role))
        paths = [
            f"/api/v1/runs/{turn.run_id}",
            f"/api/v1/runs/{turn.run_id}/events",
            f"/api/v1/conversations/{turn.conversation_id}",
        ]
        assert [client.get(p).status_code for p in paths] == [404] * 3
        assert client.post(f"/api/v1/runs/{turn.run_id}/stop").status_code == 404
    assert Client().get(f"/api/v1/runs/{turn.run_id}").status_code == 401


def test_rest_lists_models_with_the_extractive_one_labelled(cast: Cast) -> None:
    rows = Client(headers=key_headers(cast)).get("/api/v1/models").json()["data"]
    assert rows[0]["id"] == "assistant/workspace"
    assert rows[-1]["label"] == "Extractive, no language model"
    assert rows[-1]["is_language_model"] is False


async def test_rest_streams_events_to_a_client_that_asks_for_them(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast, role="owner")
    await answer(turn, lane_threads, monkeypatch, [says("Hello.")])
    headers = await sync_to_async(key_headers)(cast)
    client = AsyncClient()
    response: Any = await client.get(
        f"/api/v1/runs/{turn.run_id}/events?after=1", headers={**headers, "Accept": "text/event-stream"}
    )
    assert response.status_code == 200
    got = messages(b"".join([piece async for piece in response.streaming_content]))
    assert [event for _, event, _ in got] == ["text", "finished", "end"]


def test_asking_needs_few_queries(cast: Cast, django_assert_max_num_queries: Any) -> None:
    turn = ask(cast)
    client = client_of(cast, "member")
    client.post(url("run-stop", cast, turn.conversation_id, turn.run_id))
    form = {"text": "Why?", "client_id": str(uuid.uuid4())}
    # The way to the first text begins here: add none lightly.
    with django_assert_max_num_queries(15):
        sent = client.post(url("turn-create", cast, turn.conversation_id), form, headers=HTMX)
    assert sent.status_code == 200
    asked = Turn.objects.filter(conversation=turn.conversation_id, is_active=True)
    with tenant_scope(cast.tenant.pk):
        turn = asked.get()
        # And goes on here; the turn before this one costs two: where it stands, and what was said in it.
        with django_assert_max_num_queries(8):
            assert tasks._prepare(turn.tenant_id, turn.pk, turn.run_id) is not None


def test_a_page_ends_with_the_event_up_to_which_its_calls_were_read(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn: Turn = ask(cast, "What is the duty?")
    with tenant_scope(cast.tenant.pk):
        run = turn.run
        ToolCall.objects.create(
            tenant=cast.tenant, run=run, step=0, call_id="a", name="calculate", status="running"
        )
        Run.objects.filter(pk=run.pk).update(status="running", last_seq=1)
        RunEvent.objects.create(tenant=cast.tenant, run=run, seq=1, kind="text", data={"text": "First."})
        read = transcript_read

        def late(row: Run, **bounds: Any) -> Any:
            """Read the events when the call has ended since the page's calls were read."""
            ToolCall.objects.filter(run=row).update(status="succeeded")
            RunEvent.objects.create(tenant=cast.tenant, run=row, seq=2, kind="text", data={"text": " Then."})
            Run.objects.filter(pk=row.pk).update(last_seq=2)
            return read(row, **bounds)

        monkeypatch.setattr(selectors, "transcript_read", late)
        view = selectors.turn_views(actor=cast.actor("member"), conversation=turn.conversation)[-1]
    assert ([card.status for card in view.tool_cards], view.seq) == (["running"], 1), (
        "the stream sends the rest"
    )

"""Questions that wait: asked in their order when the answer before them ends, kept when they cannot be."""

from __future__ import annotations

import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.conversations.chat.queued_lines import queued_lines
from apps.conversations.models import Conversation, QueuedQuestion, Turn
from apps.conversations.transcript import selectors
from apps.conversations.turns import bulk, conversations, drafts
from apps.conversations.turns import queue as turns_queue
from apps.conversations.turns import services as turns_services
from basics.errors import Conflict, Invalid, Missing
from jobs.models import Job
from runs.models import Run, RunStatus
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.branches.test_branches import said
from tests.conversations.chat.test_views import key_headers
from tests.conversations.support import answer, ask, fresh
from toolloop.providers.scripted import says

pytestmark = pytest.mark.django_db(transaction=True)


def queue(cast: Cast, turn: Turn, text: str, ident: uuid.UUID | None = None) -> Any:
    with tenant_scope(cast.tenant.pk):
        return turns_queue.question_queue(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            conversation=turn.conversation,
            text=text,
            client_id=ident or uuid.uuid4(),
        )


def waiting(cast: Cast, turn: Turn) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        rows = selectors.queued_list(actor=cast.actor("member"), conversation=turn.conversation)
        return [row.text for row in rows]


def next_asked(cast: Cast, turn: Turn) -> Turn | None:
    """Do what the job does that follows an answer."""
    with tenant_scope(cast.tenant.pk):
        return turns_queue.queued_next(tenant=cast.tenant, conversation_pk=turn.conversation_id)


def queue_jobs(cast: Cast) -> int:
    with tenant_scope(cast.tenant.pk):
        return Job.objects.filter(kind=turns_queue.JOB_KIND).count()


async def test_waiting_questions_are_asked_in_their_order_after_the_answer(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    first = await sync_to_async(ask)(cast, "One?")
    ident = uuid.uuid4()
    two = await sync_to_async(queue)(cast, first, "Two?", ident)
    assert isinstance(two, QueuedQuestion)
    assert (await sync_to_async(queue)(cast, first, "Two again?", ident)).pk == two.pk
    await sync_to_async(queue)(cast, first, "Three?")
    assert await sync_to_async(next_asked)(cast, first) is None
    assert await sync_to_async(waiting)(cast, first) == ["Two?", "Three?"]

    await answer(first, lane_threads, monkeypatch, [says("1.")])
    assert await sync_to_async(queue_jobs)(cast) == 1
    second = await sync_to_async(next_asked)(cast, first)
    assert second is not None
    assert await sync_to_async(next_asked)(cast, first) is None
    assert await sync_to_async(said)(second) == ["One?", "1.", "Two?"]
    assert await sync_to_async(waiting)(cast, first) == ["Three?"]
    assert (await sync_to_async(queue)(cast, first, "Two?", ident)).pk == second.pk


def test_rest_queues_when_it_is_told_to(cast: Cast) -> None:
    client = Client(headers=key_headers(cast, "member"))
    first = ask(cast, "One?", role="owner")  # whom the key acts for
    path = f"/api/v1/conversations/{first.conversation_id}/turns"

    def post(**body: Any) -> Any:
        return client.post(path, {"text": "Two?", **body}, content_type="application/json")

    assert post().json()["code"] == post(when_busy="refuse").json()["code"] == "conversation_busy"
    assert post(when_busy="later").status_code == 400
    ident = str(uuid.uuid4())
    waits = post(when_busy="queue", client_id=ident)
    assert (waits.status_code, waits.json()["text"], waits.json()["problem"]) == (202, "Two?", "")
    assert post(when_busy="queue", client_id=ident).json()["id"] == waits.json()["id"]
    named = post(when_busy="queue", assistant="")
    assert (named.status_code, named.json()["code"]) == (409, "conversation_busy")
    assert "Leave the assistant out" in named.json()["message"]
    listed = client.get(f"/api/v1/conversations/{first.conversation_id}/queue").json()["results"]
    assert [row["id"] for row in listed] == [waits.json()["id"]]
    with tenant_scope(cast.tenant.pk):
        Turn.objects.filter(pk=first.pk).update(is_active=False)
    second = next_asked(cast, first)
    assert second is not None
    again = post(when_busy="queue", client_id=ident)
    assert (again.status_code, again.json()["id"]) == (201, second.pk)
    with tenant_scope(cast.tenant.pk):
        Turn.objects.filter(pk=second.pk).update(is_active=False)
    assert post(when_busy="queue", assistant="").status_code == 201


async def test_stopping_and_parking_decide_when_it_is_asked(cast: Cast) -> None:
    await sync_to_async(_stop_and_park)(cast)


def _stop_and_park(cast: Cast) -> None:
    first = ask(cast, "One?")
    queue(cast, first, "Two?")
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=first.run_id).update(status=RunStatus.PARKED)
    assert next_asked(cast, first) is None
    with tenant_scope(cast.tenant.pk):
        turn = Turn.objects.select_related("run").get(pk=first.pk)
        turns_services.turn_stop(tenant=cast.tenant, actor=cast.actor("member"), turn=turn)
    assert queue_jobs(cast) == 1
    assert next_asked(cast, first) is not None


def test_question_is_asked_at_once_when_nothing_is_under_way(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        conversation = conversations.conversation_create(tenant=cast.tenant, actor=cast.actor("member"))
        asked = turns_queue.question_queue(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            conversation=conversation,
            text="Now?",
            client_id=uuid.uuid4(),
        )
    assert isinstance(asked, Turn)


def test_waiting_question_can_be_changed_and_taken_back(cast: Cast) -> None:
    first = ask(cast, "One?")
    row = queue(cast, first, "Two?")
    who: Any = {"tenant": cast.tenant, "conversation": first.conversation, "pk": row.pk}
    with tenant_scope(cast.tenant.pk):
        for role in ("owner", "viewer"):
            with pytest.raises(Missing):
                turns_queue.queued_edit(**who, actor=cast.actor(role), text="Mine!")
            with pytest.raises(Missing):
                turns_queue.queued_remove(**who, actor=cast.actor(role))
        with pytest.raises(Invalid):
            turns_queue.queued_edit(**who, actor=cast.actor("member"), text=" ")
        turns_queue.queued_edit(**who, actor=cast.actor("member"), text="Two, please?")
    assert waiting(cast, first) == ["Two, please?"]
    with tenant_scope(cast.tenant.pk):
        turns_queue.queued_remove(**who, actor=cast.actor("member"))
        with pytest.raises(Missing):
            turns_queue.queued_remove(**who, actor=cast.actor("member"))
    assert waiting(cast, first) == []
    for _ in range(20):
        queue(cast, first, "More?")
    with pytest.raises(Conflict, match="already queued"):
        queue(cast, first, "Too many?")


def test_question_that_cannot_be_asked_stays_and_says_why(cast: Cast) -> None:
    first = ask(cast, "One?")
    row = queue(cast, first, "Two?")
    with tenant_scope(cast.tenant.pk):
        Turn.objects.filter(pk=first.pk).update(is_active=False)
        person = Membership.objects.get(user_id=first.conversation.user_id)
        person.delete()
        assert next_asked(cast, first) is None
        row.refresh_from_db()
        assert "no longer a member" in row.problem
        assert next_asked(cast, first) is None


def test_draft_stays_beside_what_is_asked_from_the_queue(cast: Cast) -> None:
    first = ask(cast, "One?")
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}

    def draft(text: str | None = None) -> str:
        with tenant_scope(cast.tenant.pk):
            if text is not None:
                drafts.draft_set(**who, conversation=first.conversation, text=text)
            return Conversation.objects.get(pk=first.conversation_id).draft

    assert draft("Tw") == "Tw"
    queue(cast, first, "Two?")
    assert draft() == ""
    draft("Something else")
    with tenant_scope(cast.tenant.pk):
        Turn.objects.filter(pk=first.pk).update(is_active=False)
    assert next_asked(cast, first) is not None
    assert draft() == "Something else"
    with tenant_scope(cast.tenant.pk), pytest.raises(Missing):
        drafts.draft_set(
            tenant=cast.tenant, actor=cast.actor("owner"), conversation=first.conversation, text="x"
        )
    assert fresh(first).conversation.draft == "Something else"


def test_question_that_waits_is_asked_when_its_conversation_is_brought_back(cast: Cast) -> None:
    turn = ask(cast, "First?")
    queue(cast, turn, "Then?")
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    who["conversations"] = [turn.conversation_id]
    with tenant_scope(cast.tenant.pk):
        bulk.conversations_delete(**who)
    assert next_asked(cast, turn) is None  # the job that follows the stopped answer finds nothing
    before = queue_jobs(cast)
    with tenant_scope(cast.tenant.pk):
        bulk.conversations_undelete(**who)
    assert queue_jobs(cast) == before + 1
    assert next_asked(cast, turn) is not None
    assert waiting(cast, turn) == []


def test_question_that_is_asked_while_its_list_is_read_is_not_lost_to_the_page(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = ask(cast)
    queue(cast, turn, "Then what?")
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=turn.run_id).update(status=RunStatus.STOPPED)
        Turn.objects.filter(pk=turn.pk).update(is_active=False)

    def then_asked(**who: Any) -> Any:
        found = list(queued_lines(**who))
        assert next_asked(cast, turn) is not None
        return found

    monkeypatch.setattr("apps.conversations.chat.views.queued_lines", then_asked)
    client = Client()
    client.force_login(cast.user("member"), backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("conversations:queue", args=[cast.tenant.slug, turn.conversation_id])
    page = client.get(f"{address}?after={turn.pk}").content.decode()
    queued, _, turns = page.partition('hx-target="#turns"')
    assert "Then what?" in queued, "so that the page looks again"
    assert "Then what?" in turns

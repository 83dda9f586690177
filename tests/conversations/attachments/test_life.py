"""Files attached to questions: taken back, attached by limited keys, and gone with the conversation."""

from __future__ import annotations

import io
import re
import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.collections.models import Collection, Document
from apps.conversations.attachments import services as attachments_services
from apps.conversations.attachments.selectors import ATTACHED, attachments_unsent
from apps.conversations.models import Attachment, Conversation, Turn
from apps.conversations.rules.services import CONVERSATIONS
from apps.conversations.turns import conversations, queue
from apps.conversations.turns import services as turns_services
from basics.errors import Conflict
from erasure.removal import removal_round
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.collections.conftest import attempt, embedder, storage  # noqa: F401 - fixtures
from tests.conversations.attachments.desk import NOTE, Desk, result_in, scripted
from tests.conversations.support import answer
from tests.factories import make_collection
from tests.markup import flat
from toolloop.messages import ToolResult
from toolloop.providers.scripted import call, calls, says

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage", "embedder")]


def test_file_is_taken_back_before_it_is_sent_and_stays_after(cast: Cast, settings: Any) -> None:
    settings.CONVERSATION_DAYS = 30
    desk = Desk(cast, "viewer")  # who may ask may attach
    kept, gone = desk.attach("a.txt", NOTE), desk.attach("b.txt", b"Something else entirely.")
    desk.act(attachments_services.attachment_remove, conversation=desk.conversation, pk=gone.pk)
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.count() == 1
        unsent = attachments_unsent(actor=cast.actor("viewer"), conversation=desk.conversation)
        assert [row.pk for row in unsent] == [kept.pk]
    turn = desk.ask("What does it cost?", kept)
    assert [row.name for row in turn.attached] == ["a.txt"]
    with pytest.raises(Conflict, match="was already asked"):
        desk.act(attachments_services.attachment_remove, conversation=desk.conversation, pk=kept.pk)
    # While the answer is written, the next question waits with its file, which is no longer in the box.
    late = desk.attach("late.txt", b"Later words about lamps.")
    desk.act(
        queue.question_queue,
        conversation=desk.conversation,
        text="And this?",
        client_id=uuid.uuid4(),
        attachments=[late.pk],
    )
    with tenant_scope(cast.tenant.pk):
        assert not attachments_unsent(actor=cast.actor("viewer"), conversation=desk.conversation)
        with pytest.raises(Conflict):
            attachments_services.attachment_remove(**desk.who, conversation=desk.conversation, pk=late.pk)
        turns_services.turn_stop(**desk.who, turn=turn)
        Turn.objects.filter(pk=turn.pk).update(is_active=False)
        asked = queue.queued_ask(**desk.who, conversation=desk.conversation)
        assert asked is not None
        assert [row.pk for row in asked.attached] == [late.pk]
    # A second file of the same name is another file; the retention rule removes all of them with the conversation.
    desk.attach("a.txt", b"Other words under the same name.")
    with platform_scope():
        Turn.objects.filter(conversation=desk.conversation).update(is_active=False)
        Conversation.objects.update(updated_at="2000-01-01T00:00Z")
        assert Document.objects.filter(live_to=None).count() == 3
    assert removal_round(CONVERSATIONS) == 1
    with platform_scope():
        assert not Document.objects.exists()
        assert not Collection.objects.exists()


async def test_limited_key_attaches_files_of_its_own_and_sees_none_of_its_persons(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person has attached a secret, in a conversation without a question, which the person's keys see too."""
    person = await sync_to_async(Desk)(cast, "owner")
    secret = await sync_to_async(person.attach)("secret.txt", b"The salary is 9000 euros.\n")
    keys = [await sync_to_async(limited_key)(cast) for _ in range(2)]

    def keys_files() -> Turn:
        one, other = (Client(headers={"Authorization": f"Bearer {key}"}) for key in keys)
        theirs = f"/api/v1/conversations/{person.conversation.pk}"
        assert one.get(theirs).status_code == 200
        assert one.get(f"{theirs}/attachments").json()["results"] == []
        for act in (one.get, one.delete):
            assert act(f"{theirs}/attachments/{secret.pk}").status_code == 404
        stolen = {"text": "Read it.", "attachments": [secret.pk]}
        asked = one.post(f"{theirs}/turns", stolen, content_type="application/json")
        assert (asked.status_code, asked.json()["code"]) == (400, "unknown_attachment"), asked.content
        assert one.get(f"/api/v1/documents/{secret.document_id}").status_code == 404

        mine = f"/api/v1/conversations/{one.post('/api/v1/conversations', {}, content_type='application/json').json()['id']}"
        given = one.post(f"{mine}/attachments", {"file": io.BytesIO(NOTE)})
        assert given.status_code == 201, given.content
        with tenant_scope(cast.tenant.pk):
            file = Attachment.objects.select_related("document").get(pk=given.json()["id"])
            attempt(file.document)
        assert one.get(f"{mine}/attachments/{file.pk}").json()["state"] == "ready"
        assert other.get(f"{mine}/attachments").json()["results"] == []
        assert other.get(f"/api/v1/documents/{file.document_id}").status_code == 404
        # What the person adds to the same conversation stays the person's, and so does its collection.
        with tenant_scope(cast.tenant.pk):
            row = Conversation.objects.get(pk=file.conversation_id)
            late = attachments_services.attachment_add(
                **person.who, conversation=row, name="late.txt", chunks=[b"Also secret.\n"]
            )
        assert one.get(f"{mine}/attachments/{late.pk}").status_code == 404
        assert one.get(f"/api/v1/documents/{late.document_id}").status_code == 404
        body = {"text": "What does the delivery cost?", "attachments": [file.pk]}
        asked = one.post(f"{mine}/turns", body, content_type="application/json")
        assert asked.status_code == 201, asked.content
        with tenant_scope(cast.tenant.pk):
            found: Turn = Turn.objects.get(pk=asked.json()["id"])
            return found

    turn = await sync_to_async(keys_files)()
    provider = scripted(
        monkeypatch,
        [
            calls(call("search_documents", query="salary delivery euros")),
            calls(call("search_documents", query="delivery euros", collections=[ATTACHED])),
            says("417 euros."),
        ],
    )
    await answer(turn, lane_threads)
    assert "417 euros" in result_in(provider).content
    for request in provider.requests[1:3]:
        told = request.messages[-1]
        assert isinstance(told, ToolResult)
        assert "417 euros" in told.content
        assert "9000" not in told.content

    def gone() -> None:
        with tenant_scope(cast.tenant.pk):
            row = Conversation.objects.get(pk=turn.conversation_id)
            conversations.conversation_delete(tenant=cast.tenant, actor=cast.actor("owner"), conversation=row)
            left = Document.objects.values_list("pk", flat=True)
            assert list(left) == [secret.document_id]
        one = Client(headers={"Authorization": f"Bearer {keys[0]}"})
        assert [c["name"] for c in one.get("/api/v1/collections").json()["results"]] == ["Chosen"]
        page = Client()
        page.force_login(cast.user("owner"))
        assert "1 collection only" in flat(page.get(f"/t/{cast.tenant.slug}/settings/keys/").content.decode())

    await sync_to_async(gone)()


def limited_key(cast: Cast) -> str:
    """Return the secret of a key of the owner's that is limited to a collection of its own."""
    home = Collection.objects.filter(name="Chosen")
    with tenant_scope(cast.tenant.pk):
        collection = home.first() or make_collection(cast.tenant, "Chosen")
        _, key = api_key_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            name="limited",
            collections=[collection.pk],
            scopes=["conversation.*", "collection.read", "search.run", "tool.run", "model.read"],
        )
        return key


def test_new_conversation_begins_with_a_file(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.user("member"))
    desk = Desk(cast)
    base = f"/t/{cast.tenant.slug}/chat/"
    # A new conversation begins with its file; the first question goes into it.
    upload = io.BytesIO(NOTE)
    upload.name = "delivery.txt"
    begun = client.post(f"{base}attachments/", {"file": upload})
    assert begun.status_code == 200, begun.content
    chip = flat(begun.content.decode())
    found = re.search(r'data-att="(\d+)" data-conversation="(\d+)"', chip)
    assert found is not None
    assert "Reading" in chip
    sent = client.post(
        f"{base}new/",
        {
            "text": "What does it cost?",
            "client_id": str(uuid.uuid4()),
            "conversation": found[2],
            "attachments": found[1],
        },
    )
    assert sent.status_code == 302
    assert sent["Location"] == f"{base}{found[2]}/"
    page = client.get(sent["Location"]).content.decode()
    assert "Waiting until delivery.txt has been read" in page
    other = client.get(f"{base}{desk.conversation.pk}/attachments/{found[1]}/")
    assert other.status_code == 404

"""Files attached to questions: read before the answer, and cited like every document."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client

from apps.collections.models import Collection, Document, DocumentAccess
from apps.conversations.answering import tasks
from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.attachments.selectors import ATTACHED
from apps.conversations.branches import services as branches_services
from apps.conversations.models import Attachment, Conversation, Turn
from apps.conversations.sharing import services as sharing_services
from apps.conversations.sharing.exports import export_json, export_markdown
from apps.conversations.sharing.selectors import shared_view
from apps.conversations.transcript import selectors, sources
from apps.conversations.turns import conversations
from apps.conversations.turns import services as turns_services
from apps.tools.models import ToolGrant
from basics.errors import Invalid
from jobs.models import Job, JobStatus
from runs.call_log import WITHHELD, CallChoice, call_get, call_log
from runs.models import RunStatus, ToolCall
from runs.withheld import HIDDEN
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, embedder, storage  # noqa: F401 - fixtures
from tests.conversations.attachments.desk import LONG, NOTE, PNG, Desk, chunk_of, result_in, scripted
from tests.conversations.support import answer, fresh, job_of
from toolloop.messages import UserMessage
from toolloop.providers.profiles import Profile
from toolloop.providers.scripted import call, calls, says

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage", "embedder")]


@pytest.mark.asyncio
async def test_small_file_is_given_whole_and_its_citation_resolves_everywhere(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await sync_to_async(Desk)(cast)
    file = await sync_to_async(desk.attach)("delivery.txt", NOTE)
    chunk = await sync_to_async(chunk_of)(file, "417")
    turn = await sync_to_async(desk.ask)("What does the delivery cost?", file)
    cite = f"The delivery to Porto costs 417 euros [c{chunk.pk}]."
    provider = scripted(monkeypatch, [says(cite)])
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    assert row.run.status == RunStatus.COMPLETED
    assert [(c.number, c.chunk_id, c.document_name, c.collection_name) for c in row.cited] == [
        (1, chunk.pk, "delivery.txt", ATTACHED)
    ]
    assert row.cited[0].quote == "The delivery to Porto costs 417 euros."
    assert [p["text"] for p in json.loads(result_in(provider).content)["results"]] == [chunk.text]

    def faces() -> None:
        with tenant_scope(cast.tenant.pk):
            actor = cast.actor("member")
            # The page after a reload, the opened source, REST's turn, both exports.
            [view] = selectors.turn_views(actor=actor, conversation=desk.conversation)
            assert [c.document_name for c in view.citations] == ["delivery.txt"]
            assert [f.name for f in view.attachments] == ["delivery.txt"]
            opened = sources.source_get(
                actor=actor, conversation=desk.conversation, run_id=turn.run_id, number=1
            )
            assert opened.quote == "The delivery to Porto costs 417 euros."
            text = export_markdown(actor=actor, conversation=desk.conversation)
            assert f"- [1] delivery.txt ({ATTACHED}): “The delivery to Porto" in text
            [told] = export_json(actor=actor, conversation=desk.conversation)["turns"]
            assert told["citations"][0]["chunk_id"] == chunk.pk
            # A link shows the answer; of the source, its reader learns neither name nor words.
            share = sharing_services.share_create(**desk.who, conversation=desk.conversation)
            for role in ("owner", "viewer"):
                seen = shared_view(actor=cast.actor(role), share=share)
                assert seen.turns[0].citations[0].document_name == HIDDEN
                assert seen.turns[0].hidden == 1
                assert "delivery.txt" not in repr(seen)
            # The owner of the conversation reads the document itself; nobody else can.
            client = Client()
            home = Document.objects.get().collection_id
            page = f"/t/{cast.tenant.slug}/collections/{home}/documents/{file.document_id}/"
            for role, status in (("member", 200), ("owner", 404), ("outsider", 404)):
                client.force_login(cast.user(role))
                assert client.get(page).status_code == status, role
            client.force_login(cast.user("member"))
            turns = client.get(f"/t/{cast.tenant.slug}/chat/{desk.conversation.pk}/").content.decode()
            assert "delivery.txt" in turns

    await sync_to_async(faces)()

    def logged() -> None:
        with tenant_scope(cast.tenant.pk):
            made = ToolCall.objects.get(run_id=turn.run_id)
            assert "417" in call_get(actor=cast.actor("member"), pk=made.pk).content
            assert call_get(actor=cast.actor("owner"), pk=made.pk).content == str(WITHHELD)
            for role, count in (("member", 1), ("owner", 0)):
                found = call_log(actor=cast.actor(role), choice=CallChoice(text="417 euros"))
                assert found.count() == count, role

    await sync_to_async(logged)()
    # A question that follows has it too, and another branch; nothing was attached anew.
    after = await sync_to_async(desk.ask)("And how long does it take?")
    provider = scripted(monkeypatch, [says(f"Nine days [c{chunk.pk}].")])
    await answer(after, lane_threads)
    assert (await sync_to_async(fresh)(after)).cited[0].chunk_id == chunk.pk
    regenerated = await sync_to_async(desk.act)(
        branches_services.turn_regenerate, turn=row, client_id=uuid.uuid4()
    )
    await answer(regenerated, lane_threads)
    assert (await sync_to_async(fresh)(regenerated)).cited[0].chunk_id == chunk.pk
    # The fork has a right of its own to the same bytes, and keeps it when the conversation goes.
    fork: Conversation = await sync_to_async(desk.act)(branches_services.conversation_fork, turn=row)

    def gone() -> None:
        with tenant_scope(cast.tenant.pk):
            assert Document.objects.count() == 1
            assert fork.attachments.count() == 1
            conversations.conversation_delete(**desk.who, conversation=desk.conversation)
            [view] = selectors.turn_views(actor=cast.actor("member"), conversation=fork)
            assert [c.document_name for c in view.citations] == ["delivery.txt"]
            key = Document.objects.get().file
            conversations.conversation_delete(**desk.who, conversation=fork)
            assert not Document.objects.exists()
            assert not Collection.objects.exists()
            assert not DocumentAccess.objects.exists()
            assert not Attachment.objects.exists()
        assert not (Path(settings.MEDIA_ROOT) / key).exists()

    await sync_to_async(gone)()


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["quick", "planned", "tools", "code"])
async def test_every_mode_uses_a_large_file(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    desk = await sync_to_async(Desk)(cast)
    for module in ("apps.conversations.answering.prepare", "apps.conversations.answering.closing"):
        monkeypatch.setattr(f"{module}.is_extractive", lambda model: False)

    def prepare() -> tuple[Attachment, Turn]:
        file = desk.attach("lots.txt", LONG.encode())
        with tenant_scope(cast.tenant.pk):
            ToolGrant.objects.create(
                tenant=cast.tenant, effect="allow", target_kind="group", target="code_mode"
            )
            row = assistants_services.assistant_create(**desk.who, name="Clerk", spec=VersionSpec(mode=mode))
            assistants_services.version_publish(**desk.who, assistant=row, number=1)
            return file, turns_services.turn_submit(
                **desk.who,
                conversation=desk.conversation,
                text="How many crates does lot 321 hold?",
                client_id=uuid.uuid4(),
                attachments=[file.pk],
                assistant=row.slug,
            )

    file, turn = await sync_to_async(prepare)()
    chunk = await sync_to_async(chunk_of)(file, "lot 321 ")
    search = call("search_documents", query="lot 321 crates", collections=[ATTACHED])
    step = {"action": "search_documents", "description": "Find it", "inputs": {"query": "lot 321"}}
    plan = {"schema_version": "1.0", "reasoning": "One search.", "steps": [step]}
    final = says(f"Lot 321 holds 2247 crates [c{chunk.pk}].")
    scripts: dict[str, list[Any]] = {
        "quick": [final, final],
        "planned": [calls(call("plan", **plan)), calls(search), final],
        "tools": [calls(search), final],
        "code": [calls(call("execute_tools", code="print(search_documents(query='lot 321 crates'))")), final],
    }
    provider = scripted(monkeypatch, scripts[mode])
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    assert row.run.status == RunStatus.COMPLETED, row.run.error_message
    assert [c.chunk_id for c in row.cited] == [chunk.pk]
    told = json.loads(result_in(provider).content)
    assert told["results"] == []
    assert "search it with search_documents" in told["note"]

    def called() -> list[str]:
        with tenant_scope(cast.tenant.pk):
            rows = ToolCall.objects.filter(run_id=turn.run_id).order_by("pk")
            return list(rows.values_list("name", flat=True))

    names = await sync_to_async(called)()
    assert names[0] == "read_attached_files"
    assert "search_documents" in names


@pytest.mark.asyncio
async def test_answer_waits_until_a_file_is_read_and_holds_no_worker(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await sync_to_async(Desk)(cast)
    file = await sync_to_async(desk.attach)("delivery.txt", NOTE, read=False)
    turn = await sync_to_async(desk.ask)("What does the delivery cost?", file)
    provider = scripted(monkeypatch, [says("417 euros.")])
    await answer(turn, lane_threads)

    def waiting() -> None:
        job = job_of(turn)
        assert job.status == JobStatus.QUEUED
        assert job.attempts == 0
        assert not provider.requests
        with tenant_scope(cast.tenant.pk):
            [view] = selectors.turn_views(actor=cast.actor("member"), conversation=desk.conversation)
            assert view.is_live
            assert view.phase == "Waiting until delivery.txt has been read"
            assert file.document is not None
            attempt(file.document)
            Job.objects.filter(pk=job.pk).update(run_after="2000-01-01T00:00Z")

    await sync_to_async(waiting)()
    await answer(turn, lane_threads)
    assert (await sync_to_async(fresh)(turn)).run.status == RunStatus.COMPLETED
    # One that cannot be read ends the answer, which says so; without it the question can be asked again.
    bad = await sync_to_async(desk.attach)("empty.txt", b"", read=False)
    second = await sync_to_async(desk.ask)("And this?", bad)

    def fail() -> None:
        with tenant_scope(cast.tenant.pk):
            assert bad.document is not None
            attempt(bad.document)

    await sync_to_async(fail)()
    await answer(second, lane_threads)
    row = await sync_to_async(fresh)(second)
    assert row.run.status == RunStatus.FAILED
    assert not row.is_active
    assert row.run.error_code == "attachment_unreadable"
    assert row.run.error_message.startswith("“empty.txt” could not be read: ")


@pytest.mark.asyncio
async def test_image_goes_to_a_model_that_sees_and_is_refused_before_one_that_does_not(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await sync_to_async(Desk)(cast)
    file = await sync_to_async(desk.attach)("stamp.png", PNG)
    with pytest.raises(Invalid, match="can only read text") as refused:
        await sync_to_async(desk.ask)("What is this?", file)
    assert refused.value.code == "model_sees_no_images"
    sight = Profile(image_input=True, pdf_input=True)
    monkeypatch.setattr("apps.conversations.turns.asking.attachments_seen", lambda *given: None)
    monkeypatch.setattr(tasks, "loop_model", lambda provider, model: (model, sight))
    turn = await sync_to_async(desk.ask)("What is this?", file)
    provider = scripted(monkeypatch, [says("A dot.")])
    await answer(turn, lane_threads)
    question = provider.requests[0].messages[-1]
    assert isinstance(question, UserMessage)
    assert [(p.media_type, p.name) for p in question.parts] == [("image/png", "stamp.png")]
    assert "you see it beside the question" in result_in(provider).content
    # A model that sees nothing goes on with the conversation, and is told that there is a picture.
    monkeypatch.setattr(tasks, "loop_model", lambda provider, model: (model, Profile()))
    after = await sync_to_async(desk.ask)("And now?")
    provider = scripted(monkeypatch, [says("I cannot see it.")])
    await answer(after, lane_threads)
    assert not any(m.parts for m in provider.requests[0].messages if isinstance(m, UserMessage))
    assert "cannot see" in result_in(provider).content

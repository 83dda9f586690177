"""A chat that changes a file: asked about first, recorded under its run, searchable again, and taken back by a person."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.files import services as files_services
from apps.collections.files import undo
from apps.collections.files.selectors import file_content
from apps.collections.models import Chunk, Collection, Document, DocumentStatus, FileBatch
from apps.conversations.models import Conversation, Turn
from apps.conversations.turns.conversations import conversation_create
from apps.tools.permissions.services import grant_create
from apps.tools.toolset.direct_calls import offer_guard, offer_tools
from jobs.models import JobStatus
from runs.approvals.services import call_decide
from runs.models import PendingDecision, ToolCall
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, job_of
from tests.conversations.support import answer, ask, fresh
from toolloop.deferred import Decision
from toolloop.providers.scripted import ScriptedCall, says

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = "The notice period is 30 days.\nIt begins on the first of the month.\n"
AFTER = "The notice period is 45 days.\nIt begins on the first of the month.\n"
EDIT = {
    "collection": "Trade",
    "files": [
        {"path": "terms/notice.txt", "edits": [{"kind": "replace_text", "old": "30 days", "text": "45 days"}]}
    ],
    "note": "New law",
}
SCRIPT = [
    says("", ScriptedCall("read_file", {"collection": "Trade", "path": "terms/notice.txt"}, "a")),
    says("", ScriptedCall("edit_file", EDIT, "b")),
    says("It is 45 days now."),
]


def _written(cast: Cast, collection: Collection) -> Document:
    with tenant_scope(cast.tenant.pk):
        files_services.file_write(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            collection=collection,
            path="terms/notice.txt",
            content=BEFORE,
        )
        return attempt(Document.objects.get(path="terms/notice.txt"))


def _conversation(cast: Cast, collection: Collection) -> Conversation:
    with tenant_scope(cast.tenant.pk):
        return conversation_create(
            tenant=cast.tenant, actor=cast.actor("member"), collections=[collection.pk]
        )


def _decide(cast: Cast, turn: Turn, decision: Decision) -> str:
    with tenant_scope(cast.tenant.pk):
        waiting = PendingDecision.objects.get(run=turn.run_id)
        call_decide(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            run=fresh(turn).run,
            decision_id=waiting.pk,
            decision=decision,
        )
        return str(waiting.reason)


def _passages(document: Document) -> str:
    rows = Chunk.objects.filter(document=document).order_by("index")
    return "\n".join(rows.values_list("text", flat=True))


def _text(cast: Cast, collection: Collection) -> str:
    found = file_content(actor=cast.actor("member"), collection=collection, path="terms/notice.txt")
    return found[1].decode()


async def test_chat_edits_a_file_after_approval_and_it_can_be_found_and_undone(
    cast: Cast, collection: Collection, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch, storage: Path
) -> None:
    first = await sync_to_async(_written)(cast, collection)
    conversation = await sync_to_async(_conversation)(cast, collection)
    turn = await sync_to_async(ask)(cast, "Make it 45 days.", conversation=conversation)
    await answer(turn, lane_threads, monkeypatch, SCRIPT)

    def parked() -> None:
        assert fresh(turn).run.status == "parked"
        with tenant_scope(cast.tenant.pk):
            read = ToolCall.objects.get(run=turn.run_id, name="read_file")
            assert (read.status, "30 days" in read.content) == ("succeeded", True)
            assert FileBatch.objects.filter(run=turn.run_id).count() == 0
            assert _text(cast, collection) == BEFORE
        assert "asks about this call" in _decide(cast, turn, Decision("approve"))

    await sync_to_async(parked)()
    await answer(turn, lane_threads, monkeypatch, SCRIPT)

    def changed() -> None:
        ended = fresh(turn)
        assert (ended.run.status, ended.said["assistant"]) == ("completed", "It is 45 days now.")
        with tenant_scope(cast.tenant.pk):
            batch = FileBatch.objects.get(run=turn.run_id)
            assert (batch.user_id, batch.note) == (cast.user("member").pk, "New law")
            revision = batch.revisions.select_related("before", "after").get()
            assert (bytes(revision.before.content), bytes(revision.after.content)) == (
                BEFORE.encode(),
                AFTER.encode(),
            )
            assert AuditEvent.objects.filter(action="file.edit").count() == 1
            second = Document.objects.get(path="terms/notice.txt", version=2)
            assert job_of(second).status == JobStatus.QUEUED
            assert attempt(second).status == DocumentStatus.READY
            assert "45 days" in _passages(second)
            first.refresh_from_db()
            assert first.live_to is not None
            undo.batch_undo(
                tenant=cast.tenant, actor=cast.actor("member"), collection=collection, batch=batch
            )
            assert _text(cast, collection) == BEFORE
            third = attempt(Document.objects.get(path="terms/notice.txt", version=3))
            assert "30 days" in _passages(third)

    await sync_to_async(changed)()


async def test_rejected_change_leaves_the_file_as_it_is(
    cast: Cast, collection: Collection, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(_written)(cast, collection)
    conversation = await sync_to_async(_conversation)(cast, collection)
    turn = await sync_to_async(ask)(cast, "Make it 45 days.", conversation=conversation)
    await answer(turn, lane_threads, monkeypatch, SCRIPT)
    await sync_to_async(_decide)(cast, turn, Decision("reject", reason="Not yet."))
    await answer(turn, lane_threads, monkeypatch, SCRIPT)

    def after() -> Any:
        with tenant_scope(cast.tenant.pk):
            assert _text(cast, collection) == BEFORE
            return FileBatch.objects.filter(run=turn.run_id).count()

    assert await sync_to_async(after)() == 0


def _offered(cast: Cast, role: str) -> set[str]:
    with tenant_scope(cast.tenant.pk):
        return set(offer_tools(offer_guard(actor=cast.actor(role), collections=None)).names())


def test_who_may_not_write_is_offered_no_tool_that_does(cast: Cast, collection: Collection) -> None:
    for role in ("owner", "member"):
        assert {"read_file", "edit_file", "undo_change"} <= _offered(cast, role)
    assert "read_file" in _offered(cast, "viewer")
    assert not {"edit_file", "write_file", "delete_file"} & _offered(cast, "viewer")


def test_denied_collection_is_out_of_reach_of_file_tools(
    cast: Cast, collection: Collection, member_client: Any
) -> None:
    _written(cast, collection)
    with tenant_scope(cast.tenant.pk):
        grant_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            effect="deny",
            target_kind="group",
            target="collections.files",
            collection=collection.pk,
        )
    arguments = {"collection": "Trade", "path": "terms/notice.txt"}
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps(arguments)},
    }
    answered = member_client.post(
        f"/api/v1/tools/execute?tenant={cast.tenant.slug}",
        {"tool_calls": [call]},
        content_type="application/json",
    )
    assert answered.status_code == 200, answered.content
    message = answered.json()["messages"][0]
    assert (message["is_error"], "30 days" in message["content"]) == (True, False)


def test_rest_reads_a_file_at_once_and_parks_a_change(
    cast: Cast, collection: Collection, member_client: Any
) -> None:
    _written(cast, collection)
    calls = [
        ("a", "read_file", {"collection": "Trade", "path": "terms/notice.txt"}),
        ("b", "edit_file", EDIT),
    ]
    answered = member_client.post(
        f"/api/v1/tools/execute?tenant={cast.tenant.slug}",
        {
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                for i, n, a in calls
            ]
        },
        content_type="application/json",
    )
    assert answered.status_code == 200, answered.content
    told = answered.json()
    assert [("30 days" in m["content"], m["is_error"]) for m in told["messages"]] == [(True, False)]
    assert (told["waiting"], told["waiting_run"] is not None) == (["b"], True)

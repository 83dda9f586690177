"""An erased document or conversation is nowhere any more, nor is what was made of it; its neighbours are whole."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from apps.collections.models import Chunk, Document
from apps.collections.storage.originals import file_key, page_cache
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.datasets.models import DatasetRow, RowContent, VersionRow
from apps.evaluations.models import Score, Trial
from basics.errors import Conflict, Denied, Invalid, Missing
from erasure import kinds
from erasure.holds import hold_place, hold_release
from erasure.ledger import Entry, ledger_read, subject_of
from erasure.models import Erasure
from erasure.reports import KEPT
from erasure.rules import text_columns
from erasure.services import content_erase_request, erasures_round
from runs.models import ChunkRead, Run, ToolCall
from tenancy.audit_chain import audit_chain_verify
from tenancy.database.base import as_login_role
from tenancy.models import AuditEvent, TenantModel
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tests.erasure.planting import Planted, found_in_files, found_in_rows, plant
from tests.factories import actor_of
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)
OF_DOCUMENT = (
    "collections.Page",
    "collections.Chunk",
    "collections.ChunkRevision",
    "collections.ChunkLink",
    "collections.CodeEdge",
    "collections.ChunkTerms",
    "collections.Embedding",
    "collections.DocumentAccess",
)
OF_CONVERSATION = (
    "conversations.Turn",
    "conversations.Message",
    "conversations.Citation",
    "conversations.Attachment",
    "conversations.Feedback",
    "conversations.ConversationShare",
    "conversations.QueuedQuestion",
)
OF_RUN = ("runs.RunEvent", "runs.RunStep", "runs.ToolCall", "runs.PendingDecision")

FACTS = {"call_id", "parent_call_id", "name", "tool_version", "decision_why", "error_code"}
"""Which tool was called and what the rules said, which stays of a run that read a document."""


def ask(side: Side, subject: TenantModel, role: str = "owner", confirm: str = "erase") -> Erasure:
    return content_erase_request(
        tenant=side.tenant, actor=actor_of(side.people[role]), subject=subject, confirm=confirm
    )


def again() -> int:
    """Let what waits be due now, and carry it out."""
    for row in Erasure.objects.all():
        Erasure.objects.filter(pk=row.pk).update(due_at=row.requested_at)
    return erasures_round()


def rows(side: Side, *labels: str) -> list[TenantModel]:
    return [side.row(label, "owner") for label in labels]


def written(row: Any, **values: Any) -> None:
    with as_login_role():
        type(row)._base_manager.filter(pk=row.pk).update(**values)


def fresh(made: list[TenantModel]) -> list[Any]:
    with platform_scope():
        return [type(row)._base_manager.get(pk=row.pk) for row in made]


def noted(side: Side, row: TenantModel, planted: Planted) -> None:
    """Write an event and a line of the admin's log about a row, each with a string of its own."""
    with tenant_scope(side.tenant.pk), transaction.atomic():
        name, data = planted.mark("event"), {"from": planted.mark("event's data")}
        audit_record(
            tenant=side.tenant,
            actor=actor_of(side.people["owner"]),
            action="a.b",
            object=row,
            object_name=name,
            data=data,
        )
    kind = ContentType.objects.get_for_model(type(row))
    LogEntry.objects.create(
        user=side.user("owner"),
        content_type=kind,
        object_id=str(row.pk),
        object_repr=planted.mark("admin log"),
        action_flag=2,
    )


def texts(model: Any) -> list[Any]:
    """Return a model's columns that can hold any text: codes and keys are left as they are."""
    codes = {"kind", "status", "relation", "file", "sha256", "role", "author", "approver", "verdict", "path"}
    return [f for f in text_columns(model) if f.name not in codes and not f.choices]


def document_of(side: Side, home: Path, planted: Planted) -> Document:
    """Make a document with something in every table, file and answer that is made of one."""
    document = side.row("collections.Document", "owner")
    made = rows(side, *OF_DOCUMENT)
    sha256 = uuid.uuid4().hex * 2
    key = file_key(side.tenant.pk, document.collection_id, sha256)
    written(document, sha256=sha256, file=key)
    original = home / "files" / key
    image = page_cache(side.tenant.pk, sha256) / "1.webp"
    for path in (original, image):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(planted.mark(path.name))
    plant(planted, fresh([document, *made]), columns=texts)
    document = fresh([document])[0]
    chunk = fresh([side.row("collections.Chunk", "owner")])[0]
    # A run that read it, and said so in every way.
    turn, run = side.row("conversations.Turn", "owner"), side.row("runs.Run", "owner")
    written(turn, run_id=run.pk, is_active=False)
    written(run, status="completed", kind="conversation")
    mine = {"tenant": side.tenant}
    word = chunk.text.split()[0]
    with tenant_scope(side.tenant.pk):
        ChunkRead.objects.create(
            **mine,
            run_id=run.pk,
            chunk_id=chunk.pk,
            document_id=document.pk,
            document_name=document.name[:255],
            tool="search",
        )
        Message.objects.filter(turn=turn).delete()
        Message.objects.create(**mine, turn=turn, author="user", text="Zquestion?")
        Message.objects.create(
            **mine,
            turn=turn,
            author="assistant",
            text=f"The sky is up. It says {word} there.",
            data={"a": word},
        )
    written(run, answer=f"The sky is up. It says {word} there.")
    plant(planted, fresh(rows(side, *OF_RUN)), columns=lambda m: [f for f in texts(m) if f.name not in FACTS])
    plant(planted, fresh(rows(side, "conversations.ConversationShare")), columns=texts)
    written(side.row("conversations.Conversation", "owner"), title=f"About {word}")
    cited = side.row("conversations.Citation", "owner")
    written(cited, turn_id=turn.pk, document_id=document.pk, chunk_id=chunk.pk, chunk_ref=chunk.pk)
    plant(planted, fresh([cited]), columns=lambda m: [f for f in texts(m) if f.name != "markers"])
    attached = side.row("conversations.Attachment", "owner")
    written(attached, document_id=document.pk)
    plant(planted, fresh([attached]), columns=texts)
    evaluated(side, planted, [{"document_id": document.pk, "quote": word}], {})
    side.row("evaluations.LiveSample", "owner")
    plant(planted, fresh(rows(side, "evaluations.LiveScore", "evaluations.ScoreCache")), columns=texts)
    case = side.row("collections.SearchCase", "owner")
    plant(planted, [case], columns=lambda m: [f for f in text_columns(m) if f.name in {"query", "note"}])
    written(case, expected=[{"path": document.path, "char_start": 0, "char_end": 3}])
    brought = side.row("collections.Import", "owner")
    written(document, batch_id=brought.pk)
    plant(
        planted, [brought], columns=lambda m: [f for f in text_columns(m) if f.name in {"name", "problems"}]
    )
    noted(side, document, planted)
    noted(side, chunk, planted)
    found: Document = fresh([document])[0]
    return found


def evaluated(side: Side, planted: Planted, sources: list[Any], lineage: dict[str, Any]) -> None:
    """Make a row of a dataset from it, with its review, version, candidate, paid call, trial and score."""
    row = side.row("datasets.DatasetRow", "owner")
    content = side.row("datasets.RowContent", "owner")
    member = side.row("datasets.VersionRow", "owner")
    item = side.row("datasets.GenerationItem", "owner")
    trial = side.row("evaluations.Trial", "owner")
    made = [
        row,
        content,
        side.row("datasets.RowReview", "owner"),
        item,
        side.row("datasets.PaidCall", "owner"),
    ]
    made += [trial, side.row("evaluations.Score", "owner")]
    plant(
        planted, fresh(made), columns=lambda m: [f for f in texts(m) if f.name not in {"sources", "lineage"}]
    )
    written(row, sources=sources, lineage=lineage)
    written(member, row_ref=row.pk, content_id=content.pk)
    written(item, row_id=row.pk)
    written(trial, content_id=content.pk)


def rows_gone(side: Side) -> None:
    with platform_scope():
        for model in (DatasetRow, RowContent, VersionRow, Trial, Score):
            assert not model._base_manager.filter(tenant=side.tenant).exists(), model


def test_nothing_of_a_document_is_left_and_a_neighbours_is_whole(home: Path) -> None:
    side, other = Side(), Side()
    planted, kept = Planted(), Planted()
    document, others = document_of(side, home, planted), document_of(other, home, kept)
    in_files = {m for m, where in planted.marks.items() if where in {document.sha256, "1.webp"}}
    assert len(in_files) == 2
    assert len(planted.marks) > 80
    in_rows = set(planted.marks) - in_files
    assert set(found_in_rows(in_rows)) == in_rows
    assert set(found_in_files(in_files, home)) == in_files

    made = ask(side, document)
    assert again() == 1
    made.refresh_from_db()
    assert (made.state, made.detail) == ("done", "")

    assert {planted.marks[m]: t for m, t in found_in_rows(planted.marks).items()} == {}
    assert found_in_files(planted.marks, home) == {}
    others_in_rows = {m for m, where in kept.marks.items() if where not in {others.sha256, "1.webp"}}
    assert set(found_in_rows(others_in_rows)) == others_in_rows
    assert len(found_in_files(set(kept.marks) - others_in_rows, home)) == 2
    rows_gone(side)
    with tenant_scope(side.tenant.pk):
        answer = Message.objects.get(author="assistant")
        assert answer.text.startswith("The sky is up.")  # which it doesn't tell of
        assert Message.objects.get(author="user").text == "Zquestion?"
        assert Conversation.objects.get().title == "Zquestion?"
        assert Citation.objects.get().quote == ""
    assert audit_chain_verify(tenant=side.tenant).is_intact
    told = {(line["where"], line["what"]) for line in made.report}
    assert told >= {
        *((label, "removed") for label in OF_DOCUMENT),
        ("collections.Document", "removed"),
        ("files", "removed"),
        ("page images and recognised text of this machine", "removed"),
        ("conversations.Citation", "pseudonymised"),
        ("conversations.Message", "pseudonymised"),
        ("conversations.ConversationShare", "removed"),
        ("datasets.DatasetRow", "removed"),
        ("datasets.VersionRow", "removed"),
        ("datasets.RowContent", "removed"),
        ("evaluations.Trial", "removed"),
        ("runs.ToolCall", "pseudonymised"),
        ("runs.ChunkRead", "pseudonymised"),
        ("tenancy.AuditEvent", "pseudonymised"),
        ("backups", KEPT),
    }
    assert not any(mark in str(made.report) for mark in planted.marks)


def conversation_of(side: Side, planted: Planted) -> Conversation:
    """Make a conversation with something in every table that hangs below one."""
    conversation = side.row("conversations.Conversation", "owner")
    turn, run = side.row("conversations.Turn", "owner"), side.row("runs.Run", "owner")
    written(turn, run_id=run.pk, is_active=False)
    written(run, status="completed", kind="conversation")
    made = [conversation, *rows(side, *OF_CONVERSATION), run, *rows(side, *OF_RUN)]
    plant(
        planted, fresh(made), columns=lambda m: [f for f in texts(m) if f.name != "request" or m is not Run]
    )
    evaluated(side, planted, [], {"conversation": conversation.pk})
    noted(side, conversation, planted)
    noted(side, side.row("conversations.ConversationShare", "owner"), planted)
    found: Conversation = fresh([conversation])[0]
    return found


def test_nothing_of_a_conversation_is_left_and_a_neighbours_is_whole(home: Path) -> None:
    side, other = Side(), Side()
    planted, kept = Planted(), Planted()
    conversation, _ = conversation_of(side, planted), conversation_of(other, kept)
    assert len(planted.marks) > 50
    assert set(found_in_rows(planted.marks)) == set(planted.marks)

    made = ask(side, conversation)
    assert again() == 1
    made.refresh_from_db()
    assert (made.state, made.detail) == ("done", "")

    assert {planted.marks[m]: t for m, t in found_in_rows(planted.marks).items()} == {}
    assert set(found_in_rows(kept.marks)) == set(kept.marks)
    rows_gone(side)
    with platform_scope():
        for model in (Turn, Run, ToolCall):
            assert not model._base_manager.filter(tenant=side.tenant).exists(), model
    assert audit_chain_verify(tenant=side.tenant).is_intact
    told = {line["where"] for line in made.report if line["what"] == "removed"}
    assert told >= {
        *OF_CONVERSATION,
        *OF_RUN,
        "conversations.Conversation",
        "datasets.DatasetRow",
        "runs.Run",
    }


def test_every_version_goes_and_each_is_in_the_ledger(home: Path) -> None:
    side = Side()
    first = side.row("collections.Document", "owner")
    with platform_scope():
        written(first, live_from=first.created_at, live_to=first.created_at)
        values = {
            f.attname: getattr(first, f.attname) for f in Document._meta.concrete_fields if f.name != "id"
        }
        second = Document.objects.create(**values | {"version": 2, "live_to": None, "sha256": "b" * 64})
    ask(side, second)
    assert again() == 1
    with platform_scope():
        assert not Document.objects.filter(tenant=side.tenant).exists()
        assert not Chunk.objects.filter(tenant=side.tenant).exists()
    assert sorted(entry.subject for entry in ledger_read([])) == sorted([first.pk, second.pk])
    assert {entry.kind for entry in ledger_read([])} == {"document"}


def test_only_who_may_delete_it_may_ask_and_no_other_workspaces(home: Path) -> None:
    side, other = Side(), Side()
    document = side.row("collections.Document", "owner")
    conversation = side.row("conversations.Conversation", "owner")
    for subject in (document, conversation):
        with pytest.raises(Denied):
            ask(side, subject, "viewer") if subject is document else content_erase_request(
                tenant=side.tenant,
                actor=actor_of(side.people["owner"]).__class__("user", side.tenant.pk, frozenset()),
                subject=subject,
                confirm="erase",
            )
        with pytest.raises(Missing):
            content_erase_request(
                tenant=other.tenant,
                actor=actor_of(other.people["owner"]),
                subject=subject,
                confirm="erase",
            )
        with pytest.raises(Invalid):
            ask(side, subject, confirm="yes")
    assert not Erasure.objects.exists()
    ask(side, document)
    with pytest.raises(Conflict, match="already"):
        ask(side, document)
    # A number in a row of the wrong workspace reaches nothing.
    Erasure.objects.update(workspace=other.tenant.pk)
    assert again() == 1
    with platform_scope():
        assert Document.objects.filter(pk=document.pk).exists()


def test_a_legal_hold_stops_it_before_and_after_it_was_asked_for(home: Path) -> None:
    side = Side()
    owner = actor_of(side.people["owner"])
    document = side.row("collections.Document", "owner")
    hold_place(tenant=side.tenant, actor=owner, reason="Case 12")
    with pytest.raises(Conflict, match="legal hold"):
        ask(side, document)
    hold_release(tenant=side.tenant, actor=owner)
    made = ask(side, document)
    hold_place(tenant=side.tenant, actor=owner, reason="Case 13")
    assert again() == 0
    made.refresh_from_db()
    assert (made.state, made.detail) == ("waiting", "The workspace is under a legal hold.")
    with platform_scope():
        assert Document.objects.filter(pk=document.pk).exists()
    hold_release(tenant=side.tenant, actor=owner)
    assert again() == 1
    with platform_scope():
        assert not Document.objects.filter(pk=document.pk).exists()


def test_nothing_goes_while_the_ledger_cannot_be_written_and_a_hold_still_stops_it(
    home: Path, settings: Any
) -> None:
    side = Side()
    document = side.row("collections.Document", "owner")
    made = ask(side, document)
    blocked = home.parent / "no-folder"
    blocked.write_text("a file where the folder of backups should be")
    settings.BACKUP_URL = str(blocked)
    assert again() == 0
    made.refresh_from_db()
    assert made.state == "waiting"
    assert "Error" in made.detail
    hold_place(tenant=side.tenant, actor=actor_of(side.people["owner"]), reason="Not too late")
    settings.BACKUP_URL = ""
    assert again() == 0
    with platform_scope():
        assert Document.objects.filter(pk=document.pk).exists()


def test_a_kind_that_no_room_registered_waits_and_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is called erased that nothing knows how to erase; another server, or this one updated, does it then."""
    side = Side()
    document = side.row("collections.Document", "owner")
    made = ask(side, document)
    known = dict(kinds._kinds)
    monkeypatch.setattr(kinds, "_kinds", {name: kind for name, kind in known.items() if name != "document"})
    assert again() == 0
    made.refresh_from_db()
    assert (made.state, made.ended_at) == ("waiting", None)
    assert "doesn't know how to erase a document" in made.detail
    with platform_scope():
        assert Document.objects.filter(pk=document.pk).exists()
    entry = Entry("document", document.pk, "0" * 64, "2026-01-01T00:00:00+00:00")
    with platform_scope(), pytest.raises(Conflict, match="doesn't know how"):
        subject_of(entry)
    monkeypatch.setattr(kinds, "_kinds", known)
    assert again() == 1
    with platform_scope():
        assert not Document.objects.filter(pk=document.pk).exists()


def test_the_page_asks_once_and_the_report_is_where_others_are(home: Path) -> None:
    side = Side()
    client = Client()
    client.force_login(side.user("owner"))
    for label, name in (("collections.Document", "document-erase"), ("conversations.Conversation", "erase")):
        row = side.row(label, "owner")
        args = (
            [side.tenant.slug, row.collection_id, row.pk]
            if isinstance(row, Document)
            else [side.tenant.slug, row.pk]
        )
        page = reverse(f"{label.partition('.')[0]}:{name}", args=args)
        assert "Delete removes only the" in client.get(page).content.decode()
        assert client.post(page, {"confirm": "no"}).status_code == 422
        hold_place(tenant=side.tenant, actor=actor_of(side.people["owner"]), reason="Case")
        held = client.post(page, {"confirm": "erase"})
        assert held.status_code == 422
        assert "under a legal hold" in held.content.decode()
        hold_release(tenant=side.tenant, actor=actor_of(side.people["owner"]))
        answer = client.post(page, {"confirm": "Erase"})
        assert answer.status_code == 302
        assert "erased in a moment" in client.get(page).content.decode()
        assert again() == 1
        assert client.get(page).status_code == 404
        report = client.get(answer["Location"]).content.decode()
        assert row._meta.label in report
        listed = client.get(reverse("web:account-erasure")).content.decode()
        assert f"{row._meta.verbose_name.capitalize()} number {row.pk}" in " ".join(listed.split())


def test_rest_tells_who_asked_and_nobody_else(home: Path) -> None:
    side, other = Side(), Side()
    document = side.row("collections.Document", "owner")
    url = reverse("api:documents-erasure", args=[document.pk])

    def signed(of: Side, role: str) -> Client:
        client = Client(headers={"X-Tenant": of.tenant.slug})
        client.force_login(of.user(role))
        return client

    owner, stranger, viewer = signed(side, "owner"), signed(other, "owner"), signed(side, "viewer")
    assert owner.get(url).json()["state"] == "none"

    def post(client: Client, word: str = "erase") -> Any:
        return client.post(url, data={"confirm": word}, content_type="application/json")

    assert post(stranger).status_code == 404
    assert post(viewer).status_code == 403
    assert post(owner, "x").status_code == 400
    assert post(owner).json()["state"] == "waiting"
    assert again() == 1
    done = owner.get(url).json()
    assert done["state"] == "done"
    assert {"where": "collections.Document", "what": "removed", "count": 1, "why": ""} in done["report"]
    assert stranger.get(url).status_code == 404
    assert signed(side, "admin").get(url).status_code == 404


def test_the_trail_keeps_who_and_when(home: Path) -> None:
    side = Side()
    document = side.row("collections.Document", "owner")
    ask(side, document)
    assert again() == 1
    with tenant_scope(side.tenant.pk):
        asked = AuditEvent.objects.get(action="document.erase_request")
        gone = AuditEvent.objects.get(action="document.delete")
    assert asked.user_id == side.user("owner").pk
    assert asked.object_name == gone.object_name == f"document-{document.pk}"
    assert asked.object_id == gone.object_id == str(document.pk)
    assert connection.in_atomic_block is False

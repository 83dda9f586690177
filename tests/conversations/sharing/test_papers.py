"""Conversations and answers as documents: opened again by our own readers with their footnotes, and never more than their reader may see."""

from __future__ import annotations

import io
import zipfile
from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pypdfium2
import pytest
from asgiref.sync import sync_to_async

from apps.collections.documents.access import document_access_set
from apps.collections.ingestion.readers.docx import DocxReader
from apps.collections.ingestion.types import ReaderLimits
from apps.collections.models import Document
from apps.conversations.models import Conversation, Message, Turn
from apps.conversations.sharing import export_services
from apps.conversations.sharing.selectors import limited_sources
from apps.conversations.transcript.selectors import conversation_get, turn_get
from basics.errors import Conflict, Denied, Invalid, Missing
from runs.withheld import HIDDEN
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from toolloop.providers.scripted import call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
QUOTE = "Cars of heading 8703 pay a duty of 2.5 percent."
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@pytest.fixture
async def told(cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any) -> Turn:
    """A finished answer that cites the library twice, with a table, a formula and a link that must not act."""
    turn: Turn = await sync_to_async(ask)(cast)
    mark = f"[c{library.chunks[0].pk}]"
    text = (
        f"{QUOTE} {mark}\n\n| a | b |\n|-|-|\n| 1 <w:p/> | 2 {mark} |\n\n- [x] done\n\n$$x^2$$\n\n"
        "[here](javascript:alert(1)) \x01 `[1]`"
    )
    await answer(turn, lane_threads, monkeypatch, [calls(call("search_documents", query="duty")), says(text)])
    return turn


def file(cast: Cast, turn: Turn, form: str, role: str = "member") -> export_services.PaperFile:
    actor = cast.actor(role)
    with tenant_scope(cast.tenant.pk):
        conversation = conversation_get(actor=actor, pk=turn.conversation_id)
        row = turn_get(actor=actor, conversation=conversation, pk=turn.pk)
        return export_services.answer_file(
            tenant=cast.tenant, actor=actor, conversation=conversation, turn=row, form=form
        )


def footnotes(body: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))  # noqa: S314 - our own
        root = ElementTree.fromstring(archive.read("word/footnotes.xml"))  # noqa: S314 - our own
    return ["".join(note.itertext()) for note in root.iter(f"{W}footnote")][2:]


def pdf_text(body: bytes) -> str:
    with pypdfium2.PdfDocument(body) as document:
        return " ".join(" ".join(page.get_textpage().get_text_range().split()) for page in document)


def test_answer_is_read_again_with_its_footnotes(cast: Cast, told: Turn, tmp_path: Path) -> None:
    made = file(cast, told, "docx")
    (note,) = footnotes(made.body)
    assert QUOTE in note
    with tenant_scope(cast.tenant.pk):
        assert told.citations.get().document_name in note
    path = tmp_path / made.name
    path.write_bytes(made.body)
    read = "\n".join(page.text for page in DocxReader().read(path, ReaderLimits()).pages)
    assert QUOTE in read
    assert "1 <w:p/>" in read.replace("\\", "")
    assert "$$x^2$$" in read.replace("\\", "")
    assert b"javascript:" not in zipfile.ZipFile(io.BytesIO(made.body)).read("word/_rels/document.xml.rels")
    said = pdf_text(file(cast, told, "pdf").body)
    assert said.count(QUOTE) == 2, "in the text and in its footnote"
    assert "1 <w:p/>" in said
    assert "[1]" in said, "in code it is text"
    with tenant_scope(cast.tenant.pk):
        events = AuditEvent.objects.filter(action="conversation.export").order_by("pk")
        assert list(events.values_list("data__form", flat=True)) == ["docx", "pdf"]


def test_source_that_may_not_be_read_any_more_has_no_words_in_a_footnote(cast: Cast, told: Turn) -> None:
    with tenant_scope(cast.tenant.pk):
        Document.objects.update(is_restricted=True)
    assert [note.strip() for note in footnotes(file(cast, told, "docx").body)] == [HIDDEN]
    assert QUOTE not in pdf_text(file(cast, told, "pdf").body)
    assert QUOTE not in file(cast, told, "md").body.decode()


async def test_what_was_read_for_an_earlier_answer_is_named_before_a_later_one_is_saved(
    cast: Cast, told: Turn, lane_threads: Executor, monkeypatch: Any
) -> None:
    later: Turn = await sync_to_async(ask)(cast, "Say that again.", conversation=told.conversation)
    await answer(later, lane_threads, monkeypatch, [says(QUOTE)])

    def named() -> None:
        with tenant_scope(cast.tenant.pk):
            (cited,) = told.citations.values_list("document_id", "document_name").distinct()
            document_access_set(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                document=Document.objects.get(pk=cited[0]),
                is_restricted=True,
                roles=["owner", "member"],
            )
            conversation = Conversation.objects.get(pk=told.conversation_id)
            names = limited_sources(actor=cast.actor("member"), conversation=conversation, turn=later)
            assert names == [cited[1]]

    await sync_to_async(named)()


def test_whole_conversation_counts_its_footnotes_through(cast: Cast, told: Turn) -> None:
    actor = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        conversation = Conversation.objects.get(pk=told.conversation_id)
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": actor, "conversation": conversation}
        made = export_services.conversation_file(**who, form="docx")
        with pytest.raises(Invalid):
            export_services.conversation_file(**who, form="exe")
        Message.objects.filter(turn=told, author=Message.Author.ASSISTANT).update(
            text="x" * (export_services.LONGEST_PDF + 1)
        )
        with pytest.raises(Invalid, match="too long"):
            export_services.conversation_file(**who, form="pdf")
    assert len(footnotes(made.body)) == 1


def test_answer_is_saved_where_its_owner_may_write_and_nowhere_else(
    cast: Cast, told: Turn, library: Library
) -> None:
    def save(role: str, collection: int, pk: int = told.pk, form: str = "md") -> Any:
        actor = cast.actor(role)
        tenant = cast.other_tenant if role == "outsider" else cast.tenant
        with tenant_scope(tenant.pk):
            conversation = conversation_get(actor=cast.actor("member"), pk=told.conversation_id)
            turn = turn_get(actor=cast.actor("member"), conversation=conversation, pk=pk)
            return export_services.answer_save(
                tenant=tenant,
                actor=actor,
                conversation=conversation,
                turn=turn,
                collection_pk=collection,
                form=form,
                name="../../Duty <b>",
            )

    mine = library.collection.pk
    kept = save("member", mine)
    assert kept.created
    assert kept.document.name == "Duty-b.md"
    assert not save("member", mine).created
    with pytest.raises(Missing):
        save("member", mine + 1000)
    with pytest.raises(Denied):
        save("viewer", mine)
    with pytest.raises(Invalid):
        save("member", mine, form="svg")
    with tenant_scope(cast.tenant.pk):
        told.run.answer = ""
        told.run.save(update_fields=["answer"])
    with pytest.raises(Conflict):
        save("member", mine)

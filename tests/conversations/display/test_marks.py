"""Marks of sentences to check: every door that an answer leaves by has them, and words them for who reads there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.collections.models import Document
from apps.conversations.citations.markers import CitablePassage, answer_cite
from apps.conversations.display.marks import (
    LABELS,
    NOTES,
    UNSUPPORTED,
    marks_found,
    marks_legend,
    marks_read,
    text_marked,
)
from apps.conversations.management.commands.ask import Command
from apps.conversations.models import Conversation, Message, Turn
from apps.conversations.openai.follow import Followed, FollowEnd, outcome_read
from apps.conversations.openai.responses_wire import ResponseWriter
from apps.conversations.openai.wire import chunks_last
from apps.conversations.sharing import export_services
from apps.conversations.sharing import services as sharing_services
from apps.conversations.sharing.papers import conversation_paper
from apps.conversations.support.sentences import LANGUAGE
from apps.conversations.transcript.selectors import turn_get
from basics.papers.model import runs_text
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from tests.markup import flat
from tests.openapi import committed
from toolloop.providers.scripted import call, calls, says

ROOT = Path(__file__).resolve().parents[3]
SAID = "Cars of heading 8703 pay a duty of 2.5 percent"
MADE_UP = "Bicycles of aluminium are exempt from every inspection."
UNREAD = "Autos der Position 8703 zahlen 2,5 Prozent Zoll."
TEXT = f"{SAID} [1]. {MADE_UP} {UNREAD}"
FIRST, LAST = TEXT.index(MADE_UP), TEXT.index(UNREAD)
SPANS: list[list[Any]] = [[FIRST, FIRST + len(MADE_UP)], [LAST, LAST + len(UNREAD), LANGUAGE]]
WANTED = {(MADE_UP, UNSUPPORTED), (UNREAD, LANGUAGE)}
Found = set[tuple[str, str]]


@dataclass
class Told:
    """A finished answer with a mark of each kind, and its reader's key."""

    cast: Cast
    turn: Turn
    key: str

    @property
    def who(self) -> dict[str, Any]:
        return {"tenant": self.cast.tenant, "actor": self.cast.actor("member")}

    @property
    def conversation(self) -> Conversation:
        row: Conversation = Conversation.objects.get(pk=self.turn.conversation_id)
        return row

    def page(self, name: str, *args: Any) -> str:
        client = Client()
        client.force_login(self.cast.user("member"), backend="django.contrib.auth.backends.ModelBackend")
        got = client.get(reverse(name, args=[self.cast.tenant.slug, *args]))
        assert got.status_code == 200, got.content[:300]
        return str(got.content.decode())

    def rest(self, path: str) -> Any:
        got = Client(headers={"Authorization": f"Bearer {self.key}"}).get(f"/api/v1{path}")
        assert got.status_code == 200, got.content[:300]
        return got.json()

    def outcome(self) -> FollowEnd:
        """What the compatible doors tell of the same run."""
        facts: dict[str, Any] = {
            "schema": None,
            "collections": None,
            "tools": [],
            "tool_choice": "auto",
            "model": "m",
        }
        run = self.turn.run
        run.request = {**run.request, "completion": facts}
        run.save(update_fields=["request"])
        return outcome_read(Followed(self.cast.tenant, self.cast.actor("member"), run, "m", 0))


def listed(marks: Any, text: str | None = None) -> Found:
    """Read marks as programs get them; their places are checked in the text they count in."""
    for mark in marks:
        assert mark["note"] == NOTES[mark["reason"]]
        assert text is None or text[mark["start"] : mark["end"]] == mark["text"]
    return {(mark["text"], mark["reason"]) for mark in marks}


def worded(text: str) -> Found:
    """Read marks as people get them in a text: words in brackets behind a sentence, and below it what they mean."""
    labels = {f"△ {LABELS[UNSUPPORTED]}": UNSUPPORTED, LABELS[LANGUAGE]: LANGUAGE}
    for label, reason in labels.items():
        assert f"- [{label}] {NOTES[reason]}" in text.split("Sources:")[0]
    found = re.findall(r"([^.\n\]]+\.) \[([^\]]+)\](?=[ \n])", text)
    return {(said.strip(), labels[label]) for said, label in found}


def badges(html: str) -> Found:
    """Read marks as a page shows them; one that is no doubt looks quieter."""
    found = re.findall(
        r'<span class="nosrc( quiet)?" id="r\d+-m\d+" title="([^"]+)">([^<]+)</span><span class="vh nosrc-note">\s*\(([^<]+)\)\s*<',
        html,
    )
    for _, note, _, label in found:
        assert (note, label) in {(NOTES[reason], LABELS[reason]) for reason in LABELS}
    return {
        (said.strip(), LANGUAGE if quiet and label == LABELS[LANGUAGE] else UNSUPPORTED)
        for quiet, _, said, label in found
    }


def of_chat(told: Told) -> Found:
    return badges(told.page("conversations:detail", told.turn.conversation_id))


def of_share(told: Told) -> Found:
    share = sharing_services.share_create(**told.who, conversation=told.conversation)
    page = flat(told.page("conversations:shared", share.key))
    (turn,) = told.rest(f"/shares/{share.key}")["turns"]
    assert listed(turn["marks"], turn["answer"]) == WANTED
    assert re.search(r"1 of \d sentences is not backed by a source, 1 not checked", page)
    return badges(page)


def of_markdown(told: Told) -> Found:
    made = export_services.conversation_export(**told.who, conversation=told.conversation, form="markdown")
    return worded(made.markdown)


def of_document(told: Told) -> Found:
    paper = conversation_paper(actor=told.who["actor"], conversation=told.conversation)
    lines = (f"{'- ' * (b.kind == 'small')}{runs_text(b.runs)}" for b in paper.blocks)
    return worded("\n".join(lines))


def of_json(told: Told) -> Found:
    made = export_services.conversation_export(**told.who, conversation=told.conversation, form="json")
    (turn,) = json.loads(json.dumps(made.conversation))["turns"]
    return listed(turn["marks"], turn["answer"])


def of_copy(told: Told) -> Found:
    return worded(told.page("conversations:turn-answer", told.turn.conversation_id, told.turn.pk))


def of_messages(told: Told) -> Found:
    turn = told.rest(f"/conversations/{told.turn.conversation_id}/turns/{told.turn.pk}")
    assert turn["unsupported"] == SPANS[:1]
    return listed(turn["marks"], turn["answer"])


def of_runs(told: Told) -> Found:
    run = told.rest(f"/runs/{told.turn.run_id}")
    assert run["text"] == TEXT
    return listed(run["marks"], run["text"])


def of_chat_completions(told: Told) -> Found:
    answer = told.outcome().answer
    whole = answer.to_json()
    content = whole["choices"][0]["message"]["content"]
    found = listed(whole["groundwork"]["marks"], content)
    last = list(chunks_last(answer, with_usage=False))[-1]
    assert listed(last["groundwork"]["marks"], content) == found
    return found


def of_responses(told: Told) -> Found:
    outcome = told.outcome()
    writer = ResponseWriter(told.turn.run_id, 0, 0, "m", {})
    (*_, last) = [*writer.begin(), *writer.text(outcome.answer.text), *writer.end(outcome)]
    whole = last["response"]
    return listed(whole["groundwork"]["marks"], whole["output"][0]["content"][0]["text"])


def of_command(told: Told) -> Found:
    turn = turn_get(actor=told.who["actor"], conversation=told.conversation, pk=told.turn.pk)
    plain, out = StringIO(), StringIO()
    Command(stdout=plain)._end(turn, is_json=False)
    assert f"  {MADE_UP}\n    {NOTES[UNSUPPORTED]}" in plain.getvalue()
    Command(stdout=out)._end(turn, is_json=True)
    facts = json.loads(out.getvalue())
    return listed(facts["marks"], facts["answer"])


DOORS: dict[str, Callable[[Told], Found]] = {
    "chat": of_chat,
    "share": of_share,
    "markdown": of_markdown,
    "document": of_document,
    "json": of_json,
    "copy": of_copy,
    "messages": of_messages,
    "runs": of_runs,
    "command": of_command,
}
COMPUTED: dict[str, Callable[[Told], Found]] = {
    "chat completions": of_chat_completions,
    "responses": of_responses,
}
"""Doors without a message: the marks are found when the run is read, so they are those of ``support`` itself."""

# Modules of the product that read the words of an answer: by which doors they leave, or why they need no mark.
READERS = {
    "apps/conversations/chat/shapes.py": {"messages"},
    "apps/conversations/sharing/exports.py": {"markdown", "json", "copy"},
    "apps/conversations/sharing/papers.py": {"document"},
    "apps/conversations/sharing/services.py": {"share"},
    "apps/conversations/transcript/selectors.py": {"chat"},
    "apps/conversations/transcript/shown.py": {"runs"},
    "apps/conversations/management/commands/ask.py": {"command"},
    "apps/conversations/feedback/shapes.py": "what readers have said of answers, which are read where they stand",
    "apps/conversations/answering/closing.py": "makes the message",
    "apps/conversations/answering/said_before.py": "hands on what was said before to a row or a score made of a turn",
    "apps/conversations/support/services.py": "compares it again, and stores the marks",
    "apps/conversations/turns/erasing_content.py": "takes erased words out of it, and its marks with them",
    "apps/conversations/turns/services.py": "deletes it",
    "apps/conversations/turns/titles.py": "names the conversation",
    "apps/datasets/collect/services.py": "makes a row of it, which a person reviews",
    "apps/evaluations/sampling/services.py": "chooses what is scored, by its marks too",
    "apps/evaluations/sampling/tasks.py": "scores it",
}
# Ours, REST: an object with an answer and its sources, and where its marks are.
WITHOUT_MARKS: dict[str, str] = {}


@pytest.fixture
def told(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> Callable[[], Any]:
    """Return what makes the answer, in the test's own loop."""

    async def make() -> Told:
        turn = await sync_to_async(ask)(cast)
        await answer(
            turn,
            lane_threads,
            monkeypatch,
            [
                calls(call("search_documents", query="duty")),
                says(f"{SAID} [c{library.chunks[0].pk}]. {MADE_UP} {UNREAD}"),
            ],
        )
        return await sync_to_async(kept)(turn)

    def kept(turn: Turn) -> Told:
        with tenant_scope(cast.tenant.pk):
            Message.objects.filter(turn=turn, author="assistant").update(unsupported=SPANS)
            actor = cast.actor("owner")
            person = cast.actor("member")
            _, key = api_key_create(
                tenant=cast.tenant,
                actor=_maker(person, actor),
                name="k",
                scopes=["conversation.read", "collection.read", "run.read"],
            )
            return Told(cast, Turn.objects.select_related("run").get(pk=turn.pk), key)

    return make


def _maker(person: Any, owner: Any) -> Any:
    return type(person)(
        person.kind, person.tenant_id, person.actions | {"key.manage"}, person.user_id, role="member"
    )


@pytest.mark.django_db(transaction=True)
async def test_every_door_has_the_marks(told: Any) -> None:
    kept = await told()

    def look() -> dict[str, Found]:
        with tenant_scope(kept.cast.tenant.pk):
            return {door: read(kept) for door, read in DOORS.items()}

    assert await sync_to_async(look)() == dict.fromkeys(DOORS, WANTED)

    def compatible() -> dict[str, Found]:
        with tenant_scope(kept.cast.tenant.pk):
            return {door: read(kept) for door, read in COMPUTED.items()}

    for door, marks in (await sync_to_async(compatible)()).items():
        assert (MADE_UP, UNSUPPORTED) in marks, door
        assert SAID not in str(marks), door


@pytest.mark.django_db(transaction=True)
async def test_answer_of_which_something_is_withheld_has_no_marks(told: Any) -> None:
    kept = await told()

    def look() -> None:
        with tenant_scope(kept.cast.tenant.pk):
            share = sharing_services.share_create(**kept.who, conversation=kept.conversation)
            Document.objects.update(is_restricted=True)
            (turn,) = kept.rest(f"/shares/{share.key}")["turns"]
            assert (turn["marks"], SAID in turn["answer"]) == ([], False)
            assert kept.rest(f"/runs/{kept.turn.run_id}")["marks"] == []
            path = f"/conversations/{kept.turn.conversation_id}/turns/{kept.turn.pk}"
            assert kept.rest(path)["marks"] == []
            for read in COMPUTED.values():
                assert read(kept) == set()

    await sync_to_async(look)()


def test_no_door_is_forgotten() -> None:
    reads = re.compile(r"Author\.ASSISTANT|\.author == \"assistant\"")
    found = {
        str(path.relative_to(ROOT))
        for room in ("apps", "platform")
        for path in (ROOT / room).rglob("*.py")
        if "migrations" not in path.parts and reads.search(path.read_text())
    }
    assert found == set(READERS), "say by which door its answers leave, or why they need no marks"
    named = set().union(*(doors for doors in READERS.values() if isinstance(doors, set)))
    assert named == set(DOORS)
    schemas = committed()["components"]["schemas"]
    answers = {
        name
        for name, schema in schemas.items()
        if {"answer", "citations"} <= set(schema.get("properties", ()))
    }
    assert answers == {"Turn", "SharedTurn"}
    assert all("marks" in schemas[name]["properties"] for name in (*answers, "Run"))


@pytest.mark.parametrize(
    ("spans", "reasons"),
    [
        ([[0, 4]], ["unsupported"]),
        ([[0, 4, "number"], [5, 9, "language"]], ["number", "language"]),
        ([[5, 9, "polarity"], [0, 4, "name"]], ["name", "polarity"]),
        ([[0, 4, "of a later version"]], ["unsupported"]),
        ([[0, 99], [4, 4], [-3, 2], [5, 9]], ["unsupported"]),
        ([], []),
    ],
)
def test_marks_are_read_with_and_without_a_reason(spans: Any, reasons: list[str]) -> None:
    assert [mark.reason for mark in marks_read(spans, "Aaa. Bbb.")] == reasons


def test_marked_text_says_why_and_what_that_means() -> None:
    marks = marks_read([[0, 4, "number"], [5, 9, "language"]], "Aaa. Bbb.")
    assert (
        text_marked("Aaa. Bbb.", marks)
        == "Aaa. [△ number not in the source] Bbb. [not checked: other language]"
    )
    assert [line.split("] ")[0] for line in marks_legend(marks).splitlines()] == [
        "- [△ number not in the source",
        "- [not checked: other language",
    ]
    assert (text_marked("Aaa.", []), marks_legend([])) == ("Aaa.", "")


def test_marks_of_an_answer_in_json_stand_in_its_texts() -> None:
    passages = {1: CitablePassage(1, 1, "d", "c", f"{SAID}. Trucks pay 25 percent.")}
    value = {"answer": f'{SAID} [c1].\n"{MADE_UP}"', "é": ["Trucks pay 25 percent duty.", 99]}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        cited = answer_cite(text, passages)
        (mark,) = marks_found(cited.text, cited.sources)
        assert mark.text.strip('\\"') == MADE_UP.strip('"')
        assert cited.text[mark.start : mark.end] == mark.text

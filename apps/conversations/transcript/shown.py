"""Turns as one reader may see them now: what rests on documents that they may not read any more is withheld as rows are read.

Everything that shows a stored turn (pages, REST, exports, snapshots of shares, the model's history) reads it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from django.db import connection
from django.db.models import Prefetch, prefetch_related_objects
from django.db.models.constants import LOOKUP_SEP

from apps.conversations.citations.markers import answer_cite, passages_of
from apps.conversations.display.marks import Mark, marks_found, marks_of, question_of
from apps.conversations.models import Citation, Conversation, ConversationShare, Message, Turn
from apps.conversations.transcript.segments import response_id_read
from runs.models import Run
from runs.selectors import payload_list, quotes_named
from runs.stream import EventRow, rows_read
from runs.withheld import (
    HIDDEN,
    NOTHING,
    Withheld,
    events_withheld,
    lost_statement,
    runs_withheld,
    tainted,
    withheld_of,
)
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.inserting import related_known
from tenancy.scope import tenant_scope
from tenancy.shown_rows import ShownRows

_CHAIN_MOST = 200
# By hand: each stream of an answer begins with one of them, and goes on with the others.
_CONVERSATION = (
    "SELECT conversation_id FROM conversations_turn WHERE tenant_id = %s AND run_id = %s ORDER BY id LIMIT 1"
)
_RUNS_OF = "SELECT run_id FROM conversations_turn WHERE tenant_id = %s AND conversation_id = %s"
_RUNS = "SELECT unnest(%s::bigint[])"
T = TypeVar("T")


class ShownTurns(ShownRows[Turn]):
    """Turns of one conversation that are withheld from their reader as far as they rest on what they may not read."""

    conversation_pk: int = 0
    parts: Mapping[str, Prefetch[str, Any, Any]] = {}
    withheld: Withheld | None = None

    def with_parts(self, parts: Mapping[str, tuple[Any, Prefetch[str, Any, Any]]]) -> Self:
        """Return the turns with what hangs on them, each part read only where one of them has any: most have few.

        Args:
            parts: by name a condition that a turn has some, and how they are read; they stay as they are.
        """
        asked = {f"has_{name}": condition for name, (condition, _) in parts.items()}
        rows: Self = self.annotate(**asked)
        rows.parts = {f"has_{name}": part for name, (_, part) in parts.items()}
        return rows

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take it out of fetched turns."""
        for flag, part in self.parts.items():
            if any(getattr(turn, flag) for turn in rows):
                read = copy(part)  # reading changes it, and its query
                read.queryset = None if part.queryset is None else part.queryset.all()
                prefetch_related_objects(rows, read)
            else:
                _has_none(rows, part)
        found = self.withheld
        if found is None:
            is_tainted = any(getattr(turn, "is_tainted", True) for turn in rows)
            found = conversation_withheld(reader, self.conversation_pk) if is_tainted else NOTHING
        for turn in rows:
            turn_withhold(turn, found)

    def _clone(self) -> Self:
        made = super()._clone()
        made.conversation_pk, made.parts, made.withheld = self.conversation_pk, self.parts, self.withheld
        return made


def _has_none(rows: Iterable[Any], part: Prefetch[str, Any, Any]) -> None:
    """Leave rows as a prefetch that finds nothing does, which costs as much as one that finds something."""
    *way, name = part.prefetch_to.split(LOOKUP_SEP)
    for row in rows:
        for step in way:
            row = getattr(row, step)
        if part.to_attr is None:
            related_known(row, **{name: ()})
        else:
            setattr(row, name, [])


def turns_for(reader: Actor, conversation_pk: int, withheld: Withheld | None = None) -> ShownTurns:
    """Return the turns of a conversation that the reader may see, as they may see them.

    Args:
        withheld: what the reader may not see of it at this moment, for who knows that; None where it is to be asked.
    """
    rows = ShownTurns(Turn).visible_to(reader).filter(conversation_id=conversation_pk)
    rows.reader, rows.conversation_pk, rows.withheld = reader, conversation_pk, withheld
    if withheld is not None:
        return rows
    # Whether anything is withheld at all is asked along with the turns: it hardly ever is.
    return rows.annotate(is_tainted=conversation_tainted(reader, conversation_pk))


def conversation_tainted(reader: Actor, conversation_pk: int) -> Any:
    """Return the condition that ``conversation_withheld`` finds something."""
    turns = Turn.objects.filter(tenant_id=reader.tenant_id, conversation_id=conversation_pk)
    return tainted(reader, turns.values("run_id"))


def conversation_withheld(reader: Actor, conversation_pk: int) -> Withheld:
    """Return what a reader may not see of a conversation, with all its branches: what was read for one answer may be said
    again in the next.
    """
    turns = Turn.objects.filter(tenant_id=reader.tenant_id, conversation_id=conversation_pk)

    def told() -> Iterable[str]:
        said = Message.objects.filter(
            tenant_id=reader.tenant_id, turn__conversation_id=conversation_pk, author=Message.Author.USER
        )
        return said.values_list("text", flat=True)

    return withheld_of(actor=reader, runs=turns.values("run_id"), told=told)


def run_withheld(reader: Actor, run: Run) -> Withheld:
    """Return what a reader may not see of a run, with what it goes on from: its conversation, or earlier responses."""
    conversation_pk = _conversation_of(reader, run)
    if conversation_pk is not None:
        return conversation_withheld(reader, conversation_pk)
    return withheld_of(actor=reader, runs=_chain(run))


def _conversation_of(reader: Actor, run: Run) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(_CONVERSATION, [reader.tenant_id, run.pk])
        row = cursor.fetchone()
    return None if row is None else int(row[0])


@dataclass(slots=True)
class Watch:
    """Judges again and again, while an answer is written, what its reader may not see of it at that moment.

    The statement that finds nothing, as nearly always, is made once and waits in no thread.

    Attributes:
        runs: returns what is judged: a statement for ids of runs, and its values.
        read: returns what is withheld of them.
    """

    reader: Actor
    runs: Callable[[], tuple[str, tuple[Any, ...]]]
    read: Callable[[], Withheld]
    _statement: tuple[str, tuple[Any, ...]] | None = None
    _is_made: bool = False

    async def withheld(self) -> Withheld:
        """Return what is withheld now."""
        if not self._is_made:
            self._statement = await in_db(self._scoped, lambda: lost_statement(self.reader, *self.runs()))
            self._is_made = True
        if self._statement is None or not await rows_read(self.reader.tenant_id, *self._statement):
            return NOTHING
        return await in_db(self._scoped, self.read)

    def _scoped(self, work: Callable[[], T]) -> T:
        with tenant_scope(self.reader.tenant_id):  # the middleware's ended with the view
            return work()


def conversation_watch(reader: Actor, conversation_pk: int) -> Watch:
    """Watch a conversation with all its branches."""
    runs = (_RUNS_OF, (reader.tenant_id, conversation_pk))
    return Watch(reader, lambda: runs, lambda: conversation_withheld(reader, conversation_pk))


def run_watch(reader: Actor, run: Run) -> Watch:
    """Watch a run with what it goes on from."""

    def runs() -> tuple[str, tuple[Any, ...]]:
        conversation_pk = _conversation_of(reader, run)
        if conversation_pk is None:
            chain = ",".join(map(str, _chain(run)))
            return _RUNS, (f"{{{chain}}}",)  # as text: equal reads are shared by their values
        return _RUNS_OF, (reader.tenant_id, conversation_pk)

    return Watch(reader, runs, lambda: run_withheld(reader, run))


def conversations_unnamed(actor: Actor, pks: Collection[int]) -> set[int]:
    """Return those of some conversations whose titles the actor may not see: all but their own, and of these those that
    rest on what they may not read.
    """
    own = Conversation.objects.visible_to(actor).filter(pk__in=pks).values_list("pk", flat=True)
    turns = Turn.objects.filter(tenant_id=actor.tenant_id, conversation__in=own)
    runs = dict(turns.values_list("run_id", "conversation_id"))
    return {*pks} - {*own} | {runs[pk] for pk in runs_withheld(actor, runs)}


def runs_related(tenant_id: int, runs: Collection[int]) -> dict[int, set[int]]:
    """Return for each run of a conversation all runs of that conversation."""
    rows = Turn.objects.filter(tenant_id=tenant_id, conversation__turns__run_id__in=runs)
    found: dict[int, set[int]] = {}
    for pk, other in rows.values_list("conversation__turns__run_id", "run_id"):
        found.setdefault(pk, set()).add(other)
    return {pk: others for pk, others in found.items() if pk in runs}


def _chain(run: Run) -> list[int]:
    """Return the ids of a run and of those whose responses it went on from."""
    found, at = [run.pk], run.request
    while len(found) < _CHAIN_MOST:
        asked = (at.get("response") or {}).get("asked") or {}
        named = response_id_read(str(asked.get("previous_response_id") or ""))
        if named is None or named[0] in found:
            break
        before = Run.objects.filter(tenant_id=run.tenant_id, pk=named[0]).first()
        if before is None:
            break
        found.append(before.pk)
        at = before.request
    return found


def run_answer(run: Run, found: Withheld) -> tuple[str, list[Mark]]:
    """Return the finished answer of a run as people read it, and its marks; ("", []) while there is none.

    Args:
        found: what its reader may not see. An answer with something withheld has no marks.
    """
    if run.finished_at is None:
        return "", []
    answer = Message.objects.filter(
        tenant_id=run.tenant_id, turn__run_id=run.pk, author=Message.Author.ASSISTANT
    ).first()
    if answer is not None:
        text, marks = answer.text, marks_of(answer)
    else:
        cited = answer_cite(run.answer, passages_of(payload_list(run), quotes_named(run)))
        text, marks = cited.text, marks_found(cited.text, cited.sources, question_of(run.request))
    shown = found.text(text)
    return shown, marks if shown == text else []


async def events_shown(watch: Watch, events: list[EventRow]) -> list[EventRow]:
    """Return events of a run as its reader may see them at this moment."""
    return events_withheld(events, await watch.withheld())


async def is_readable(watch: Watch) -> bool:
    """Tell whether a reader may still read all that a run has read."""
    return not await watch.withheld()


def turn_withhold(turn: Turn, found: Withheld) -> None:
    """Take out of a turn, with all that was read with it, what is withheld. The object is for reading then."""
    shown: Any = turn
    shown.withheld = found
    if not found:
        return
    citations = list(turn.citations.all())
    hidden = {row.number for row in citations if is_hidden(row, found)}
    for row in citations:
        if row.number in hidden:
            row.quote, row.header, row.char_start, row.char_end = "", "", 0, 0
            if row.document_id is not None:  # what is gone may be named, what is kept from somebody may not
                row.document_name, row.collection_name, row.page = HIDDEN, "", None
    for message in turn.messages.all():
        if message.author == Message.Author.ASSISTANT:
            text = found.text(message.text, hidden)
            if text != message.text:
                message.text, message.unsupported = text, []
            message.data, message.problem = found.value(message.data), found.text(message.problem)
    run: Any = turn.run
    run.answer = found.text(run.answer)
    run.error_message = found.text(run.error_message)
    for call in getattr(run, "calls_shown", ()):
        call_withhold(call, found)
    for decided in getattr(run, "decisions_shown", ()):
        for name in ("arguments", "edited_arguments", "reason", "decision_reason", "answer"):
            setattr(decided, name, found.value(getattr(decided, name)))


def is_hidden(row: Citation, found: Withheld) -> bool:
    """Tell whether a stored source is of a document that is withheld."""
    return row.document_id in found.documents or row.chunk_ref in found.chunks


def call_withhold(call: Any, found: Withheld) -> None:
    """Take what is withheld out of a call's row, an object or a mapping of its columns."""
    if found:  # numbers and pixels can't be taken apart as text can
        hidden = {"chart": None, "pictures": None}
        call.update(hidden) if isinstance(call, dict) else vars(call).update(hidden)
    if isinstance(call, dict):
        call |= {key: _shown(key, item, found) for key, item in call.items() if key in _TEXTS}
        return
    for name in _TEXTS & set(vars(call)):
        setattr(call, name, _shown(name, getattr(call, name), found))


_TEXTS = {
    "content_shown",
    "content",
    "own_summary",
    "summary",
    "arguments",
    "arguments_masked",
    "payload",
    "results",
    "decision_why",
}


def _shown(name: str, item: Any, found: Withheld) -> Any:
    if name in ("content", "content_shown") and isinstance(item, str):
        return found.content(item)
    return found.value(item)


class ShownShares(ShownRows[ConversationShare]):
    """Links to conversations; of their titles what their reader may not see is withheld."""

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take it out of fetched links."""
        for pk in {row.conversation_id for row in rows}:
            found = conversation_withheld(reader, pk)
            for row in rows:
                if row.conversation_id == pk:
                    row.title = found.text(row.title)

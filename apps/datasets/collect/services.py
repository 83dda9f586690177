"""Rows from conversations and feedback: an answered question with its sources, redacted, to be reviewed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.models import Document
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.models import Conversation, Feedback, Message, Turn
from apps.conversations.transcript.selectors import conversation_get, turn_list
from apps.datasets.checks.scan import SecretFinding, redact
from apps.datasets.models import Dataset, RowStatus
from apps.datasets.records.parts import RecordSource, Step
from apps.datasets.records.record import Record, check
from apps.datasets.rows.services import NewRow, RowsAdded, rows_add
from basics.errors import Invalid
from basics.texts import gettext as _
from runs.models import ACTIVE
from tenancy.actors import Actor
from tenancy.models import Tenant

MAX_TURNS = 200


@dataclass(frozen=True, slots=True)
class Collected:
    """A turn as a row: as it was said, and as it would be kept.

    Attributes:
        hidden: what was replaced, masked.
        verdict: what the person who asked thinks of the answer: ``good``, ``bad`` or "".
        feedback: what they said, where it was collected by that.
    """

    turn_id: int
    conversation_id: int
    before: Record
    after: Record
    hidden: tuple[SecretFinding, ...]
    verdict: str
    feedback: Feedback | None = None

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """Return (field, before, after) of the texts that redaction changed."""
        names = ("question", "answer", "rationale")
        pairs = [(name, getattr(self.before, name), getattr(self.after, name)) for name in names]
        return [(name, old, new) for name, old, new in pairs if old != new]


def turns_collect(*, actor: Actor, conversation_pk: int, turn_pks: Sequence[int] = ()) -> list[Collected]:
    """Return ended, answered turns of one of the actor's conversations as rows, before and after redaction.

    Args:
        turn_pks: only these; all of the shown branch without them.

    Raises:
        Missing: it is no conversation of the actor's.
        Invalid: more than ``MAX_TURNS`` are named.
    """
    actor.require("dataset.read")
    if len(turn_pks) > MAX_TURNS:
        raise Invalid(
            "turns_many", _("Choose at most %(max_turns)s answers at once.") % {"max_turns": MAX_TURNS}
        )
    conversation = conversation_get(actor=actor, pk=conversation_pk)
    turns = turn_list(actor=actor, conversation=conversation)
    if turn_pks:
        turns = turns.filter(pk__in=turn_pks)
    shown = list(turns[:MAX_TURNS])
    mine = Feedback.objects.filter(turn__in=shown, user_id=conversation.user_id)
    judged = dict(mine.values_list("turn_id", "verdict"))
    documents = _documents(actor, shown)
    found = []
    for turn in shown:
        record = _record(turn, documents)
        if record is None:
            continue
        after, hidden = redact(record)
        verdict = judged.get(turn.pk, "")
        found.append(Collected(turn.pk, conversation.pk, record, after, tuple(hidden), verdict))
    return found


def rows_collect(
    *, tenant: Tenant, actor: Actor, dataset: Dataset, conversation: Conversation, turn_pks: Sequence[int]
) -> RowsAdded:
    """Add turns of one of the actor's conversations as rows to review; they are always redacted.

    Raises:
        Missing: it is no conversation of the actor's.
        Invalid: no turn of it is chosen that has an answer.
    """
    actor.require("dataset.write")
    found = turns_collect(actor=actor, conversation_pk=conversation.pk, turn_pks=turn_pks)
    if not turn_pks or not found:
        raise Invalid("turns_none", _("Choose at least one answered question."))
    return _added(tenant, actor, dataset, found, "conversation")


def feedback_collect(*, actor: Actor, feedback_pks: Sequence[int]) -> list[Collected]:
    """Return answers that people have judged as rows, before and after redaction, the newest judgement first.

    One sees one's own feedback; who may read the audit log sees everybody's with its question and answer, as its form
    says. The steps stay the asker's: these rows have none.

    Raises:
        Invalid: more than ``MAX_TURNS`` are named.
    """
    actor.require("dataset.read")
    if len(feedback_pks) > MAX_TURNS:
        raise Invalid(
            "turns_many", _("Choose at most %(max_turns)s answers at once.") % {"max_turns": MAX_TURNS}
        )
    rows = list(feedback_list(actor=actor).filter(pk__in=list(feedback_pks)))
    documents = _documents(actor, [said.turn for said in rows])
    found = []
    for said in rows:
        record = _record(said.turn, documents, tags=("feedback", said.verdict), with_steps=False)
        if record is None:
            continue
        after, hidden = redact(record)
        found.append(
            Collected(
                said.turn_id, said.turn.conversation_id, record, after, tuple(hidden), said.verdict, said
            )
        )
    return found


def feedback_rows_collect(
    *, tenant: Tenant, actor: Actor, dataset: Dataset, feedback_pks: Sequence[int]
) -> RowsAdded:
    """Add answers that people have judged as rows to review; they are always redacted.

    Raises:
        Invalid: no feedback that the actor may read is chosen.
    """
    actor.require("dataset.write")
    found = feedback_collect(actor=actor, feedback_pks=feedback_pks)
    if not found:
        raise Invalid("turns_none", _("Choose at least one judged answer."))
    return _added(tenant, actor, dataset, found, "feedback")


def _added(
    tenant: Tenant, actor: Actor, dataset: Dataset, found: Sequence[Collected], source: str
) -> RowsAdded:
    rows = [NewRow(one.after, RowStatus.REVIEW, _lineage(one)) for one in found]
    return rows_add(tenant=tenant, actor=actor, dataset=dataset, rows=rows, source=source)


def _lineage(one: Collected) -> dict[str, Any]:
    known = {"turn": one.turn_id, "feedback": one.verdict}
    if one.feedback is not None:
        known |= {"feedback_id": one.feedback.pk, "reason": one.feedback.reason}
    hidden = [{"kind": hit.kind, "field": hit.field} for hit in one.hidden]
    return {**known, "conversation": one.conversation_id, "redacted": hidden}


def _documents(actor: Actor, turns: Sequence[Turn]) -> dict[int | None, Document]:
    """Return the cited documents that the actor may see now: a dataset is read by the whole workspace."""
    ids = {c.document_id for turn in turns for c in turn.citations.all() if c.document_id}
    found: dict[int | None, Document] = (
        Document.objects.visible_to(actor).filter(collection__owner=None).in_bulk(ids)
    )
    return found


def _record(
    turn: Turn,
    documents: Mapping[int | None, Document],
    *,
    tags: tuple[str, ...] = ("conversation",),
    with_steps: bool = True,
) -> Record | None:
    said = {message.author: message.text for message in turn.messages.all()}
    question, answer = said.get(Message.Author.USER, ""), said.get(Message.Author.ASSISTANT, "")
    if turn.run.status in ACTIVE or not question.strip() or not answer.strip():
        return None
    sources = tuple(
        RecordSource(
            document=citation.document_name,
            quote=citation.quote or citation.document_name,
            collection=citation.collection_name,
            document_id=citation.document_id,
            chunk_id=citation.chunk_id,
            start=citation.char_start,
            end=citation.char_end,
            page=citation.page,
            url=documents[citation.document_id].source_url or "",
        )
        for citation in turn.citations.all()
        if citation.document_id in documents
    )
    calls = turn.run.calls_shown if with_steps else ()
    steps = tuple(
        Step(at, "", call.name, _arguments(call.arguments_masked or call.arguments))
        for at, call in enumerate(calls, start=1)
    )
    return check(Record(question, answer, steps=steps, sources=sources, tags=tags))


def _arguments(values: object) -> dict[str, Any]:
    return values if isinstance(values, dict) else {}

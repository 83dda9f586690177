"""Rows from conversations: an answered question with its sources and trace, redacted, to be reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.models import Document
from apps.conversations.models import Conversation, Feedback, Message, Turn
from apps.conversations.selectors import conversation_get, turn_list
from apps.datasets.curation.scan import Finding, redact
from apps.datasets.models import Dataset, RowStatus
from apps.datasets.record import Record, Source, Step, check
from apps.datasets.services.rows import NewRow, RowsAdded, rows_add
from basics.errors import Invalid
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
    """

    turn_id: int
    before: Record
    after: Record
    hidden: tuple[Finding, ...]
    verdict: str

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """Return (field, before, after) of the texts that redaction changed."""
        names = ("question", "answer", "rationale")
        pairs = [(name, getattr(self.before, name), getattr(self.after, name)) for name in names]
        return [(name, old, new) for name, old, new in pairs if old != new]


def turns_collect(
    *, actor: Actor, conversation_pk: int, turn_pks: Sequence[int] = ()
) -> list[Collected]:
    """Return ended, answered turns of one of the actor's conversations as rows, before and after redaction.

    Args:
        turn_pks: only these; all of the shown branch without them.

    Raises:
        Missing: it is no conversation of the actor's.
        Invalid: more than ``MAX_TURNS`` are named.
    """
    actor.require("dataset.read")
    if len(turn_pks) > MAX_TURNS:
        raise Invalid("turns_many", f"Choose at most {MAX_TURNS} answers at once.")
    conversation = conversation_get(actor=actor, pk=conversation_pk)
    turns = turn_list(actor=actor, conversation=conversation)
    if turn_pks:
        turns = turns.filter(pk__in=turn_pks)
    found = []
    for turn in turns[:MAX_TURNS]:
        record = _record(turn, actor)
        if record is None:
            continue
        after, hidden = redact(record)
        said = Feedback.objects.filter(turn=turn, user_id=conversation.user_id).first()
        found.append(Collected(turn.pk, record, after, tuple(hidden), said.verdict if said else ""))
    return found


def rows_collect(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    conversation: Conversation,
    turn_pks: Sequence[int],
) -> RowsAdded:
    """Add turns of one of the actor's conversations as rows to review; they are always redacted.

    Raises:
        Missing: it is no conversation of the actor's.
        Invalid: no turn of it is chosen that has an answer.
    """
    actor.require("dataset.write")
    found = turns_collect(actor=actor, conversation_pk=conversation.pk, turn_pks=turn_pks)
    if not turn_pks or not found:
        raise Invalid("turns_none", "Choose at least one answered question.")
    rows = [
        NewRow(
            one.after,
            RowStatus.REVIEW,
            {
                "conversation": conversation.pk,
                "turn": one.turn_id,
                "feedback": one.verdict,
                "redacted": [{"kind": hit.kind, "field": hit.field} for hit in one.hidden],
            },
        )
        for one in found
    ]
    return rows_add(tenant=tenant, actor=actor, dataset=dataset, rows=rows, source="conversation")


def _record(turn: Turn, actor: Actor) -> Record | None:
    said = {message.author: message.text for message in turn.messages.all()}
    question, answer = said.get(Message.Author.USER, ""), said.get(Message.Author.ASSISTANT, "")
    if turn.run.status in ACTIVE or not question.strip() or not answer.strip():
        return None
    citations = list(turn.citations.all())
    # A dataset is read by the whole workspace: only what the person may still see goes into it.
    ids = [citation.document_id for citation in citations if citation.document_id]
    documents = Document.objects.visible_to(actor).in_bulk(ids)
    sources = tuple(
        Source(
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
        for citation in citations
        if citation.document_id in documents
    )
    steps = tuple(
        Step(at, "", call.name, _arguments(call.arguments_masked or call.arguments))
        for at, call in enumerate(turn.run.calls_shown, start=1)
    )
    tags = ("conversation",)
    return check(Record(question, answer, steps=steps, sources=sources, tags=tags))


def _arguments(values: object) -> dict[str, Any]:
    return values if isinstance(values, dict) else {}

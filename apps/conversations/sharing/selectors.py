"""Shared conversations: what a snapshot holds, and what of it a reader may see now."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _

from apps.collections.models import Document, DocumentStatus
from apps.conversations.citations.markers import answer_number, flagged, numbers_of
from apps.conversations.display.cards import CitationCard
from apps.conversations.display.figures import Figure, Placing, figures_read
from apps.conversations.display.marks import Mark, marks_read, statements_count
from apps.conversations.display.rendering import Block, blocks_render
from apps.conversations.models import Conversation, ConversationShare, Picture, ShareReader, Turn
from apps.conversations.pictures.selectors import picture_get
from apps.conversations.transcript.branch_tree import tree_read
from apps.conversations.transcript.shown import ShownShares, conversation_withheld
from basics.errors import Missing
from runs.models import ChunkRead
from runs.providers import model_label
from runs.withheld import HIDDEN, Withheld
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """A question with its answer as one reader may see it.

    ``comparison`` says of one of two answers whether it was kept, and what wrote the other.
    """

    number: int
    question: str
    answer: str
    model_label: str
    asked_at: str
    blocks: list[Block]
    citations: list[CitationCard]
    hidden: int
    marks: list[Mark]
    compared: str
    comparison: str = ""
    statements: int = 0
    figures: Sequence[Figure] = ()
    placed: Collection[str] = ()

    @property
    def left(self) -> list[Figure]:
        """Its charts and pictures that the answer has at no place of its own."""
        return [figure for figure in self.figures if figure.key not in self.placed]

    @property
    def unsupported(self) -> int:
        """How many sentences did not pass when they were compared with their sources."""
        return sum(mark.is_doubt for mark in self.marks)

    @property
    def unchecked(self) -> int:
        """How many sentences were not compared, as their source is in another language."""
        return len(self.marks) - self.unsupported


@dataclass(frozen=True, slots=True)
class Shared:
    """A snapshot as one reader may see it."""

    title: str
    by: str
    created_at: datetime
    is_own: bool
    conversation_pk: int
    turns: list[SharedTurn] = field(default_factory=list)


def models_compared(turns: Iterable[Turn]) -> dict[int, str]:
    """Return for those of some turns that are one of two answers the model of the other, by the turn's id."""
    others = {turn.alongside_id: turn.pk for turn in turns if turn.alongside_id is not None}
    if not others:
        return {}
    rows = Turn.objects.filter(pk__in=others).values_list("pk", "run__model")
    return {others[pk]: model for pk, model in rows}


def comparison_told(is_kept: bool | None, other_model: str) -> str:
    """Return in a sentence what became of one of two answers to a question.

    Args:
        is_kept: as ``Turn`` has it.
        other_model: what wrote the other answer.
    """
    if is_kept is None:
        said = _("One of two answers, the other by %(model)s; neither has been kept yet.")
    elif is_kept:
        said = _("Kept instead of the answer by %(model)s.")
    else:
        said = _("Not kept: the conversation continued with the answer by %(model)s.")
    return said % {"model": model_label(other_model)}


def documents_readable(actor: Actor, pks: Iterable[int | None]) -> dict[int, Document]:
    """Return those of the documents that the actor may read at this moment, by id."""
    wanted = {pk for pk in pks if pk}
    if not wanted or not actor.can("collection.read"):
        return {}
    rows = Document.objects.visible_to(actor).filter(pk__in=wanted, status=DocumentStatus.READY)
    return {row.pk: row for row in rows.only("pk", "name", "collection_id", "tenant_id")}


def share_list(*, actor: Actor, conversation: Conversation) -> QuerySet[ConversationShare]:
    """Return the links to a conversation of the actor's that work, newest first, with who has opened them."""
    actor.require("conversation.read")
    readers = ShareReader.objects.select_related("user").order_by("first_at")
    rows: QuerySet[ConversationShare] = (
        ShownShares.of(ConversationShare, actor)
        .filter(
            conversation=conversation,
            conversation__in=Conversation.objects.visible_to(actor),
            revoked_at=None,
        )
        .defer("snapshot")
        .prefetch_related(Prefetch("readers", queryset=readers))
        .order_by("-pk")
    )
    return rows


def limited_sources(*, actor: Actor, conversation: Conversation, turn: Turn | None = None) -> list[str]:
    """Return the names of documents that a conversation of the actor's rests on, and that not everybody here may read.

    Of what rests on these, a reader of a link who may not read them sees that there is something, and no more.

    Args:
        turn: whose answer alone is asked about; what was read for earlier ones of its branch may be said again in it.
    """
    turns = conversation.turns.all()
    if turn is not None:
        turns = turns.filter(pk__in=tree_read(conversation).path(turn.pk))
    read = ChunkRead.objects.visible_to(actor).filter(run_id__in=turns.values("run_id")).values("document_id")
    rows = Document.objects.visible_to(actor).filter(pk__in=read, is_restricted=True)
    return list(rows.order_by("name").values_list("name", flat=True).distinct())


def share_get(*, actor: Actor, key: uuid.UUID) -> ConversationShare:
    """Return the share of a link. Raises Missing: there is none in this workspace, or it was revoked."""
    actor.require("conversation.read")
    row: ConversationShare | None = (
        ConversationShare.objects.visible_to(actor)
        .select_related("created_by", "conversation")
        .filter(key=key, revoked_at=None, conversation__removed_at=None)
        .first()
    )
    if row is None:
        raise Missing("share")
    return row


def shared_view(*, actor: Actor, share: ConversationShare) -> Shared:
    """Return what the actor may see of a snapshot now: of sources they may not read, neither name nor words."""
    turns: list[Mapping[str, Any]] = share.snapshot["turns"]
    readable = documents_readable(actor, (c["document_id"] for turn in turns for c in turn["citations"]))
    found = conversation_withheld(actor, share.conversation_id)
    return Shared(
        title=found.text(share.title),
        by=str(share.created_by),
        created_at=share.created_at,
        is_own=share.created_by_id == actor.user_id,
        conversation_pk=share.conversation_id,
        turns=[_turn(number, turn, readable, found) for number, turn in enumerate(turns, 1)],
    )


def shared_picture(*, actor: Actor, share: ConversationShare, pk: int) -> Picture:
    """Return a picture of a snapshot, as ``picture_get``. Raises Missing."""
    figures = (figure for turn in share.snapshot["turns"] for figure in turn.get("figures", ()))
    if not any(figure.get("picture_id") == pk for figure in figures):
        raise Missing("picture")
    return picture_get(actor=actor, conversation=share.conversation, pk=pk)


def _turn(
    number: int, turn: Mapping[str, Any], readable: Mapping[int, Document], found: Withheld
) -> SharedTurn:
    rows = turn["citations"]
    cards = [_card(number, row, readable.get(row["document_id"] or 0)) for row in rows]
    text = found.text(turn["answer"])
    cited = answer_number(
        text, numbers_of((row["chunk_ref"], row["number"], row.get("markers", ())) for row in rows)
    )
    # Their places are of the whole answer. Links that were made before there were marks have none.
    marks = marks_read(turn.get("marks", ()), cited.text) if text == turn["answer"] else []
    labels = {card.number: card.document_name for card in cards}
    # What of a withheld document a chart or a picture shows, nobody can tell.
    placing = Placing(number, () if found else figures_read(turn.get("figures", ())))
    return SharedTurn(
        number=number,
        question=turn["question"],
        answer=cited.text,
        model_label=model_label(turn["model"]),
        asked_at=turn["asked_at"],
        blocks=blocks_render(
            flagged(cited.pieces, ((m.start, m.end, m.reason) for m in marks)),
            run_id=number,
            labels=labels,
            figure=placing.take,
        ),
        citations=cards,
        hidden=sum(1 for row in rows if (row["document_id"] or 0) not in readable),
        marks=marks,
        compared=turn.get("compared", ""),
        comparison=comparison_told(turn.get("is_kept"), other) if (other := turn.get("other_model")) else "",
        statements=statements_count(cited.text) if marks else 0,
        figures=placing.figures,
        placed=placing.placed,
    )


def _card(number: int, row: Mapping[str, Any], document: Document | None) -> CitationCard:
    if document is None:
        return CitationCard(f"{number}-{row['number']}", row["number"], HIDDEN, "", None, "")
    return CitationCard(
        f"{number}-{row['number']}",
        row["number"],
        document.name,
        row["collection_name"],
        row["page"],
        row["quote"],
        row.get("header", ""),
    )

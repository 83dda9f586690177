"""A source of an answer as its reader may see it now: what it says, and where in its document."""

from __future__ import annotations

from dataclasses import dataclass

from apps.collections.documents.page_images import has_images
from apps.collections.models import Chunk, Document, DocumentStatus
from apps.conversations.citations.markers import NumberedQuote, answer_cite, passages_of
from apps.conversations.citations.source_place import source_around
from apps.conversations.display.answer_forms import is_formed, shown_text
from apps.conversations.models import (
    Conversation,
    Turn,
)
from apps.conversations.transcript.selectors import turn_get
from basics.errors import Missing
from runs.models import ACTIVE
from runs.selectors import (
    payload_list,
    transcript_read,
)
from runs.withheld import NOTHING, Withheld
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class SourceShown:
    """An opened source: the quote in its surroundings; ``mark`` is its place in the document's text, "" where it has gone."""

    number: int
    document: Document
    chunk: Chunk
    page: int | None
    before: str
    quote: str
    after: str
    chunk_count: int
    has_image: bool
    mark: str = ""


def source_get(*, actor: Actor, conversation: Conversation, run_id: int, number: int) -> SourceShown:
    """Return a source of an answer, finished or under way.

    Raises:
        Missing: the answer has no such source, or its document is gone or not the actor's to read.
    """
    turn = turn_get(actor=actor, conversation=conversation, run_id=run_id)
    row = next((c for c in turn.citations.all() if c.number == number), None)
    if row is not None:
        chunk_id, place = row.chunk_id, (row.char_start, row.char_end, row.quote)
    else:
        live = _live_source(turn, number)
        chunk_id, place = live.passage.chunk_id, (live.char_start, live.char_end, live.quote)
    actor.require("collection.read")
    chunk: Chunk | None = (
        Chunk.objects.visible_to(actor)
        .select_related("document")
        .filter(pk=chunk_id or 0, document__status=DocumentStatus.READY)
        .first()
    )
    if chunk is None:
        raise Missing("source")
    around = source_around(chunk, *place)
    return SourceShown(
        number=number,
        document=chunk.document,
        chunk=chunk,
        page=around.page,
        before=around.before,
        quote=around.quote,
        after=around.after,
        chunk_count=chunk.document.chunk_count,
        has_image=around.page is not None and has_images(chunk.document),
        mark=around.mark,
    )


def _live_source(turn: Turn, number: int) -> NumberedQuote:
    if turn.run.status in ACTIVE:
        found: Withheld = getattr(turn, "withheld", NOTHING)
        passages = passages_of(found.value(payload_list(turn.run)))
        version = turn.assistant_version
        formed = version is not None and is_formed(version.output)
        text = shown_text(transcript_read(turn.run).text, formed)
        for source in answer_cite(text, passages).sources:
            if source.number == number:
                return source
    raise Missing("source")

"""End the turn of a run that has ended: its answer and citations become rows."""

from __future__ import annotations

from apps.collections.models import Chunk
from apps.conversations.citations import answer_cite, passages_of
from apps.conversations.models import Citation, Message, Turn
from runs.models import Run
from runs.selectors import payload_list


def turn_close(run: Run) -> None:
    """End the turn of a run that has ended: answer and citations as rows, in the current transaction."""
    turn = Turn.objects.filter(tenant_id=run.tenant_id, run=run).first()
    if turn is None:
        return
    cited = answer_cite(run.answer, passages_of(payload_list(run)))
    if cited.text.strip():
        Message.objects.create(
            tenant_id=run.tenant_id, turn=turn, author=Message.Author.ASSISTANT, text=cited.text
        )
    if cited.sources:
        alive = _alive([s.passage.chunk_id for s in cited.sources])
        Citation.objects.bulk_create(
            Citation(
                tenant_id=run.tenant_id,
                turn=turn,
                number=s.number,
                chunk_ref=s.passage.chunk_id,
                chunk_id=s.passage.chunk_id if s.passage.chunk_id in alive else None,
                document_id=alive.get(s.passage.chunk_id),
                document_name=s.passage.document_name[:255],
                collection_name=s.passage.collection_name[:120],
                page=s.passage.page,
                quote=s.quote,
                char_start=s.char_start,
                char_end=s.char_end,
            )
            for s in cited.sources
        )
    turn.is_active, turn.removed_markers = False, cited.removed
    turn.save(update_fields=["is_active", "removed_markers"])


def _alive(chunk_ids: list[int]) -> dict[int, int]:
    """Return chunk id to document id of the chunks that still exist, locked so that they stay until the commit."""
    rows = Chunk.objects.filter(pk__in=chunk_ids).select_for_update(no_key=True).order_by("pk")
    return dict(rows.values_list("pk", "document_id"))

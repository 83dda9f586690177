"""Questions to begin with that passages answer: no model is asked, so they are there at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.utils.translation import gettext as _

from apps.collections.models import Chunk, ChunkKind, Document, DocumentStatus
from tenancy.actors import Actor

_MOST = 3
_DOCUMENTS, _PASSAGES_OF_EACH = 8, 5
_LONGEST = 70

Ask = Callable[[str, tuple[str, ...], int], str]
_asks: list[Ask] = []


def questions_from(ask: Ask) -> None:
    """Register what makes a question of a passage: the higher room that generates datasets, which this one doesn't know.

    Args:
        ask: takes the passage's text, its headings and its offset in the document; returns a question that the passage
            answers, "" where it finds none.
    """
    _asks[:] = [ask]


def starters_made(*, actor: Actor) -> list[str] | None:
    """Return up to three questions that passages of the newest documents answer; None when no document is ready.

    Each document is asked about once before one is asked about again. Where too few sentences can be asked about (in
    another language, say), headings are. Files of conversations and code are not asked about, and no file is named.
    """
    rows = Document.objects.visible_to(actor).filter(
        status=DocumentStatus.READY, live_to__isnull=True, collection__owner=None
    )
    newest = rows.order_by("-updated_at", "-pk").values("pk", "name", "title")[:_DOCUMENTS]
    documents = {row["pk"]: row for row in newest}
    if not documents:
        return None
    chunks = Chunk.objects.visible_to(actor).filter(
        document__in=list(documents), kind=ChunkKind.DOC, is_disabled=False, index__lt=_PASSAGES_OF_EACH
    )
    passages: dict[int, list[dict[str, Any]]] = {pk: [] for pk in documents}
    for row in chunks.order_by("index").values("document_id", "text", "headings", "char_start"):
        passages[row["document_id"]].append(dict(row))
    made: dict[str, None] = {}
    turns = [passages[pk][n] for n in range(_PASSAGES_OF_EACH) for pk in documents if n < len(passages[pk])]
    for question in _questions(turns, documents):
        made[question] = None
        if len(made) == _MOST:
            break
    return list(made)


def _questions(passages: list[dict[str, Any]], documents: dict[int, Any]) -> Iterator[str]:
    for ask in _asks:
        for row in passages:
            question = ask(row["text"], tuple(map(str, row["headings"])), row["char_start"])
            if question:
                yield question
    for row in passages:
        heading = str(row["headings"][-1]).strip().rstrip(".:") if row["headings"] else ""
        document = documents[row["document_id"]]
        if heading and heading not in (document["name"], document["title"]):
            yield _("What do the documents say about “%(heading)s”?") % {"heading": _short(heading)}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"

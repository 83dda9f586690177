"""Questions to begin with, made of what the documents are about: no model is asked, so they are there at once."""

from __future__ import annotations

from apps.collections.models import Chunk, Document, DocumentStatus
from tenancy.actors import Actor

_MOST = 3
_HEADINGS = 60
_LONGEST = 70


def starters_made(*, actor: Actor) -> list[str] | None:
    """Return up to three questions about the newest documents and their headings; None when no document is ready."""
    rows = Document.objects.visible_to(actor).filter(status=DocumentStatus.READY)
    documents = list(rows.order_by("-updated_at", "-pk").values("pk", "name", "title")[:_MOST])
    if not documents:
        return None
    chunks = Chunk.objects.visible_to(actor).filter(document__in=[d["pk"] for d in documents])
    headed = chunks.exclude(headings=[]).order_by("index", "document_id")
    headings: dict[int, list[str]] = {}
    for pk, path in headed.values_list("document_id", "headings")[:_HEADINGS]:
        found, last = headings.setdefault(pk, []), str(path[-1]).strip().rstrip(".:")
        if last and last not in found:
            found.append(last)
    made = [
        _question(str(d["title"] or d["name"]), headings.get(d["pk"], [""])[place : place + 1])
        for place in range(_MOST)
        for d in documents
        if place < len(headings.get(d["pk"], [""]))
    ]
    return made[:_MOST]


def _question(document: str, heading: list[str]) -> str:
    name = _short(document)
    if not heading or not heading[0] or heading[0] == document:
        return f"What is “{name}” about?"
    return f"What does “{name}” say about “{_short(heading[0])}”?"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"

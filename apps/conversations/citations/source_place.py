"""Where a quote stands in its document now, with what is around it."""

from __future__ import annotations

from dataclasses import dataclass

from apps.collections.ingestion.readers.base import PART_CHARS
from apps.collections.models import Chunk, Page

_AROUND = 600
_MOST = 5_000  # characters of a quote's stretch


@dataclass(frozen=True, slots=True)
class Around:
    """A quote and its surroundings.

    Attributes:
        page: where it begins, None for a document without pages.
        mark: "START-END" in the document's text, "" where it stands there no more.
    """

    before: str
    quote: str
    after: str
    page: int | None
    mark: str = ""


def source_around(chunk: Chunk, start: int, end: int, quote: str) -> Around:
    """Find a quote where it stood.

    Args:
        chunk: of a document that its reader may read; the quote is of it, and may reach a little beyond.
        start: where the quote began in the document's text.
        end: just past its end.

    Returns:
        The whole chunk in place of a quote that stands there no more: the document was read anew, or the chunk edited.
    """
    high = min(end, start + _MOST) + _AROUND
    near = Page.objects.filter(tenant_id=chunk.tenant_id, document_id=chunk.document_id)
    near = near.filter(char_start__gt=start - _AROUND - 2 * PART_CHARS, char_start__lt=high)
    pages = list(near.order_by("number").values_list("number", "char_start", "text"))
    base = pages[0][1] if pages else 0
    text = "".join(page[2] for page in pages)
    if pages and base <= start and _says(text[start - base : end - base], quote):
        number = max(page[0] for page in pages if page[1] <= start)
        return Around(
            text[max(0, start - base - _AROUND) : start - base],
            quote,
            text[end - base : end - base + _AROUND],
            number if chunk.page_start is not None else None,
            f"{start}-{end}",
        )
    at, over = start - chunk.char_start, end - chunk.char_start
    if at >= 0 and _says(chunk.text[at:over], quote):
        before, after = chunk.text[max(0, at - _AROUND) : at], chunk.text[over : over + _AROUND]
        return Around(before, quote, after, chunk.page_start)
    return Around("", chunk.text, "", chunk.page_start)


def _says(stretch: str, quote: str) -> bool:
    """Tell whether a stretch of a document holds a quote's letters and digits in their order; marks and breaks may differ."""
    letters = iter([ch for ch in stretch if ch.isalnum()])
    wanted = [ch for ch in quote if ch.isalnum()]
    return bool(wanted) and all(ch in letters for ch in wanted)

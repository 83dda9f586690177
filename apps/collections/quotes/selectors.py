"""What may be quoted of chunks, from the pages that are stored around them: one statement for all passages of a search."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db import connection

from apps.collections.ingestion import media_types
from apps.collections.ingestion.frames import marks_from_json
from apps.collections.ingestion.readers.base import PART_CHARS
from apps.collections.quotes.parts import AROUND, Markup, PagePart, quotable_of

# Their text is what the file says, and not Markdown that a reader of ours has made of it.
_PLAIN = frozenset({media_types.PDF, media_types.TEXT, media_types.CSV, media_types.EML, *media_types.IMAGES})
# Headings and tables by ``TextBuilder`` around values of the file, in which nothing is a mark: ``__init__``, ``a_b_c``.
_BUILT = frozenset(
    {
        media_types.JSON,
        media_types.JSON_LINES,
        media_types.XLSX,
        media_types.PPTX,
        media_types.SRT,
        media_types.VTT,
    }
)
_MOST = 60_000_000  # more characters than a page can have
_LONGEST_PART = 2 * PART_CHARS
# Postgres counts the characters of a text to cut a piece out of it: 46 us for a page of 8,900, where all of it takes 12.
WHOLE_BYTES = 10_000
"""Pages up to so long come whole, and are cut here."""
PAGES = f"""
CASE WHEN NOT c.is_edited THEN (
    SELECT json_agg(json_build_array(p.number, p.char_start,
        p.char_start + CASE WHEN octet_length(p.text) <= {WHOLE_BYTES} THEN 0
            ELSE greatest(0, c.char_start - {AROUND} - p.char_start) END,
        CASE WHEN octet_length(p.text) <= {WHOLE_BYTES} THEN p.text
            ELSE substr(p.text, greatest(0, c.char_start - {AROUND} - p.char_start) + 1,
                least(c.char_end + {AROUND}, p.char_start + {_MOST})
                - greatest(p.char_start, c.char_start - {AROUND})) END,
        p.skip_reason <> '', p.layout -> 'headings', p.layout -> 'regions', p.layout ? 'code', p.layout -> 'marks')
        ORDER BY p.number)::text
    FROM collections_page p WHERE p.tenant_id = c.tenant_id AND p.document_id = c.document_id
        AND (p.number BETWEEN c.page_start - 1 AND c.page_end + 1 OR c.page_start IS NULL)
        AND p.char_start < c.char_end + {AROUND} AND p.char_start > c.char_start - {AROUND} - {_LONGEST_PART}
) END
"""  # noqa: S608 - constants
"""In SQL the pages, or parts of them, around a chunk ``c``, for ``quotable``; none of one that somebody has edited."""
_READ = f"""
SELECT c.id, c.char_start, c.char_end, c.text, d.media_type, c.page_start IS NOT NULL, {PAGES}
FROM collections_chunk c JOIN collections_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE c.tenant_id = %(tenant)s AND c.id = ANY (%(chunks)s)
"""  # noqa: S608 - constants
KEPT = 256
"""Passages of which a process keeps what may be quoted: 10 to 30 kB each."""


def quotables_read(tenant_id: int, chunk_ids: Iterable[int]) -> dict[int, str]:
    """Return what may be quoted of chunks, by id, as runs keep it; chunks that somebody has edited have no place on a page.

    Args:
        chunk_ids: of passages that their reader was found to be allowed to read.
    """
    wanted = list(chunk_ids)
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"tenant": tenant_id, "chunks": wanted})
        rows = cursor.fetchall()
    found = {row[0]: quotable(tenant_id, *row[1:]) for row in rows}
    return {pk: kept for pk, kept in found.items() if kept is not None}


def markup_of(media_type: str, *, is_code: bool = False) -> Markup:
    """Return which marks of Markdown the text has that our reader makes of a file, so that no quote shows them.

    Args:
        media_type: of the document.
        is_code: its text is a program.
    """
    if is_code or media_type in _PLAIN:
        return "none"
    return "layout" if media_type in _BUILT else "all"


# Passages are found again and again, in each step of an answer and by everybody who asks about the same, and to cut one
# into sentences takes ten times what its search does. Kept by all that it is made of, as it is stored at this moment.
@lru_cache(maxsize=KEPT)
def quotable(
    tenant_id: int, start: int, end: int, text: str, media_type: str, is_paged: bool, pages: str | None
) -> str | None:
    """Return what may be quoted of a chunk, as runs keep it; None where it has no place on a page.

    Args:
        tenant_id: whose it is.
        start, end, text: its own.
        media_type: of its document.
        is_paged: it has page numbers.
        pages: ``PAGES`` of it.
    """
    if pages is None:
        return None
    around = (start - AROUND, end + AROUND)
    parts = [part for page in json.loads(pages) if (part := _part(page, *around, is_paged=is_paged)).text]
    base = parts[0].char_start if parts else 0
    said = "".join(part.text for part in parts)
    if said[start - base : end - base] != text:
        return None  # pages of documents that came with their chunks are not their text
    made = quotable_of(
        parts,
        start,
        end,
        markup=markup_of(media_type, is_code=parts[0].is_code),
        is_cut=(base > 0 and base == around[0], base + len(said) == around[1]),
    )
    return made.to_text(start, text)


def _part(page: list[Any], begin: int, stop: int, *, is_paged: bool) -> PagePart:
    """Return what a row of ``PAGES`` says between two places of the document's text."""
    number, page_start, part_start, text, is_left_out, headings, regions, is_code, marks = page
    headings, regions = headings or [], regions or []
    text = text[: max(0, stop - part_start)][max(0, begin - part_start) :]
    part_start = max(part_start, begin)
    end = part_start + len(text)

    def inside(low: int, high: int) -> bool:
        return bool(low < end and part_start < high)

    return PagePart(
        number=number if is_paged else None,
        char_start=part_start,
        text=text,
        headings=tuple(
            (page_start + low, page_start + high)
            for _, _, low, high in headings
            if inside(page_start + low, page_start + high)
        ),
        regions=tuple(
            (
                str(kind),
                page_start + low,
                page_start + high,
                tuple(page_start + row_start for row_start in row_starts),
                page_start + body_start,
                str(header),
            )
            for kind, low, high, row_starts, body_start, header, *_ in regions
            if inside(page_start + low, page_start + high)
        ),
        is_code=bool(is_code),
        is_left_out=bool(is_left_out),
        marks=marks_from_json(marks).moved(page_start) if marks else None,
    )

"""What may be quoted of chunks, from the pages that are stored around them: one statement for all passages of a search."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db import connection

from apps.collections.ingestion import detect
from apps.collections.ingestion.frames import marks_from_json
from apps.collections.ingestion.readers.base import PART_CHARS
from apps.collections.quotes.parts import AROUND, Markup, PagePart, quotable_of

# Their text is what the file says, and not Markdown that a reader of ours has made of it.
_PLAIN = frozenset({detect.PDF, detect.TEXT, detect.CSV, detect.EML, *detect.IMAGES})
# Headings and tables by ``TextBuilder`` around values of the file, in which nothing is a mark: ``__init__``, ``a_b_c``.
_BUILT = frozenset({detect.JSON, detect.JSON_LINES, detect.XLSX, detect.PPTX, detect.SRT, detect.VTT})
_AROUND = """
SELECT c.id, c.char_start, c.char_end, c.text, c.is_edited, d.media_type, c.page_start IS NOT NULL, p.number, p.char_start,
    p.char_start + greatest(0, c.char_start - %(around)s - p.char_start),
    substr(p.text, greatest(0, c.char_start - %(around)s - p.char_start) + 1,
        least(c.char_end + %(around)s, p.char_start + %(most)s) - greatest(p.char_start, c.char_start - %(around)s)),
    p.skip_reason <> '', (p.layout -> 'headings')::text, (p.layout -> 'regions')::text, p.layout ? 'code',
    (p.layout -> 'marks')::text
FROM collections_chunk c
JOIN collections_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
JOIN collections_page p ON p.tenant_id = c.tenant_id AND p.document_id = c.document_id
    AND (p.number BETWEEN c.page_start - 1 AND c.page_end + 1 OR c.page_start IS NULL)
    AND p.char_start < c.char_end + %(around)s AND p.char_start > c.char_start - %(around)s - %(part)s
WHERE c.tenant_id = %(tenant)s AND c.id = ANY (%(chunks)s)
ORDER BY c.id, p.number
"""
KEPT = 256
"""Passages of which a process keeps what may be quoted: some 10 kB each."""
_MOST = 60_000_000  # more characters than a page can have
_LONGEST_PART = 2 * PART_CHARS


def quotables_read(tenant_id: int, chunk_ids: Iterable[int]) -> dict[int, str]:
    """Return what may be quoted of chunks, by id, as runs keep it; chunks that somebody has edited have no place on a page.

    Args:
        chunk_ids: of passages that their reader was found to be allowed to read.
    """
    wanted = list(chunk_ids)
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            _AROUND,
            {"tenant": tenant_id, "chunks": wanted, "around": AROUND, "part": _LONGEST_PART, "most": _MOST},
        )
        rows = cursor.fetchall()
    found: dict[int, str] = {}
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end][0] == rows[at][0]:
            end += 1
        pk, is_edited = rows[at][0], rows[at][4]
        kept = None if is_edited else _quotable(tenant_id, tuple(row[1:] for row in rows[at:end]))
        if kept is not None:
            found[pk] = kept
        at = end
    return found


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
def _quotable(tenant_id: int, rows: tuple[tuple[Any, ...], ...]) -> str | None:
    start, end, text, _, media_type, is_paged = rows[0][:6]
    parts = [part for row in rows if (part := _part(row, is_paged=is_paged)).text]
    base = parts[0].char_start if parts else 0
    around = "".join(part.text for part in parts)
    if around[start - base : end - base] != text:
        return None  # pages of documents that came with their chunks are not their text
    made = quotable_of(
        parts,
        start,
        end,
        markup=markup_of(media_type, is_code=parts[0].is_code),
        is_cut=(base > 0 and base == start - AROUND, base + len(around) == end + AROUND),
    )
    return made.to_text(start, text)


def _part(row: tuple[Any, ...], *, is_paged: bool) -> PagePart:
    number, page_start, part_start, text, is_left_out, headings, regions, is_code, marks = row[6:]
    headings, regions = (json.loads(v or "[]") or [] for v in (headings, regions))
    marks = json.loads(marks) if marks else None
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

"""Every unit of a document that may be quoted, checked without questions: no sample, no search, no database.

A sample of a hundred citations misses what one unit in fifty has wrong; the units of a document are checked in a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from _citation_truth import Truth, letters

_LEAST = 3  # letters; of a shorter one nothing can be told


def wrong_units(path: Path, truth: Truth) -> tuple[int, list[str]]:
    """Read a document and check all of its units except headings.

    Args:
        truth: what is known of it.

    Returns:
        How many units there are, and each one that is not whole on its page, with the page and what is wrong.
    """
    checked = 0
    wrong = []
    for page, said in _units(path):
        if len(letters(said)) < _LEAST:
            continue
        checked += 1
        stands, whole = truth.holds(said, page)
        if not (stands and whole):
            wrong.append(f"page {page}, {'not whole' if stands else 'not on its page'}: {said[:200]}")
    return checked, wrong


def _units(path: Path) -> Iterator[tuple[int | None, str]]:
    from apps.collections.ingestion.extraction import document_extract
    from apps.collections.quotes.parts import PagePart, quotable_of
    from apps.collections.quotes.selectors import markup_of

    document = document_extract(path, name=path.name)
    parts = [
        PagePart(
            number=page.number if document.is_paged else None,
            char_start=start,
            text=page.text,
            headings=tuple((start + h.char_start, start + h.char_end) for h in page.headings),
            regions=tuple(
                (
                    r.kind,
                    start + r.char_start,
                    start + r.char_end,
                    tuple(start + row for row in r.row_starts),
                    start + r.body_start,
                    r.header,
                )
                for r in page.regions
            ),
            is_code=page.code is not None,
            is_left_out=page.junk is not None,
            marks=page.marks.moved(start) if page.marks else None,
        )
        for page, start in zip(document.pages, document.page_starts, strict=True)
    ]
    if not parts:
        return
    markup = markup_of(document.media_type, is_code=parts[0].is_code)
    made = quotable_of(parts, 0, len(document.text), markup=markup)
    for unit in made.units:
        if unit.kind != "heading":
            yield unit.page, made.said(unit.start, unit.end, unit.kind)

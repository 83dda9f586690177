"""Where the lines of a PDF's page stand, and which numbers in them are raised: asked of PDFium for a few letters a line."""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from statistics import median_high

import pypdfium2
import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.pdf_breaks import Box
from apps.collections.ingestion.readers.pdf_headings import Probe, SizedLine, wide_letters
from apps.collections.ingestion.readers.pdf_paragraphs import (
    DrawnLine,
    is_rtl,
    is_south_east,
    paragraph_marks,
)
from apps.collections.ingestion.readers.pdf_text import CleanPage
from apps.collections.ingestion.types import PageMarks, Region

_WORD = re.compile(r"\S+")
_MOST = 3_000  # lines of one page
# A note's number stands behind a letter, a mark or a bracket, or before the note's own words.
_NUMBER = re.compile(r"(?<![\d/$€£¥%+=<>#-])\d{1,3}(?:,\d{1,3})*(?![\d%]|\.\d)")
_ONE_SIZE = 0.06
_SMALLER = 0.85
_LESS_HIGH = 0.95
_RAISED = 0.15  # of the size of the letter beside it, that its foot stands higher
_MOST_NUMBERS = 2_000
_APART = DrawnLine(0, "", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, (0.0, 0.0), is_apart=True)


class _Letters:
    """Asks where letters of the cleaned text stand."""

    def __init__(self, textpage: pypdfium2.PdfTextPage, raw: str, clean: CleanPage) -> None:
        self._page = textpage.raw
        self._clean = clean
        self._wide = wide_letters(raw)
        self._rect = pdfium_c.FS_RECTF()
        self._matrix = pdfium_c.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()

    def _index(self, offset: int) -> int:
        at = self._clean.raw_offset(offset)
        # PDFium counts in UTF-16 units.
        return int(pdfium_c.FPDFText_GetCharIndexFromTextIndex(self._page, at + bisect_left(self._wide, at)))

    def box(self, offset: int) -> Box | None:
        """Return left, bottom, right and top of a letter, in points."""
        index = self._index(offset)
        if index < 0 or not pdfium_c.FPDFText_GetLooseCharBox(self._page, index, self._rect):
            return None
        rect = self._rect
        return float(rect.left), float(rect.bottom), float(rect.right), float(rect.top)

    def foot(self, offset: int) -> tuple[float, float] | None:
        """Return the height of the line that a letter stands on, and its size, in points."""
        index = self._index(offset)
        if index < 0 or not pdfium_c.FPDFText_GetCharOrigin(self._page, index, self._x, self._y):
            return None
        if not pdfium_c.FPDFText_GetMatrix(self._page, index, self._matrix):
            return None
        scale = (self._matrix.b**2 + self._matrix.d**2) ** 0.5
        size = float(pdfium_c.FPDFText_GetFontSize(self._page, index) * scale)
        # A damaged file may place its letters nowhere.
        return (float(self._y.value), size) if math.isfinite(size) else None


def page_marks(
    textpage: pypdfium2.PdfTextPage,
    raw: str,
    clean: CleanPage,
    lines: Sequence[SizedLine],
    regions: Sequence[Region],
) -> PageMarks | None:
    """Say what the look of a page tells of its lines.

    Args:
        textpage: the page's text layer.
        raw: PDFium's text of the page.
        clean: the same, cleaned.
        lines: with the sizes of their letters, in the order of the text.
        regions: tables of the page: their lines are no paragraphs.

    Returns:
        Offsets into the cleaned text; None where nothing was found.
    """
    letters = _Letters(textpage, raw, clean)
    probe: Probe | None = None
    raised = _raised(letters, clean.text)
    starts = [start for start, _ in raised]
    drawn: list[DrawnLine] = []
    for line in lines[:_MOST]:
        at = bisect_left(starts, line.char_start)
        is_raised = at < len(starts) and starts[at] < line.char_end
        if any(r.char_start < line.char_end and line.char_start < r.char_end for r in regions):
            drawn.append(_APART)
            continue
        found = _drawn(letters, clean.text, line, is_raised=is_raised)
        if found is not None and drawn and drawn[-1].is_bold and not line.is_bold:
            probe = probe or Probe(textpage, raw)
            low = line.char_start + len(found.text) - len(found.text.lstrip())
            found = replace(found, begins_bold=probe.at(clean.raw_offset(low))[1])
        if found is not None:
            drawn.append(found)
    begins, goes_on = paragraph_marks(drawn)
    if not (begins or goes_on or raised):
        return None
    return PageMarks(tuple(begins), tuple(goes_on), tuple(raised))


def _drawn(letters: _Letters, text: str, line: SizedLine, *, is_raised: bool) -> DrawnLine | None:
    said = text[line.char_start : line.char_end]
    words = list(_WORD.finditer(said))
    if not words:
        return None
    low, high = line.char_start + words[0].start(), line.char_start + words[-1].end()
    first = _span(letters, low, line.char_start + words[0].end())
    # In a line from right to left a number runs the other way: its last figure isn't the line's end.
    last = _span(letters, line.char_start + words[-1].start(), high)
    # A line may begin or end in a raised number, or begin with a large letter.
    feet = [foot for at in (low, (low + high) // 2, high - 1) if (foot := letters.foot(at)) is not None]
    if first is None or last is None or not feet:
        return None
    usual = median_high(size for _, size in feet)
    levels = [y for y, size in feet if abs(size - usual) <= _ONE_SIZE * usual]
    plain = said.isascii()
    return DrawnLine(
        start=line.char_start,
        text=said,
        left=min(first[0], last[0]),
        right=max(first[1], last[1]),
        word=first[1] - first[0],
        baseline=levels[0],
        last_baseline=levels[-1],
        size=round(usual * 2) / 2,
        ends=(feet[0][1], feet[-1][1]),
        is_bold=line.is_bold,
        begins_bold=line.is_bold,
        is_raised=is_raised,
        is_rtl=not plain and is_rtl(said),
        is_south_east=not plain and is_south_east(said),
    )


def _span(letters: _Letters, start: int, end: int) -> tuple[float, float] | None:
    """Return how far a word reaches to the left and to the right, in points."""
    first = letters.box(start)
    last = letters.box(end - 1)
    if first is None or last is None:
        return None
    return min(first[0], last[0]), max(first[2], last[2])


def _raised(letters: _Letters, text: str) -> list[tuple[int, int]]:
    """Find numbers that are smaller than the letter beside them and stand higher."""
    found: list[tuple[int, int]] = []
    for count, match in enumerate(_NUMBER.finditer(text)):
        if count >= _MOST_NUMBERS:
            break
        start, end = match.span()
        beside = start - 1 if start and not text[start - 1].isspace() else _next_letter(text, end)
        if not 0 <= beside < len(text) or not _is_lower(letters.box(start), letters.box(beside)):
            continue
        own, other = letters.foot(start), letters.foot(beside)
        if own is None or other is None or own[1] <= 0:
            continue
        if own[1] <= _SMALLER * other[1] and own[0] - other[0] >= _RAISED * other[1]:
            found.append((start, end))
    return found


def _is_lower(one: Box | None, two: Box | None) -> bool:
    """Tell whether a box is less high than another: most numbers are as high as the letters beside them."""
    return one is not None and two is not None and one[3] - one[1] <= _LESS_HIGH * (two[3] - two[1])


def _next_letter(text: str, at: int) -> int:
    """Return the offset of the first letter behind an offset, on the same line; -1 if there is none."""
    while at < len(text) and text[at] in " \t":
        at += 1
    return at if at < len(text) and text[at] != "\n" else -1

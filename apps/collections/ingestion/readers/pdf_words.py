"""The words of a PDF page: where each stands on the page and in its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.pdf_rules import Cell, View
from apps.collections.ingestion.readers.pdf_text import CleanPage

_TOKEN = re.compile(r"\S+")
_LINE = re.compile(r"\S.*")
_MAX_WORDS = 60_000


class Word(NamedTuple):
    """A run of characters without blanks.

    Attributes:
        start: offset into the page's cleaned text.
        end: just past it.
        text: the characters.
        left: in points from the left side of the page as it is shown.
        right: its right end.
        middle: half-way between its top and its bottom, from the top of the page.
        height: of its line.
    """

    start: int
    end: int
    text: str
    left: float
    right: float
    middle: float
    height: float


class WordBoxes:
    """Asks PDFium where characters of the cleaned text stand."""

    def __init__(self, textpage: pypdfium2.PdfTextPage, raw: str, clean: CleanPage, view: View) -> None:
        self._page = textpage.raw
        self._clean, self._view = clean, view
        # Raw offsets count characters, PDFium's text index counts UTF-16 units: they differ past the first plane only.
        self._wide = [i for i, ch in enumerate(raw) if ch > "\uffff"] if not raw.isascii() else []
        self._rect = pdfium_c.FS_RECTF()

    def box(self, offset: int) -> Cell | None:
        """Give the box of one character, None where PDFium made it up (a blank between words)."""
        unit = self._clean.raw_offset(offset)
        if self._wide:
            unit += bisect_left(self._wide, unit)
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(self._page, unit)
        rect = self._rect
        if index < 0 or not pdfium_c.FPDFText_GetLooseCharBox(self._page, index, rect):
            return None
        return self._view.box(rect.left, rect.bottom, rect.right, rect.top)


def page_words(
    textpage: pypdfium2.PdfTextPage,
    raw: str,
    clean: CleanPage,
    view: View,
    spans: Sequence[tuple[float, float]],
) -> list[Word]:
    """List the words of a page in the order of its text, from lines that stand at the height of a table.

    Args:
        textpage: the page's text layer.
        raw: PDFium's text of the page.
        clean: the same, cleaned.
        view: how the page is shown.
        spans: (top, bottom) of each table, in points from the top of the page.
    """
    boxes = WordBoxes(textpage, raw, clean, view)
    found: list[Word] = []
    for line in _LINE.finditer(clean.text):
        start, end = line.span()
        box = boxes.box(start)
        if box is None or not any(a <= box.bottom and box.top <= b for a, b in spans):
            continue
        for match in _TOKEN.finditer(clean.text, start, end):
            found.extend(_words(boxes, match.group(), match.start()))
        if len(found) >= _MAX_WORDS:
            break
    return found


def _words(boxes: WordBoxes, token: str, start: int) -> Iterator[Word]:
    """Give a token as one word, or as several where PDFium joined what stands far apart (cells without a blank)."""
    first, last = boxes.box(start), boxes.box(start + len(token) - 1)
    if first is None or last is None:
        return
    height = first.bottom - first.top
    is_loose = last.right - first.left > max(height, 1.0) * (len(token) + 1)
    if len(token) < 2 or not (is_loose or abs(first.top - last.top) > height / 2):
        if len(token) == 2 and last.left - first.right > height * 0.3:
            yield _word(token[0], start, first, first)
            yield _word(token[1], start + 1, last, last)
        else:
            yield _word(token, start, first, last)
        return
    begin, head, before = 0, first, first
    for i in range(1, len(token)):
        box = boxes.box(start + i)
        if box is None:
            continue
        if box.left - before.right > height * 0.5 or abs(box.top - before.top) > height / 2:
            yield _word(token[begin:i], start + begin, head, before)
            begin, head = i, box
        before = box
    yield _word(token[begin:], start + begin, head, before)


def _word(text: str, start: int, first: Cell, last: Cell) -> Word:
    return Word(
        start,
        start + len(text),
        text,
        min(first.left, last.left),
        max(first.right, last.right),
        (first.top + first.bottom) / 2,
        first.bottom - first.top,
    )

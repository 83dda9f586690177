"""Tables of a PDF page: its ruled grids filled with the words of its text, as regions that map to exact offsets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pypdfium2

from apps.collections.ingestion.readers.pdf_grid import Grid, GridRow, grid_of
from apps.collections.ingestion.readers.pdf_rules import MIN_PATHS, page_grids, path_count, view_of
from apps.collections.ingestion.readers.pdf_text import CleanPage
from apps.collections.ingestion.readers.pdf_words import Word, page_words
from apps.collections.ingestion.readers.tables import markdown_row
from apps.collections.ingestion.types import Region

_MIN_CELLS = 4
_SAME_COLUMN = 5.0
_FOREIGN_SHARE = 0.2  # of the words in a table's stretch of text that may belong elsewhere


@dataclass(slots=True)
class TableFinder:
    """Finds the tables page by page, and lets a table without a header inherit the one it continues.

    Attributes:
        seconds: processor time it may still use.
        skipped: numbers of pages where the time was up.
    """

    seconds: float
    skipped: list[int] = field(default_factory=list)
    _columns: tuple[float, ...] = ()
    _names: tuple[str, ...] = ()
    _page: int = -1

    def find(
        self,
        page: pypdfium2.PdfPage,
        textpage: pypdfium2.PdfTextPage,
        raw: str,
        clean: CleanPage,
        number: int,
    ) -> list[Region]:
        """Find the ruled tables of a page.

        Args:
            page: the page.
            textpage: its text layer.
            raw: PDFium's text of it.
            clean: the same, cleaned; the regions' offsets point into its text.
            number: of the page, from 1.

        Returns:
            Regions in the order of the text, none overlapping another.
        """
        if path_count(page) < MIN_PATHS or not clean.text.strip():
            return []
        if self.seconds <= 0:
            self.skipped.append(number)
            return []
        began = time.process_time()
        view = view_of(page)
        grids = [cells for cells in page_grids(page, view) if len(cells) >= _MIN_CELLS]
        found: list[Region] = []
        if grids:
            spans = [(min(c.top for c in cells), max(c.bottom for c in cells)) for cells in grids]
            words = page_words(textpage, raw, clean, view, spans)
            for cells in grids:
                if (grid := grid_of(cells, words)) is not None:
                    region = self._region(grid, words, clean.text, number)
                    if region is not None:
                        found.append(region)
        self.seconds -= time.process_time() - began
        return _apart(found)

    def _region(self, grid: Grid, words: Sequence[Word], text: str, number: int) -> Region | None:
        names = grid.names
        body = list(grid.rows)
        if not names and self._continues(grid, number):
            names = self._names
        self._columns, self._names, self._page = grid.columns, names, number
        stretch = _stretch(body, words)
        if stretch is None:
            return None
        start, end = stretch
        rows = [(row.start, markdown_row(row.cells)) for row in body]
        if any(a[0] >= b[0] for a, b in pairwise(rows)):
            # The text goes down the columns: rows cannot be cited one by one, only the table as a whole.
            rows = [(start, "\n".join(shown for _, shown in rows))]
        header = _header(names)
        body_start = start
        own = [word for word in grid.header_words if word.end <= start]
        if header and own and _stretch_is_whole(own, start, words):
            start = min(word.start for word in own)
            rows = [(start, header), *rows]
        return Region(
            "table",
            _line_start(text, start),
            _line_end(text, end),
            row_starts=tuple(row for row, _ in rows),
            body_start=body_start,
            header=header,
            rows=tuple(shown for _, shown in rows),
            columns=len(grid.columns) - 1,
            caption=grid.caption,
        )

    def _continues(self, grid: Grid, number: int) -> bool:
        """Tell whether a table goes on from the page before: the same columns at the same places."""
        return (
            bool(self._names)
            and number - self._page <= 1
            and len(grid.columns) == len(self._columns)
            and all(abs(a - b) <= _SAME_COLUMN for a, b in zip(grid.columns, self._columns, strict=True))
        )


def _header(names: Sequence[str]) -> str:
    if not any(names):
        return ""
    return f"{markdown_row(names)}\n|{' --- |' * len(names)}"


def _stretch(rows: Sequence[GridRow], words: Sequence[Word]) -> tuple[int, int] | None:
    """Give the stretch of text that the rows cover, None when too much of it is not theirs."""
    if not rows:
        return None
    start, end = min(row.start for row in rows), max(row.end for row in rows)
    inside = sum(1 for word in words if start <= word.start < end)
    own = sum(row.word_count for row in rows)
    return (start, end) if inside - own <= _FOREIGN_SHARE * inside + 3 else None


def _stretch_is_whole(own: Sequence[Word], end: int, words: Sequence[Word]) -> bool:
    start = min(word.start for word in own)
    inside = sum(1 for word in words if start <= word.start < end)
    return inside - len(own) <= _FOREIGN_SHARE * inside + 3


def _line_start(text: str, offset: int) -> int:
    """Go back to the line's start if only blanks are in between."""
    start = text.rfind("\n", 0, offset) + 1
    return start if not text[start:offset].strip() else offset


def _line_end(text: str, offset: int) -> int:
    stop = text.find("\n", offset)
    return stop + 1 if stop != -1 and not text[offset:stop].strip() else offset


def _apart(found: list[Region]) -> list[Region]:
    """Drop what overlaps in the text: of two tables that stand side by side, the larger stays."""
    kept: list[Region] = []
    for region in sorted(found, key=lambda r: r.char_start - r.char_end):
        if all(region.char_end <= other.char_start or other.char_end <= region.char_start for other in kept):
            kept.append(region)
    return sorted(kept, key=lambda r: r.char_start)

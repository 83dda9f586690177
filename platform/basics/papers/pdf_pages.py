"""The pages of a PDF: where each flow stands, page numbers, and the footnotes that a page refers to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph

from basics.papers.fonts import TEXT
from basics.papers.model import (
    writable,
)

MARGIN, FOOT = 62, 56
WIDTH = A4[0] - 2 * MARGIN


@dataclass(frozen=True, slots=True)
class Flow:
    """Something to put on a page.

    Attributes:
        drawn: a flowable of ReportLab.
        notes: of a table's row: the footnotes that it refers to; a paragraph is asked for its own.
        stays: what room there must be below it, so that a heading isn't the last of a page.
    """

    drawn: Any
    notes: Sequence[int] = ()
    left: float = 0
    above: float = 0
    below: float = 0
    stays: float = 0
    outline: str = ""


class Pages:
    """Fills pages from above with text, and from below with the footnotes it refers to."""

    def __init__(self, canvas: Canvas, notes: Sequence[Paragraph]) -> None:
        self._canvas, self._notes = canvas, notes
        self._heights = [float(note.wrap(WIDTH, 10_000)[1]) + 2 for note in notes]
        self._noted: set[int] = set()
        self._late: list[int] = []  # footnotes for which the page of their reference had no room
        self._number = 0
        self._begin()

    def fill(self, flows: Sequence[Flow]) -> None:
        """Put all on pages, and end the last one."""
        for flow in flows:
            self._put(flow)
        self._end()
        while self._late:
            self._begin()
            self._end()

    def _begin(self) -> None:
        self._number += 1
        self._y = A4[1] - MARGIN
        self._here: list[int] = []
        self._late_take()
        self._is_empty = not self._here

    def _late_take(self) -> None:
        while self._late and self._room(self._late[:1]) >= 0:
            self._here.append(self._late.pop(0))

    def _end(self) -> None:
        y = FOOT + self._height(self._here)
        if self._here:
            self._canvas.setLineWidth(0.4)
            self._canvas.line(MARGIN, y, MARGIN + 110, y)
            y -= 4
        for number in self._here:
            y -= self._heights[number - 1]
            self._notes[number - 1].drawOn(self._canvas, MARGIN, y)
        self._canvas.setFont(TEXT, 8)
        self._canvas.drawCentredString(A4[0] / 2, FOOT - 24, str(self._number))
        self._canvas.showPage()

    def _put(self, flow: Flow) -> None:
        drawn, width = flow.drawn, WIDTH - flow.left
        above = 0 if self._is_empty else flow.above
        while True:
            height = drawn.wrap(width, 10_000)[1]
            notes = self._new(drawn, flow.notes)
            if height + above + flow.stays <= self._room(notes):
                self._draw(flow, drawn, height, above, notes)
                self._y -= flow.below
                return
            first, rest = self._split(drawn, width, self._room(()) - above, flow)
            if first is not None:
                self._draw(flow, first, first.wrap(width, 10_000)[1], above, self._new(first, ()))
                drawn = rest
            elif (
                self._is_empty
            ):  # it doesn't fit a page at all: a row of a table, or one line with very many footnotes
                drawn.wrap(width, 10_000)  # what was tried in parts is in lines no more
                self._draw(flow, drawn, height, above, ())
                self._noted |= set(notes)
                self._late += notes
                self._late_take()
                return
            self._end()
            self._begin()
            above = 0

    def _split(self, drawn: Any, width: float, room: float, flow: Flow) -> tuple[Any, Any]:
        """Return as many lines of a paragraph as there is room for with their footnotes, and the others; None where none fits."""
        # A heading stays whole, but for one that no page has room for.
        if not isinstance(drawn, Paragraph) or (flow.stays and not self._is_empty):
            return None, None
        lines = int(room // drawn.style.leading)
        while lines > 0:
            parts = drawn.split(width, lines * drawn.style.leading + 0.1)
            if len(parts) == 2:
                height = parts[0].wrap(width, 10_000)[1]
                if height <= self._room(self._new(parts[0], ())):
                    return parts[0], parts[1]
            lines -= 1
        return None, None

    def _draw(self, flow: Flow, drawn: Any, height: float, above: float, notes: Sequence[int]) -> None:
        self._y -= above + height
        drawn.drawOn(self._canvas, MARGIN + flow.left, self._y)
        if flow.outline:
            key = f"part-{self._number}-{self._y:.0f}"
            self._canvas.bookmarkPage(key)
            self._canvas.addOutlineEntry(writable(flow.outline)[:120], key, 0)
        self._here += notes
        self._noted |= set(notes)
        self._is_empty = False

    def _new(self, drawn: Any, notes: Sequence[int]) -> list[int]:
        """Return the footnotes that something refers to first."""
        if isinstance(drawn, Paragraph):
            notes = list(_referred(drawn))
        return [number for number in dict.fromkeys(notes) if number not in self._noted]

    def _room(self, notes: Sequence[int]) -> float:
        return float(self._y - FOOT - self._height([*self._here, *notes]))

    def _height(self, notes: Sequence[int]) -> float:
        return sum(self._heights[number - 1] for number in notes) + (12 if notes else 0)


def _referred(paragraph: Paragraph) -> Iterator[int]:
    """Yield the footnotes that a paragraph refers to: all that is raised in it. ReportLab keeps words otherwise once it has wrapped them."""
    for frag in getattr(paragraph, "frags", ()):
        parts = frag[1:] if isinstance(frag, list) else [(frag, getattr(frag, "text", ""))]
        for style, text in parts:
            if getattr(style, "rise", 0) and text.isdigit():
                yield int(text)

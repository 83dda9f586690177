"""A document as PDF, with the footnotes of a page at its foot.

ReportLab breaks the lines of each paragraph; this module fills the pages, as a footnote must stand on the page that refers to it. What the
fonts can't show is named at the beginning, instead of boxes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from reportlab.lib.enums import TA_CENTER, TA_LEFT, TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Image, Paragraph, Table
from reportlab.platypus.tables import TableStyle

from basics.papers.fonts import BOLD, ITALIC, MONO, TEXT, Chooser
from basics.papers.model import (
    Align,
    Block,
    Note,
    Paper,
    Picture,
    Run,
    is_right_to_left,
    runs_portioned,
    runs_text,
    writable,
)
from basics.papers.right_to_left import MARKS, has_right_to_left, joined, seen
from basics.texts import gettext as _

_MARGIN, _FOOT = 62, 56
_WIDTH = A4[0] - 2 * _MARGIN
_INDENT = 16
_COLUMNS_MOST = 12
_ROW_MOST = A4[1] - _MARGIN - _FOOT - 120
_PICTURE_MOST = 420  # points of its height
_QUOTE_MOST = 700
"""Characters of a footnote's quote: more would leave no room for the text. The other forms have all of it."""
_PORTION = 6_000
"""Characters of a paragraph that are set at once: what goes on over many pages is broken into lines again on each."""
_MARKS = re.compile(f"[{chr(MARKS[0])}-{chr(MARKS[1])}]")
_CJK = re.compile("[\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_SIZES = {"heading": (17, 14, 12.5, 11.5, 11, 11), "small": 8.5, "code": 8.5, "note": 8}


@dataclass(frozen=True, slots=True)
class _Flow:
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


def pdf_write(paper: Paper) -> bytes:
    """Return a document as a PDF file; the same document gives the same bytes."""
    setter = _Setter(Chooser(paper.text))
    flows = [_Flow(setter.paragraph([Run(paper.title, bold=True)], 19), below=6)]
    for block in paper.blocks:
        flows += setter.block(block)
    notes = [setter.note(number, note) for number, note in enumerate(paper.notes, 1)]
    if setter.missing:
        said = _("This PDF can't show %(scripts)s; […] marks each place. The Word file has everything.")
        words = said % {"scripts": ", ".join(sorted(setter.missing))}
        flows.insert(1, _Flow(setter.paragraph([Run(words, italic=True)], 8.5), below=6))
    held = io.BytesIO()
    canvas = Canvas(held, pagesize=A4, invariant=1, pageCompression=1)
    canvas.setTitle(writable(paper.title))
    _Pages(canvas, notes).fill(flows)
    canvas.save()
    return held.getvalue()


class _Setter:
    """Sets blocks as flowables."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser

    @property
    def missing(self) -> set[str]:
        """What no font can show, of all that was set so far."""
        return self._chooser.missing

    def block(self, block: Block) -> Iterator[_Flow]:
        left = _INDENT * block.level if block.kind != "heading" else 0
        match block.kind:
            case "heading":
                size = _SIZES["heading"][min(block.level, 6) - 1]  # type: ignore[index]
                drawn = self.paragraph(
                    [Run(r.text, bold=True) if not r.note else r for r in block.runs], size
                )
                yield _Flow(
                    drawn,
                    above=9,
                    below=3,
                    stays=34,
                    outline=runs_text(block.runs) if block.level == 1 else "",
                )
            case "code":
                for line in runs_text(block.runs).split("\n"):
                    fixed = line.expandtabs(4).replace(" ", "\u00a0") or "\u00a0"
                    yield from self._flows([Run(fixed, code=True)], 8.5, left + 6)
            case "table":
                yield from self._table(block.rows, block.aligns)
            case "picture" if block.picture is not None:
                yield from self._picture(block.picture, block.runs)
            case "rule":
                yield _Flow(self.paragraph([Run("— — —")], 8), above=4, below=4)
            case "item":
                sign = {"bullet": "•", "number": f"{block.number}.", "todo": "☐", "done": "☑"}.get(
                    block.mark, ""
                )
                yield from self._flows(block.runs, 10, left, below=3, sign=sign)
            case "quote":
                runs = [r if r.note else Run(r.text, italic=True, link=r.link) for r in block.runs]
                yield from self._flows(runs, 10, left, below=5)
            case "small":
                yield from self._flows(block.runs, 8.5, below=5)
            case _:
                yield from self._flows(block.runs, 10, left, below=6)

    def _picture(self, picture: Picture, caption: Sequence[Run]) -> Iterator[_Flow]:
        """Set a picture as wide as its pixels at 144 to the inch, or as the page allows, above its caption."""
        scale = min(0.5, _WIDTH / picture.width, _PICTURE_MOST / picture.height)
        drawn = Image(
            io.BytesIO(picture.content), picture.width * scale, picture.height * scale, hAlign="LEFT"
        )
        yield _Flow(drawn, above=4, below=3, stays=14 if caption else 0)
        if caption:
            yield from self._flows(caption, 8.5, below=8)

    def _flows(
        self, runs: Sequence[Run], size: float, left: float = 0, below: float = 0, sign: str = ""
    ) -> Iterator[_Flow]:
        """Yield a paragraph, in portions where it is very long."""
        portions = runs_portioned(runs, _PORTION)
        for place, portion in enumerate(portions):
            drawn = self.paragraph(portion, size, left, "" if place else sign)
            yield _Flow(drawn, left=left, below=below if place == len(portions) - 1 else 0)

    def note(self, number: int, note: Note) -> Paragraph:
        """Return a footnote."""
        cut = len(note.quote) > _QUOTE_MOST
        quote = f" “{note.quote[:_QUOTE_MOST].rstrip()}{' […]' if cut else ''}”" if note.quote else ""
        return self.paragraph([Run(f"{number} "), Run(note.title, bold=True), Run(quote)], 8)

    def paragraph(
        self, runs: Sequence[Run], size: float, left: float = 0, sign: str = "", align: str = ""
    ) -> Paragraph:
        """Return a paragraph.

        Args:
            left: how far it is indented; its sign, such as a list's point, stands to the left of it.
            align: of a cell, see ``Align``.
        """
        said = runs_text(runs)
        style = ParagraphStyle("", fontName=TEXT, fontSize=size, leading=size * 1.42, splitLongWords=1)
        if is_right_to_left(said):
            style.alignment = {"center": TA_CENTER, "right": TA_LEFT}.get(align, TA_RIGHT)
            return Paragraph(self._turned(runs, size, _WIDTH - left, sign), style)
        style.alignment = {"center": TA_CENTER, "right": TA_RIGHT}.get(align, TA_LEFT)
        if _CJK.search(said):
            style.wordWrap = "CJK"  # lines may break between any two of its characters
        if sign:
            style.bulletFontName, style.bulletFontSize, style.bulletIndent = (
                TEXT,
                size,
                -13 - 5 * (len(sign) - 1),
            )
        return Paragraph("".join(map(self._markup, runs)) or "&nbsp;", style, bulletText=sign or None)

    def _markup(self, run: Run) -> str:
        if run.note:
            return f'<super size="6.5">{run.note}</super>'
        font = MONO if run.code else BOLD if run.bold else ITALIC if run.italic else TEXT
        text = seen(joined(run.text), is_turned=False) if has_right_to_left(run.text) else run.text
        parts = "".join(
            f'<font name="{found}">{escape(part, quote=False)}</font>'
            for part, found in self._chooser.stretches(text.replace("\n", "\u2028"), font)
        ).replace("\u2028", "<br/>")
        parts = f"<strike>{parts}</strike>" if run.strike else parts
        return f'<a href="{escape(run.link)}" color="#0b57d0">{parts}</a>' if run.link else parts

    def _turned(self, runs: Sequence[Run], size: float, width: float, sign: str) -> str:
        """Return a paragraph that runs from right to left as lines in the order of the eye; it has one style."""
        text, notes = f"{sign} " if sign else "", list[int]()
        for run in runs:
            if run.note and len(notes) <= MARKS[1] - MARKS[0]:
                notes.append(run.note)
                text += chr(MARKS[0] + len(notes) - 1)
            text += _MARKS.sub("", run.text)
        lines, line = list[str](), ""
        words = (part for word in joined(text).split() for part in _fitting(word, size, width - 4))
        for word in words:
            longer = f"{line} {word}".strip()
            if line and stringWidth(longer, TEXT, size) > width - 4:
                lines.append(line)
                line = word
            else:
                line = longer
        written = []
        for each in [*lines, line]:
            parts = []
            for part in _parted(seen(each, is_turned=True)):
                number = ord(part[0]) - MARKS[0]
                is_note = len(part) == 1 and 0 <= number < len(notes)
                parts.append(self._markup(Run("", note=notes[number])) if is_note else self._plain(part))
            written.append("".join(parts))
        return "<br/>".join(written)

    def _plain(self, text: str) -> str:
        stretches = self._chooser.stretches(text, TEXT)
        return "".join(f'<font name="{font}">{escape(part, quote=False)}</font>' for part, font in stretches)

    def _table(self, rows: Sequence[Sequence[Sequence[Run]]], aligns: Sequence[Align]) -> Iterator[_Flow]:
        """Set each row by itself: rows stay whole, and their footnotes with them."""
        columns = max((len(row) for row in rows), default=0)
        if columns > _COLUMNS_MOST:  # they would be narrower than a word: a row is a line
            for row in rows:
                runs = [run for cell in row for run in (*cell, Run(" | "))]
                yield _Flow(self.paragraph(runs[:-1], 8), below=3)
            return
        size = 9 if columns <= 5 else 7.5 if columns <= 8 else 6
        width = _WIDTH / max(columns, 1)
        for place, row in enumerate(rows):
            cells = [
                self.paragraph(
                    [r if r.note or place else Run(r.text, bold=True) for r in cell],
                    size,
                    _WIDTH - width + 8,
                    align=align,
                )
                for cell, align in zip(row, [*aligns, *[""] * columns], strict=False)
            ]
            style = [
                ("GRID", (0, 0), (-1, -1), 0.4, "#bbbbbb"),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                *[(f"{side}PADDING", (0, 0), (-1, -1), 4) for side in ("LEFT", "RIGHT")],
                *[(f"{side}PADDING", (0, 0), (-1, -1), 3) for side in ("TOP", "BOTTOM")],
            ]
            drawn = Table(
                [[*cells, *[""] * (columns - len(cells))]], [width] * columns, style=TableStyle(style)
            )
            if (
                drawn.wrap(_WIDTH, 10_000)[1] > _ROW_MOST
            ):  # no page has room for it: its cells follow each other
                yield from (_Flow(self.paragraph(cell, 9), below=4) for cell in row if cell)
                continue
            notes = [run.note for cell in row for run in cell if run.note]
            yield _Flow(
                drawn,
                notes,
                above=4 * (place == 0),
                below=8 * (place == len(rows) - 1),
                stays=20 * (place == 0),
            )


def _fitting(word: str, size: float, width: float) -> Iterator[str]:
    """Yield a word, in parts where no line has room for it."""
    wide = stringWidth(word, TEXT, size)
    step = len(word) if wide <= width else max(1, int(len(word) * width / wide * 0.8))
    for start in range(0, len(word), step):
        yield word[start : start + step]


def _parted(line: str) -> list[str]:
    """Return a line's stretches of text, and by itself each character that stands for a footnote."""
    parts: list[str] = []
    for character in line:
        is_mark = MARKS[0] <= ord(character) <= MARKS[1]
        if parts and not is_mark and not MARKS[0] <= ord(parts[-1][0]) <= MARKS[1]:
            parts[-1] += character
        else:
            parts.append(character)
    return parts


class _Pages:
    """Fills pages from above with text, and from below with the footnotes it refers to."""

    def __init__(self, canvas: Canvas, notes: Sequence[Paragraph]) -> None:
        self._canvas, self._notes = canvas, notes
        self._heights = [float(note.wrap(_WIDTH, 10_000)[1]) + 2 for note in notes]
        self._noted: set[int] = set()
        self._late: list[int] = []  # footnotes for which the page of their reference had no room
        self._number = 0
        self._begin()

    def fill(self, flows: Sequence[_Flow]) -> None:
        """Put all on pages, and end the last one."""
        for flow in flows:
            self._put(flow)
        self._end()
        while self._late:
            self._begin()
            self._end()

    def _begin(self) -> None:
        self._number += 1
        self._y = A4[1] - _MARGIN
        self._here: list[int] = []
        self._late_take()
        self._is_empty = not self._here

    def _late_take(self) -> None:
        while self._late and self._room(self._late[:1]) >= 0:
            self._here.append(self._late.pop(0))

    def _end(self) -> None:
        y = _FOOT + self._height(self._here)
        if self._here:
            self._canvas.setLineWidth(0.4)
            self._canvas.line(_MARGIN, y, _MARGIN + 110, y)
            y -= 4
        for number in self._here:
            y -= self._heights[number - 1]
            self._notes[number - 1].drawOn(self._canvas, _MARGIN, y)
        self._canvas.setFont(TEXT, 8)
        self._canvas.drawCentredString(A4[0] / 2, _FOOT - 24, str(self._number))
        self._canvas.showPage()

    def _put(self, flow: _Flow) -> None:
        drawn, width = flow.drawn, _WIDTH - flow.left
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

    def _split(self, drawn: Any, width: float, room: float, flow: _Flow) -> tuple[Any, Any]:
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

    def _draw(self, flow: _Flow, drawn: Any, height: float, above: float, notes: Sequence[int]) -> None:
        self._y -= above + height
        drawn.drawOn(self._canvas, _MARGIN + flow.left, self._y)
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
        return float(self._y - _FOOT - self._height([*self._here, *notes]))

    def _height(self, notes: Sequence[int]) -> float:
        return sum(self._heights[number - 1] for number in notes) + (12 if notes else 0)


def _referred(paragraph: Paragraph) -> Iterator[int]:
    """Yield the footnotes that a paragraph refers to: all that is raised in it. ReportLab keeps words otherwise once it has wrapped them."""
    for frag in getattr(paragraph, "frags", ()):
        parts = frag[1:] if isinstance(frag, list) else [(frag, getattr(frag, "text", ""))]
        for style, text in parts:
            if getattr(style, "rise", 0) and text.isdigit():
                yield int(text)

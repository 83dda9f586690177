"""A document as PDF, with the footnotes of a page at its foot.

ReportLab breaks the lines of each paragraph; this module fills the pages, as a footnote must stand on the page that refers to it. What the
fonts can't show is named at the beginning, instead of boxes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from html import escape

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
from basics.papers.pdf_pages import FOOT, MARGIN, WIDTH, Flow, Pages
from basics.papers.right_to_left import MARKS, has_right_to_left, joined, seen
from basics.texts import gettext as _

_INDENT = 16
_COLUMNS_MOST = 12
_ROW_MOST = A4[1] - MARGIN - FOOT - 120
_PICTURE_MOST = 420  # points of its height
_QUOTE_MOST = 700
"""Characters of a footnote's quote: more would leave no room for the text. The other forms have all of it."""
_PORTION = 6_000
"""Characters of a paragraph that are set at once: what goes on over many pages is broken into lines again on each."""
_MARKS = re.compile(f"[{chr(MARKS[0])}-{chr(MARKS[1])}]")
_CJK = re.compile("[\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_SIZES = {"heading": (17, 14, 12.5, 11.5, 11, 11), "small": 8.5, "code": 8.5, "note": 8}


def pdf_write(paper: Paper) -> bytes:
    """Return a document as a PDF file; the same document gives the same bytes."""
    setter = _Setter(Chooser(paper.text))
    flows = [Flow(setter.paragraph([Run(paper.title, bold=True)], 19), below=6)]
    for block in paper.blocks:
        flows += setter.block(block)
    notes = [setter.note(number, note) for number, note in enumerate(paper.notes, 1)]
    if setter.missing:
        said = _("This PDF can't show %(scripts)s; […] marks each place. The Word file has everything.")
        words = said % {"scripts": ", ".join(sorted(setter.missing))}
        flows.insert(1, Flow(setter.paragraph([Run(words, italic=True)], 8.5), below=6))
    held = io.BytesIO()
    canvas = Canvas(held, pagesize=A4, invariant=1, pageCompression=1)
    canvas.setTitle(writable(paper.title))
    Pages(canvas, notes).fill(flows)
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

    def block(self, block: Block) -> Iterator[Flow]:
        left = _INDENT * block.level if block.kind != "heading" else 0
        match block.kind:
            case "heading":
                size = _SIZES["heading"][min(block.level, 6) - 1]  # type: ignore[index]
                drawn = self.paragraph(
                    [Run(r.text, bold=True) if not r.note else r for r in block.runs], size
                )
                yield Flow(
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
                yield Flow(self.paragraph([Run("— — —")], 8), above=4, below=4)
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

    def _picture(self, picture: Picture, caption: Sequence[Run]) -> Iterator[Flow]:
        """Set a picture as wide as its pixels at 144 to the inch, or as the page allows, above its caption."""
        scale = min(0.5, WIDTH / picture.width, _PICTURE_MOST / picture.height)
        drawn = Image(
            io.BytesIO(picture.content), picture.width * scale, picture.height * scale, hAlign="LEFT"
        )
        yield Flow(drawn, above=4, below=3, stays=14 if caption else 0)
        if caption:
            yield from self._flows(caption, 8.5, below=8)

    def _flows(
        self, runs: Sequence[Run], size: float, left: float = 0, below: float = 0, sign: str = ""
    ) -> Iterator[Flow]:
        """Yield a paragraph, in portions where it is very long."""
        portions = runs_portioned(runs, _PORTION)
        for place, portion in enumerate(portions):
            drawn = self.paragraph(portion, size, left, "" if place else sign)
            yield Flow(drawn, left=left, below=below if place == len(portions) - 1 else 0)

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
            return Paragraph(self._turned(runs, size, WIDTH - left, sign), style)
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

    def _table(self, rows: Sequence[Sequence[Sequence[Run]]], aligns: Sequence[Align]) -> Iterator[Flow]:
        """Set each row by itself: rows stay whole, and their footnotes with them."""
        columns = max((len(row) for row in rows), default=0)
        if columns > _COLUMNS_MOST:  # they would be narrower than a word: a row is a line
            for row in rows:
                runs = [run for cell in row for run in (*cell, Run(" | "))]
                yield Flow(self.paragraph(runs[:-1], 8), below=3)
            return
        size = 9 if columns <= 5 else 7.5 if columns <= 8 else 6
        width = WIDTH / max(columns, 1)
        for place, row in enumerate(rows):
            cells = [
                self.paragraph(
                    [r if r.note or place else Run(r.text, bold=True) for r in cell],
                    size,
                    WIDTH - width + 8,
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
                drawn.wrap(WIDTH, 10_000)[1] > _ROW_MOST
            ):  # no page has room for it: its cells follow each other
                yield from (Flow(self.paragraph(cell, 9), below=4) for cell in row if cell)
                continue
            notes = [run.note for cell in row for run in cell if run.note]
            yield Flow(
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

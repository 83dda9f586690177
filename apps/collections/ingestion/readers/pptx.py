"""PowerPoint presentations, slide by slide: titles, paragraphs, lists, tables with merged cells, charts, notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, clean_text
from apps.collections.ingestion.readers.charts import chart_rows
from apps.collections.ingestion.readers.package import Package, XmlEvent
from apps.collections.ingestion.readers.tables import TextBuilder, one_line
from apps.collections.ingestion.types import FailureCode, PageText, ReaderLimits, ReadFailure
from basics.texts import gettext as _
from basics.texts import number_told

_MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_LEFT_OUT = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
_EMU_PER_POINT = 12700


class PptxReader:
    """Read a PPTX file; a page is a slide."""

    media_types = (media_types.PPTX,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``too_many_pages``; ``no_text``, ``too_large`` while slides are read.
        """
        package = Package(path, "presentation")
        try:
            slides, size = _slides(package)
        except ReadFailure:
            package.__exit__(None, None, None)
            raise
        if len(slides) > limits.max_pages:
            raise ReadFailure(
                FailureCode.TOO_MANY_PAGES,
                _("The presentation has %(slides)s slides; the limit is %(max_pages)s. Split it.")
                % {"slides": number_told(len(slides)), "max_pages": number_told(limits.max_pages)},
            )
        reading = Reading(len(slides), iter(()), is_paged=True)
        reading.metadata["page_noun"] = "slide"
        reading.pages = _pages(package, slides, size, limits, reading)
        return reading


def _slides(package: Package) -> tuple[list[str], tuple[float, float]]:
    """List the slide parts in the order of the show, and give the slide's size in points."""
    if _MAIN not in package.names:
        raise package.damaged()
    targets = package.relations(_MAIN)
    slides: list[str] = []
    size = (0.0, 0.0)
    for event in package.events(_MAIN):
        if event.kind != "start":
            continue
        if event.name == "sldId":
            kind, part = targets.get(event.attributes.get("r:id", ""), ("", ""))
            if kind == "slide" and part in package.names:
                slides.append(part)
        elif event.name == "sldSz":
            width, height = event.attributes.get("cx", "0"), event.attributes.get("cy", "0")
            if width.isdigit() and height.isdigit():
                size = (int(width) / _EMU_PER_POINT, int(height) / _EMU_PER_POINT)
    return slides, size


def _pages(
    package: Package, slides: list[str], size: tuple[float, float], limits: ReaderLimits, reading: Reading
) -> Iterator[PageText]:
    chars = 0
    has_text = False
    with package:
        for number, part in enumerate(slides, start=1):
            builder = TextBuilder()
            slide = _Slide(builder)
            for event in package.events(part):
                slide.take(event)
            for kind, target in package.relations(part).values():
                if target not in package.names:
                    continue
                if kind == "chart":
                    title, rows = chart_rows(package, target)
                    builder.add_paragraph(title)
                    builder.add_table(rows)
                elif kind == "notesSlide":
                    _notes(package, target, builder)
            if not reading.title and slide.title:
                reading.title = slide.title
            chars += builder.length
            if chars > limits.max_chars:
                raise ReadFailure(
                    FailureCode.TOO_LARGE,
                    _("The presentation holds more than %(max_chars)s characters of text. Split it.")
                    % {"max_chars": number_told(limits.max_chars)},
                )
            text = builder.text or "\n"
            has_text = has_text or any(ch.isalnum() for ch in text)
            yield PageText(
                number,
                text,
                width=round(size[0], 2),
                height=round(size[1], 2),
                headings=tuple(builder.headings),
                regions=tuple(builder.regions),
            )
    if not has_text:
        raise ReadFailure(
            FailureCode.NO_TEXT,
            _(
                "The presentation has no text; it may contain only pictures. Text in pictures can't be "
                "read yet."
            ),
        )


def _notes(package: Package, part: str, builder: TextBuilder) -> None:
    inner = TextBuilder()
    notes = _Slide(inner)
    for event in package.events(part):
        notes.take(event)
    said = inner.text.strip()
    if said:
        builder.add_paragraph(f"Notes: {said}")


class _Slide:
    """Turns the events of one slide into text."""

    def __init__(self, builder: TextBuilder) -> None:
        self.title = ""
        self._builder = builder
        self._placeholder = ""
        self._paragraph: list[str] = []
        self._lines: list[str] = []
        self._bullet = ""
        self._numbered = 0
        self._in_text = False
        self._rows: list[list[str]] | None = None
        self._cell: list[str] = []
        self._is_merged = self._above = False

    def take(self, event: XmlEvent) -> None:
        """Take the next event."""
        if event.kind == "text":
            if self._in_text:
                self._paragraph.append(event.name)
        elif event.kind == "start":
            self._open(event)
        else:
            self._close(event.name)

    def _open(self, event: XmlEvent) -> None:
        name, given = event.name, event.attributes
        if name == "t":
            self._in_text = True
        elif name == "br":
            self._paragraph.append("\n")
        elif name == "tab":
            self._paragraph.append(" ")
        elif name == "ph":
            self._placeholder = given.get("type", "body")
        elif name == "pPr":
            level = given.get("lvl", "0")
            self._bullet = "  " * min(int(level) if level.isdigit() else 0, 8)
        elif name == "buChar":
            self._bullet += "- "
        elif name == "buAutoNum":
            self._numbered += 1
            self._bullet += f"{self._numbered}. "
        elif name == "tbl":
            self._rows = []
        elif name == "tr" and self._rows is not None:
            self._rows.append([])
        elif name == "tc":
            self._cell = []
            self._is_merged = any(given.get(key) in ("1", "true") for key in ("hMerge", "vMerge"))
            self._above = given.get("vMerge") in ("1", "true")

    def _close(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "p":
            line = clean_text("".join(self._paragraph)).strip()
            self._paragraph = []
            if not self._bullet.strip().endswith("."):
                self._numbered = 0
            if line:
                (self._cell if self._rows is not None else self._lines).append(self._bullet + line)
            self._bullet = ""
        elif name == "tc" and self._rows:
            self._end_cell()
        elif name == "tbl" and self._rows is not None:
            self._builder.add_table(self._rows)
            self._rows = None
        elif name == "sp":
            self._end_shape()

    def _end_cell(self) -> None:
        """Keep a cell; one that is merged into its neighbour repeats the neighbour's text."""
        rows = self._rows or []
        row = rows[-1]
        text = " ".join(self._cell)
        if self._is_merged and not text:
            if self._above and len(rows) > 1 and len(row) < len(rows[-2]):
                text = rows[-2][len(row)]
            elif row:
                text = row[-1]
        row.append(text)

    def _end_shape(self) -> None:
        lines, self._lines = self._lines, []
        placeholder, self._placeholder = self._placeholder, ""
        if placeholder in _LEFT_OUT or not lines:
            return
        if placeholder in _TITLES:
            title = one_line(" ".join(lines))
            self.title = self.title or title
            self._builder.add_heading(title, 1)
        else:
            self._builder.add_paragraph("\n".join(lines))

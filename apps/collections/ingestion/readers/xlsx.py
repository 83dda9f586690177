"""Excel workbooks: every sheet's blocks of cells as tables, merged cells repeated, dates and percentages as shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, clean_text, require_text, split_parts
from apps.collections.ingestion.readers.charts import chart_rows
from apps.collections.ingestion.readers.package import Package
from apps.collections.ingestion.readers.sheet_blocks import Block, blocks_of
from apps.collections.ingestion.readers.sheet_cells import cells_read, styles_read
from apps.collections.ingestion.readers.tables import TextBuilder
from apps.collections.ingestion.types import FailureCode, PageText, ReaderLimits, ReadFailure
from basics.texts import gettext as _
from basics.texts import gettext_noop, number_told

_NOUN = gettext_noop("Excel workbook")
_MAIN = "xl/workbook.xml"
_MAX_SHEET_CHARS = 300_000  # a page of the viewer; larger sheets are cut into parts


class XlsxReader:
    """Read an XLSX file; a page is a sheet, unless a sheet is too large for a page."""

    media_types = (media_types.XLSX,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        with Package(path, _NOUN) as package:
            sheets, is_1904 = _sheets(package)
            if not sheets:
                raise package.damaged()
            builders = [(name, TextBuilder()) for name, _ in sheets]
            hidden = _fill(package, sheets, is_1904, builders, limits)
        text = "".join(builder.text for _, builder in builders)
        require_text(text, limits)
        reading = _reading(builders, text)
        reading.metadata["sheets"] = [name for name, _ in sheets]
        if hidden:
            reading.warnings.append(
                _("Hidden sheets were read too: %(hidden)s.") % {"hidden": ", ".join(hidden[:10])}
            )
        return reading


def _reading(builders: list[tuple[str, TextBuilder]], text: str) -> Reading:
    if all(builder.length <= _MAX_SHEET_CHARS for _, builder in builders):
        pages: list[PageText] = [
            PageText(
                number, builder.text or "\n", headings=tuple(builder.headings), regions=tuple(builder.regions)
            )
            for number, (_, builder) in enumerate(builders, start=1)
        ]
        reading = Reading(len(pages), iter(pages), is_paged=True)
        reading.metadata["page_noun"] = "sheet"
        return reading
    whole = TextBuilder()
    for _name, builder in builders:
        whole.append(builder)
    parts = list(split_parts(text, whole.headings, whole.regions))
    return Reading(len(parts), iter(parts), is_paged=False)


def _sheets(package: Package) -> tuple[list[tuple[str, tuple[str, bool]]], bool]:
    """List (name, (part, is hidden)) in the workbook's order, and whether its dates count from 1904."""
    if _MAIN not in package.names:
        raise package.damaged()
    targets = package.relations(_MAIN)
    found: list[tuple[str, tuple[str, bool]]] = []
    is_1904 = False
    for event in package.events(_MAIN):
        if event.kind != "start":
            continue
        given = event.attributes
        if event.name == "workbookPr":
            is_1904 = given.get("date1904") in ("1", "true")
        elif event.name == "sheet":
            kind, part = targets.get(given.get("r:id", ""), ("", ""))
            if kind == "worksheet" and part in package.names:
                is_hidden = given.get("state", "visible") != "visible"
                found.append((clean_text(given.get("name", "")), (part, is_hidden)))
    return found, is_1904


def _fill(
    package: Package,
    sheets: list[tuple[str, tuple[str, bool]]],
    is_1904: bool,
    builders: list[tuple[str, TextBuilder]],
    limits: ReaderLimits,
) -> list[str]:
    """Write every sheet's text into its builder and name the hidden ones."""
    styles = styles_read(package, is_1904=is_1904)
    chars = 0
    hidden: list[str] = []
    for (name, (part, is_hidden)), (_name, builder) in zip(sheets, builders, strict=True):
        if is_hidden:
            hidden.append(name)
        builder.add_heading(name, 2)
        _write(blocks_of(cells_read(package, part, styles)), builder)
        for title, rows in _charts(package, part):
            builder.add_paragraph(title)
            builder.add_table(rows)
        chars += builder.length
        if chars > limits.max_chars:
            raise ReadFailure(
                FailureCode.TOO_LARGE,
                _("The %(noun)s holds more than %(max_chars)s characters of text. Split it.")
                % {"noun": _(_NOUN), "max_chars": number_told(limits.max_chars)},
            )
    return hidden


def _write(blocks: Iterator[Block], builder: TextBuilder) -> None:
    for block in blocks:
        if block.is_note:
            builder.add_paragraph("\n".join(" ".join(filter(None, row)) for row in block.rows))
        else:
            builder.add_table(block.rows, header_rows=block.header_rows)


def _charts(package: Package, sheet: str) -> Iterator[tuple[str, list[list[str]]]]:
    for kind, drawing in package.relations(sheet).values():
        if kind != "drawing" or drawing not in package.names:
            continue
        for inner, chart in package.relations(drawing).values():
            if inner == "chart" and chart in package.names:
                yield chart_rows(package, chart)

"""The cells of an Excel sheet as the text that Excel shows: shared strings, dates, percentages, merged cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.collections.ingestion.readers.base import clean_text
from apps.collections.ingestion.readers.package import Package
from apps.collections.ingestion.readers.tables import one_line
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _
from basics.texts import number_told

_MAX_CELLS = 3_000_000
_MAX_MERGED_FILL = 200_000
_MAX_COLUMNS, _MAX_ROWS = 16_384, 1_048_576
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")
# Built-in number formats that show a date or a time (ECMA-376 part 1, 18.8.30).
_BUILT_IN_DATES = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_BUILT_IN_PERCENT = {9: 0, 10: 2}
_QUOTED = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_PERCENT = re.compile(r"(?:\.(0+))?%")


@dataclass(slots=True)
class Styles:
    """What cells need to be shown: number formats by style index, shared strings, the first day.

    Attributes:
        strings: shared strings by index.
        dates: style indexes whose numbers are dates.
        percents: style index -> decimals, for numbers shown as a percentage.
        epoch: day 0 of the workbook's serial numbers.
    """

    strings: list[str] = field(default_factory=list)
    dates: set[int] = field(default_factory=set)
    percents: dict[int, int] = field(default_factory=dict)
    epoch: datetime = datetime(1899, 12, 30)


@dataclass(slots=True)
class Sheet:
    """A sheet's cells that are not blank.

    Attributes:
        rows: {row number: {column number: text}}, both from 1, rows in order.
        wide: cells merged over several columns, as (row, column).
    """

    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    wide: set[tuple[int, int]] = field(default_factory=set)


def styles_read(package: Package, *, is_1904: bool) -> Styles:
    """Read shared strings and number formats of a workbook.

    Raises:
        ReadFailure: ``corrupt_file`` or ``too_large``.
    """
    styles = Styles()
    if is_1904:
        styles.epoch = datetime(1904, 1, 1)
    parts = dict(package.relations("xl/workbook.xml").values())
    if (part := parts.get("sharedStrings", "")) in package.names:
        styles.strings = _strings(package, part)
    if (part := parts.get("styles", "")) in package.names:
        _formats(package, part, styles)
    return styles


def _strings(package: Package, part: str) -> list[str]:
    found: list[str] = []
    pieces: list[str] = []
    is_text = is_phonetic = False
    for kind, name, _attributes in package.events(part):
        if kind == "text":
            if is_text:
                pieces.append(name)
        elif name == "t":
            is_text = kind == "start" and not is_phonetic
        elif name == "rPh":
            is_phonetic = kind == "start"
        elif name == "si" and kind == "end":
            found.append(clean_text("".join(pieces)))
            pieces = []
    return found


def _formats(package: Package, part: str, styles: Styles) -> None:
    codes: dict[int, str] = {}
    is_inside = False
    index = 0
    for kind, name, given in package.events(part):
        if name == "numFmt" and kind == "start":
            codes[_whole(given.get("numFmtId"))] = given.get("formatCode", "")
        elif name == "cellXfs":
            is_inside = kind == "start"
        elif name == "xf" and kind == "start" and is_inside:
            number = _whole(given.get("numFmtId"))
            code = _QUOTED.sub("", codes.get(number, "")).lower()
            if number in _BUILT_IN_DATES or any(ch in code for ch in "ymdhs"):
                styles.dates.add(index)
            elif number in _BUILT_IN_PERCENT:
                styles.percents[index] = _BUILT_IN_PERCENT[number]
            elif match := _PERCENT.search(code):
                styles.percents[index] = len(match.group(1) or "")
            index += 1


def cells_read(package: Package, part: str, styles: Styles) -> Sheet:
    """Read one sheet.

    Raises:
        ReadFailure: ``corrupt_file``, or ``too_large`` beyond three million cells.
    """
    sheet = Sheet()
    row: dict[int, str] = {}
    row_number = column = count = 0
    kind_of_cell = ""
    style = 0
    is_value = False
    pieces: list[str] = []
    for kind, name, given in package.events(part):
        if kind == "text":
            if is_value:
                pieces.append(name)
        elif kind == "start":
            if name == "c":
                column, row_number = _place(given.get("r", ""), column + 1, row_number)
                kind_of_cell, style = given.get("t", "n"), _whole(given.get("s"))
            elif name in ("v", "t"):
                is_value = True
            elif name == "row":
                row_number = _whole(given.get("r")) or row_number + 1
                row, column = sheet.rows.setdefault(row_number, {}), 0
            elif name == "mergeCell":
                _merge(sheet, given.get("ref", ""))
        elif name in ("v", "t"):
            is_value = False
        elif name == "c":
            text = _shown("".join(pieces), kind_of_cell, style, styles) if pieces else ""
            pieces = []
            if text:
                row[column] = text
                count += 1
                if count > _MAX_CELLS:
                    raise ReadFailure(
                        FailureCode.TOO_LARGE,
                        _("A sheet holds more than %(max_cells)s cells. Split the workbook.")
                        % {"max_cells": number_told(_MAX_CELLS)},
                    )
        elif name == "f":
            pieces = []
    sheet.rows = {n: sheet.rows[n] for n in sorted(sheet.rows) if sheet.rows[n]}
    return sheet


def _place(reference: str, column: int, row: int) -> tuple[int, int]:
    match = _REFERENCE.match(reference)
    if match is None:
        return min(column, _MAX_COLUMNS), row
    number = 0
    for letter in match.group(1):
        number = number * 26 + ord(letter) - 64
    return min(number, _MAX_COLUMNS), row


def _merge(sheet: Sheet, reference: str) -> None:
    """Repeat a merged cell's text in every cell it covers, so that no row loses its header."""
    first, _, last = reference.partition(":")
    here, there = _REFERENCE.match(first), _REFERENCE.match(last)
    if here is None or there is None:
        return
    left, _ = _place(first, 1, 1)
    right, _ = _place(last, 1, 1)
    top, bottom = int(here.group(2)), min(int(there.group(2)), _MAX_ROWS)
    text = sheet.rows.get(top, {}).get(left)
    if text is None or (right - left + 1) * (bottom - top + 1) > _MAX_MERGED_FILL:
        return
    if right > left:
        sheet.wide.add((top, left))
    for row in range(top, bottom + 1):
        cells = sheet.rows.setdefault(row, {})
        for column in range(left, right + 1):
            cells[column] = text


def _shown(value: str, kind: str, style: int, styles: Styles) -> str:
    if kind == "s":
        index = _whole(value)
        return styles.strings[index] if index < len(styles.strings) else ""
    if kind == "b":
        return "TRUE" if value.strip() == "1" else "FALSE"
    if kind in ("str", "inlineStr", "e", "d"):
        return clean_text(value)
    if style in styles.dates:
        return _date(value, styles.epoch)
    if style in styles.percents:
        return _percent(value, styles.percents[style])
    return _number(value)


def _number(value: str) -> str:
    """Undo the noise of binary fractions: 0.1 is stored as 0.10000000000000001."""
    value = value.strip()
    if len(value) < 16 or not any(ch in value for ch in ".eE"):
        return one_line(clean_text(value))
    try:
        return repr(float(f"{float(value):.15g}"))
    except (ValueError, OverflowError):
        return one_line(clean_text(value))


def _percent(value: str, decimals: int) -> str:
    try:
        exact = f"{float(value) * 100:.10g}"
    except (ValueError, OverflowError):
        return one_line(clean_text(value))
    shown = f"{float(exact):.{decimals}f}"
    # Rounding for show must not lose a rate: 2.5 % formatted as 0 % stays 2.5 %.
    return f"{shown if float(shown) == float(exact) else exact}%"


def _date(value: str, epoch: datetime) -> str:
    try:
        days = float(value)
        moment = epoch + timedelta(seconds=round(days * 86_400))
    except (ValueError, OverflowError):
        return one_line(clean_text(value))
    if 0 <= days < 1:
        return moment.strftime("%H:%M:%S")
    has_time = bool(moment.hour or moment.minute or moment.second)
    return moment.strftime("%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d")


def _whole(value: str | None) -> int:
    return int(value) if value is not None and value.strip().isdecimal() else 0

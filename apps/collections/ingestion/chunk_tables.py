"""Cut tables between their rows, and rows too long for a chunk between their cells, each piece with its headers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from apps.collections.ingestion.chunk_cuts import prose_pieces, trim
from apps.collections.ingestion.types import Region

_MAX_ROW_HEADER = 120
_MAX_CAPTION = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a table: its stretch of the document's text and what search must know besides."""

    start: int
    end: int
    metadata: dict[str, Any] = field(default_factory=dict)


def table_pieces(text: str, region: Region, size: int) -> Iterator[Piece]:
    """Cut a table; a table that fits stays whole.

    Every piece that does not hold the column header itself carries it as ``table_header``, cut to half of ``size``.
    A row longer than ``size`` is cut between its cells where they can be told; then the header holds the names of
    those columns only, and ``row_header`` repeats the row's first cell.

    Args:
        text: the document's text.
        region: the table, with offsets into ``text``.
        size: largest piece in characters.
    """
    whole: dict[str, Any] = {}
    if region.caption:
        whole["table_caption"] = region.caption[:_MAX_CAPTION]
    if region.columns:
        whole["table_columns"] = region.columns
    for start, end, is_row_part in _row_stretches(text, region, size):
        if is_row_part:
            yield from _row_parts(text, region, start, end, size, whole)
            continue
        start, end = trim(text, start, end)
        if start >= end:
            continue
        metadata = dict(whole)
        if region.header and start >= region.body_start:
            metadata["table_header"] = _carried(region.header, size)
        if region.rows:
            metadata["table_rows"] = _all_said(_shown_rows(region, start, end), text[start:end])
        yield Piece(start, end, metadata)


def _row_stretches(text: str, region: Region, size: int) -> Iterator[tuple[int, int, bool]]:
    """Pack whole rows; yield a row that is too long alone, marked as such."""
    if region.char_end - region.char_start <= size:
        yield region.char_start, region.char_end, False
        return
    # The header travels with each part, so it counts against the part's size (never by more than half).
    room = size - min(len(region.header), size // 2) if region.header else size
    bounds = sorted({region.char_start, *region.row_starts, region.char_end})
    start = bounds[0]
    for row, after in pairwise(bounds):
        if after - start > (size if start < region.body_start else room) and row > start:
            yield start, row, False
            start = row
        if after - start > size:
            yield start, after, True
            start = after
    if start < region.char_end:
        yield start, region.char_end, False


def _row_parts(
    text: str, region: Region, start: int, end: int, size: int, whole: dict[str, Any]
) -> Iterator[Piece]:
    is_header = start < region.body_start
    # A part of a long row that was cut by its reader begins at no row's start: its columns cannot be told.
    is_whole = start == region.char_start or start in region.row_starts
    cells = cell_spans(text, start, end, region.delimiter) if region.delimiter else []
    row_header = _row_header(text, region, start, end) if is_whole and not is_header else ""
    if len(cells) < 2 or max(b - a for a, b in cells) > size // 2:
        # No cells to cut between: the row is prose to us.
        for first, (a, b) in enumerate(prose_pieces(text, start, end, size, 0)):
            a, b = trim(text, a, b)
            if a >= b:
                continue
            metadata = dict(whole)
            if not is_header and 0 < len(region.header) <= size // 2:
                metadata["table_header"] = region.header
            if first and row_header:
                metadata["row_header"] = row_header
            yield Piece(a, b, metadata)
        return
    names = cell_spans(region.header, 0, len(region.header), region.delimiter) if is_whole else []
    if len(names) != len(cells):
        names = []
    for low, high in _packed(cells, names, size, start, end):
        a = start if low == 0 else cells[low][0]
        # A header's own row of dashes says nothing and would fill chunks of its own.
        b = cells[high - 1][1] if high < len(cells) or is_header else end
        a, b = trim(text, a, b)
        metadata = dict(whole)
        if names and not is_header:
            shown = [region.header[x:y].strip() for x, y in names[low:high]]
            metadata["table_header"] = f" {region.delimiter} ".join(shown)
        if low and row_header:
            metadata["row_header"] = row_header
        if a < b:
            yield Piece(a, b, metadata)


def _packed(
    cells: list[tuple[int, int]], names: list[tuple[int, int]], size: int, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Pack cells into runs whose text and column names together fit ``size``."""
    low, used, begin = 0, 0, start
    for i, (_, stop) in enumerate(cells):
        name = names[i][1] - names[i][0] + 3 if i < len(names) else 0
        limit = end if i == len(cells) - 1 else stop
        if i > low and limit - begin + used + name > size:
            yield low, i
            low, used, begin = i, 0, cells[i][0]
        used += min(name, size // 2)
    yield low, len(cells)


def cell_spans(text: str, start: int, end: int, delimiter: str) -> list[tuple[int, int]]:
    """Find the cells of one row; a delimiter that is quoted, or escaped by a backslash, is part of its cell.

    Args:
        text: holds the row.
        start: where the row begins.
        end: just past its end.
        delimiter: ``|`` for Markdown rows, whose outer bars are borders; else that of a CSV file.
    """
    start, end = trim(text, start, end)
    if delimiter == "|" and text[start : start + 1] == "|":
        # A header's own row of dashes comes after its line end and names nothing.
        stop = text.find("\n", start, end)
        end = end if stop == -1 else stop
        start += 1
        end -= text[end - 1 : end] == "|"
    spans: list[tuple[int, int]] = []
    quoted = False
    begin = start
    for i in range(start, end):
        ch = text[i]
        if ch == '"' and delimiter != "|":
            quoted = not quoted
        elif ch == delimiter and not quoted and not (delimiter == "|" and text[i - 1] == "\\"):
            spans.append((begin, i))
            begin = i + 1
    spans.append((begin, end))
    return spans


def _row_header(text: str, region: Region, start: int, end: int) -> str:
    if region.rows:
        row = _shown_rows(region, start, start + 1)
        spans = cell_spans(row, 0, len(row), "|")
        return row[spans[0][0] : spans[0][1]].strip()[:_MAX_ROW_HEADER]
    if not region.delimiter:
        return ""
    spans = cell_spans(text, start, end, region.delimiter)
    return text[spans[0][0] : spans[0][1]].strip().strip('"')[:_MAX_ROW_HEADER]


def _shown_rows(region: Region, start: int, end: int) -> str:
    low = bisect_left(region.row_starts, start + 1) - 1
    high = bisect_left(region.row_starts, end)
    return "\n".join(region.rows[max(0, low) : high])


def _all_said(rows: str, text: str) -> str:
    """Add the words of a piece that its rows do not hold (they stand outside the table's cells): nothing is lost."""
    held = set(rows.split())
    rest = [word for word in text.split() if word not in held]
    return f"{rows}\n{' '.join(rest)}" if rest else rows


def _carried(header: str, size: int) -> str:
    """Cut a header that would outweigh the part it goes with: tables of thousands of columns exist."""
    return header if len(header) <= size // 2 else header[: size // 2].rsplit(None, 1)[0]

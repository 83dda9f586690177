"""Divide a sheet into its tables: blocks of cells with blank rows or columns between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from apps.collections.ingestion.readers.sheet_cells import Sheet

_NUMBER = re.compile(r"[-+(]?[$€£]?\s?[\d.,]+%?\)?\Z|\d{4}-\d{2}-\d{2}")
_MAX_HEADER_ROWS = 4
_MAX_DEPTH = 30  # of blocks beside and below each other; real sheets need three
_SPARSE = 20  # blank cells for each cell with text: no table, and writing it out would be a bomb

Cells = list[tuple[int, dict[int, str]]]


@dataclass(frozen=True, slots=True)
class Block:
    """One table of a sheet.

    Attributes:
        rows: cells as text, all rows equally long.
        header_rows: how many rows at its top are header.
        is_note: one column or one row of words: text rather than a table.
    """

    rows: list[list[str]]
    header_rows: int
    is_note: bool


def blocks_of(sheet: Sheet) -> Iterator[Block]:
    """Yield the blocks from top to bottom, and from left to right where they stand side by side."""
    for cells in _by_rows(list(sheet.rows.items())):
        yield _block(cells, sheet)


def _by_rows(cells: Cells, depth: int = 0) -> Iterator[Cells]:
    groups: list[Cells] = []
    for number, row in cells:
        previous = groups[-1] if groups else None
        if previous and (number == previous[-1][0] + 1 or _goes_on(previous, row)):
            previous.append((number, row))
        else:
            groups.append([(number, row)])
    for group in groups:
        yield from _by_columns(group, depth)


def _goes_on(above: Cells, row: dict[int, str]) -> bool:
    """Tell a spacer row inside a table from the end of it: figures go on below in the columns of the table."""
    columns = {c for _, cells in above[:50] for c in cells}
    return (
        len(above) > 1
        and len(columns) > 1
        and set(row) <= columns
        and min(row) == min(columns)
        and any(_NUMBER.match(text) for text in row.values())
    )


def _by_columns(cells: Cells, depth: int) -> Iterator[Cells]:
    columns = sorted({c for _, row in cells for c in row})
    cuts = [
        (left, right) for left, right in pairwise(columns) if right - left > 1 and _is_gap(cells, left, right)
    ]
    if not cuts or depth >= _MAX_DEPTH:
        yield cells
        return
    bounds = [columns[0], *(right for _, right in cuts), columns[-1] + 1]
    for low, high in pairwise(bounds):
        side = [
            (number, kept)
            for number, row in cells
            if (kept := {c: text for c, text in row.items() if low <= c < high})
        ]
        yield from _by_rows(side, depth + 1)


def _is_gap(cells: Cells, left: int, right: int) -> bool:
    """Tell two tables side by side from one table with a narrow spacer column."""
    if right - left > 2:
        return True
    top_left = next(number for number, row in cells if any(c <= left for c in row))
    top_right = next(number for number, row in cells if any(c >= right for c in row))
    return top_left != top_right


def _block(cells: Cells, sheet: Sheet) -> Block:
    columns = [c for _, row in cells for c in row]
    low, high = min(columns), max(columns)
    if len(cells) * (high - low + 1) > _SPARSE * len(columns) + 1000:
        return Block([list(row.values()) for _, row in cells], 1, is_note=True)
    rows = [[row.get(c, "") for c in range(low, high + 1)] for _, row in cells]
    is_note = low == high and not any(_NUMBER.match(row[0]) for row in rows)
    is_note = is_note or (len(rows) == 1 and not any(_NUMBER.match(cell) for cell in rows[0]))
    header = 1
    for (number, row), following in pairwise(cells[:_MAX_HEADER_ROWS]):
        # A header that spans columns needs the row under it to tell them apart.
        spans = any((number, c) in sheet.wide for c in row)
        if not spans or all(_NUMBER.match(text) for text in following[1].values()):
            break
        header += 1
    return Block(rows, header, is_note)

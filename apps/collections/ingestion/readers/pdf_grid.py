"""From cells and words to rows: what stands in which column, merged cells, lines inside cells, header and caption."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.collections.ingestion.readers.pdf_rules import Cell
from apps.collections.ingestion.readers.pdf_words import Word

_SLACK = 2.0
_SAME_LINE = 0.5  # of the line's height
_MIN_COLUMNS, _MIN_ROWS = 2, 2
_MAX_HEADER_BANDS = 4
_LINES_AGREE = 0.6  # of the cells must have one line for each row, before a band is cut into rows
_FIGURE = re.compile(r"[-+(]?[$€£]?\s?\d[\d.,:/()-]*%?\)?\Z")
_MAX_CAPTION = 200


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row: its cells' text, the stretch of the page's text that it covers, and how many words it has."""

    cells: tuple[str, ...]
    start: int
    end: int
    word_count: int


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes:
        columns: places of the vertical rules, one more than columns.
        names: of the columns, () when the first row is data already.
        rows: without the header.
        header_words: the words that the names come from.
        caption: text of a box over all columns at the top.
    """

    columns: tuple[float, ...]
    names: tuple[str, ...]
    rows: tuple[GridRow, ...]
    header_words: tuple[Word, ...]
    caption: str


@dataclass(slots=True)
class _Band:
    """What stands between two horizontal rules: words by column, cells that span columns, repeated row headers."""

    words: dict[int, list[Word]]
    spans: list[tuple[int, int, list[Word]]]
    inherited: dict[int, str]


def grid_of(cells: Sequence[Cell], words: Sequence[Word]) -> Grid | None:
    """Fill a grid with words.

    Args:
        cells: of one grid.
        words: all of the page.

    Returns:
        The table, or None if it is none: a frame, a chart, fewer than two columns or rows with text.
    """
    xs = sorted({x for cell in cells for x in (cell.left, cell.right)})
    ys = sorted({y for cell in cells for y in (cell.top, cell.bottom)})
    bands = _bands(cells, words, xs, ys)
    caption = _pop_frames(bands, len(xs) - 1)
    used = sorted({c for band in bands for c in _columns(band)})
    if len(used) < _MIN_COLUMNS or len(bands) < 1:
        return None
    header, header_words = _take_header(bands, used)
    rows = [row for band in bands for row in _rows(band, used)]
    in_two = {c for row in rows for c, text in enumerate(row.cells) if text}
    if len(rows) + bool(header) < _MIN_ROWS or not rows or len(in_two) < _MIN_COLUMNS:
        return None
    columns = (*(xs[c] for c in used), xs[-1])
    return Grid(columns, header, tuple(rows), tuple(header_words), caption)


def _bands(cells: Sequence[Cell], words: Sequence[Word], xs: list[float], ys: list[float]) -> list[_Band]:
    by_slot: dict[tuple[int, int], int] = {}
    places: list[tuple[int, int, int, int]] = []
    for i, cell in enumerate(cells):
        place = (
            bisect_left(ys, cell.top),
            bisect_left(ys, cell.bottom),
            bisect_left(xs, cell.left),
            bisect_left(xs, cell.right),
        )
        places.append(place)
        for row in range(place[0], place[1]):
            for column in range(place[2], place[3]):
                by_slot[row, column] = i
    inside: dict[int, list[Word]] = defaultdict(list)
    for word in words:
        if not (ys[0] - _SLACK <= word.middle <= ys[-1] + _SLACK):
            continue
        row = min(max(bisect_right(ys, word.middle) - 1, 0), len(ys) - 2)
        center = (word.left + word.right) / 2
        if not (xs[0] - _SLACK <= center <= xs[-1] + _SLACK):
            continue
        column = min(max(bisect_right(xs, center) - 1, 0), len(xs) - 2)
        if (slot := by_slot.get((row, column))) is not None:
            inside[slot].append(word)
    bands = [_Band({}, [], {}) for _ in range(len(ys) - 1)]
    for i, found in inside.items():
        top, bottom, low, high = places[i]
        band = bands[top]
        if high - low > 1:
            band.spans.append((low, high, found))
        else:
            band.words.setdefault(low, []).extend(found)
            for below in range(top + 1, bottom):
                bands[below].inherited[low] = _text(found)
    for band in bands:
        _split_spans(band, xs)
    return [band for band in bands if band.words or band.spans]


def _split_spans(band: _Band, xs: list[float]) -> None:
    """Give each line of a wide cell to the columns it is written over, if its words keep to them."""
    kept: list[tuple[int, int, list[Word]]] = []
    for low, high, found in band.spans:
        wide: list[Word] = []
        for line in _lines(found):
            places = [_place(word, xs) for word in line]
            filled = {c for c in places if c is not None and low <= c < high}
            if None not in places and len(filled) >= max(2, (high - low) * 0.6):
                for word, column in zip(line, places, strict=True):
                    band.words.setdefault(column or 0, []).append(word)
            else:
                wide.extend(line)
        if wide:
            kept.append((low, high, wide))
    band.spans = kept


def _place(word: Word, xs: list[float]) -> int | None:
    left = bisect_right(xs, word.left + _SLACK) - 1
    return left if left == bisect_right(xs, word.right - _SLACK) - 1 else None


def _columns(band: _Band) -> set[int]:
    """Name the columns that hold words of their own; a wide cell alone makes no column."""
    return set(band.words)


def _pop_frames(bands: list[_Band], width: int) -> str:
    """Take away what is boxed over all columns: the first is the caption, those below are notes."""

    def is_frame(band: _Band) -> bool:
        return not band.words and all(high - low >= width * 0.8 for low, high, _ in band.spans)

    caption: list[Word] = []
    while bands and is_frame(bands[0]):
        caption.extend(word for _, _, found in bands.pop(0).spans for word in found)
    while bands and is_frame(bands[-1]):
        bands.pop()
    return _text(caption)[:_MAX_CAPTION]


def _take_header(bands: list[_Band], used: list[int]) -> tuple[tuple[str, ...], list[Word]]:
    """Take the header's bands off the top and join their texts column by column.

    The first band is header unless it begins with a figure (a code, a number), half of it is figures, or it holds
    several rows. A band under a header with cells over several columns belongs to it, and so does one that a header
    cell reaches down into.
    """
    pieces: list[list[str]] = [[] for _ in used]
    words: list[Word] = []
    has_spans = True
    for _ in range(_MAX_HEADER_BANDS):
        texts = _band_texts(bands[0], used)
        told = [text for text in texts if text]
        figures = sum(1 for text in told if _FIGURE.match(text))
        reaches_down = bool(words) and used[0] in bands[0].inherited
        is_data = bool(_FIGURE.match(texts[0])) or figures >= len(told) * 0.5
        if len(bands) == 1 or not (reaches_down or (has_spans and not is_data)):
            break
        if _row_count(bands[0]) > 1:
            break
        band = bands.pop(0)
        has_spans = bool(band.spans)
        for piece, text in zip(pieces, texts, strict=True):
            if text and text not in piece:
                piece.append(text)
        words.extend(_all_words(band))
    return (tuple(" ".join(piece) for piece in pieces), words) if words else ((), [])


def _band_texts(band: _Band, used: list[int]) -> list[str]:
    texts = []
    for column in used:
        over = [_text(found) for low, high, found in band.spans if low <= column < high]
        own = _text(band.words.get(column, ()))
        texts.append(" ".join(filter(None, (*over, own or band.inherited.get(column, "")))))
    return texts


def _all_words(band: _Band) -> list[Word]:
    return [
        *(word for found in band.words.values() for word in found),
        *(word for _, _, found in band.spans for word in found),
    ]


def _row_count(band: _Band) -> int:
    """Count the rows that stand between two rules.

    Text that wraps inside its cells looks alike at first: so the first column and most others must have one line for
    each row, at the same heights, and half of those must hold nothing but figures.
    """
    lines = [_lines(found) for _, found in sorted(band.words.items())]
    most = max((len(cell) for cell in lines), default=0)
    if most < 2 or band.spans or len(lines) < 2 or len(lines[0]) != most:
        return 1
    if sum(1 for cell in lines[1:] if _is_figures(cell)) < (len(lines) - 1) * 0.5:
        return 1
    agreeing = [cell for cell in lines if len(cell) == most]
    if len(agreeing) < max(2, len(lines) * _LINES_AGREE):
        return 1
    tops = [line[0].middle for line in agreeing[0]]
    height = agreeing[0][0][0].height
    for cell in agreeing[1:]:
        if any(abs(line[0].middle - top) > height * _SAME_LINE for line, top in zip(cell, tops, strict=True)):
            return 1
    return most


def _is_figures(lines: Sequence[Sequence[Word]]) -> bool:
    return all(_FIGURE.match("".join(word.text for word in line)) for line in lines)


def _rows(band: _Band, used: list[int]) -> list[GridRow]:
    count = _row_count(band)
    if count == 1:
        words = _all_words(band)
        texts = _band_texts(band, used)
        if band.spans:
            texts = _first_only(band, used)
        return [_row(texts, words)] if words else []
    full = next(lines for found in band.words.values() if len(lines := _lines(found)) == count)
    tops = [line[0].middle for line in full]
    rows: list[GridRow] = []
    by_row: list[dict[int, list[Word]]] = [defaultdict(list) for _ in tops]
    for column, found in band.words.items():
        for word in found:
            nearest = min(range(count), key=lambda i: abs(tops[i] - word.middle))
            by_row[nearest][column].append(word)
    for cells in by_row:
        texts = [_text(cells[c]) if c in cells else band.inherited.get(c, "") for c in used]
        words = [word for found in cells.values() for word in found]
        if words:
            rows.append(_row(texts, words))
    return rows


def _first_only(band: _Band, used: list[int]) -> list[str]:
    """Write a cell that spans columns of data once, in its first column."""
    texts = [_text(band.words.get(c, ())) or band.inherited.get(c, "") for c in used]
    for low, high, found in band.spans:
        column = next((i for i, c in enumerate(used) if low <= c < high), None)
        if column is not None:
            texts[column] = " ".join(filter(None, (texts[column], _text(found))))
    return texts


def _row(texts: Sequence[str], words: Sequence[Word]) -> GridRow:
    return GridRow(tuple(texts), min(w.start for w in words), max(w.end for w in words), len(words))


def _lines(words: Iterable[Word]) -> list[list[Word]]:
    """Group words by the line they stand on, top to bottom, each from left to right."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda w: w.middle):
        if lines and abs(word.middle - lines[-1][0].middle) <= max(word.height, 1) * _SAME_LINE:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [sorted(line, key=lambda w: w.left) for line in lines]


def _text(words: Iterable[Word]) -> str:
    """Write words in reading order; what the text joins over a line end (``HFO-`` and ``1234ze``) stays joined."""
    pieces: list[str] = []
    end = -1
    for line in _lines(words):
        for word in line:
            pieces.append(word.text if word.start == end or not pieces else f" {word.text}")
            end = word.end
    return "".join(pieces)

"""Reading order of recognised lines: columns of prose one after the other, rows of tables across."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from apps.collections.ingestion.ocr.lines import OcrLine, Recognised, box_of, turned_back
from apps.collections.ingestion.ocr.types import ScanWord
from apps.collections.ingestion.readers.pdf_text import hyphen_stays

_GUTTER = (
    0.05  # heights of a line between columns; the boxes of lines reach into it, those of headings farther
)
_UPRIGHT = 3.0  # a line so much taller than the usual one runs up the margin
_PROSE = 9.0  # heights of a line that a column of prose is wide at least; cells of tables are narrower
_SAME_ROW = 0.5
_PARAGRAPH = 0.9
_DEEPEST = 40
_CUT = re.compile(r"([^\W_]+)[-‐‑]\Z")
_BEGUN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line in a picture turned so that lines run level."""

    line: OcrLine
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top


def page_text(found: Recognised) -> tuple[str, tuple[ScanWord, ...]]:
    """Write the lines of a page as text.

    Returns:
        The text, and its words with offsets into it and their places on the picture as it was given.
    """
    if found.is_ordered:
        rows = [[line] for line in found.lines]
        gaps = [False] * len(rows)
    else:
        rows, gaps = _rows(found.lines)
    pieces: list[str] = []
    words: list[ScanWord] = []
    length = 0

    def write(text: str) -> None:
        nonlocal length
        pieces.append(text)
        length += len(text)

    cut = _cut_words(rows, gaps)
    for number, (row, is_apart) in enumerate(zip(rows, gaps, strict=True)):
        if pieces and number - 1 not in cut:
            write("\n\n" if is_apart else "\n")
        for place, line in enumerate(row):
            if place:
                write(" ")
            shown = list(line.words)
            if cut.get(number) == "":
                shown[-1] = replace(shown[-1], text=shown[-1].text[:-1])
            for word, glue in zip(shown, (*line.glue, ""), strict=True):
                left, top, right, bottom = turned_back(box_of(word.corners), found)
                words.append(
                    ScanWord(
                        length,
                        length + len(word.text),
                        *(round(v, 5) for v in (left, top, right - left, bottom - top)),
                    )
                )
                write(word.text + glue)
    return "".join(pieces), tuple(words)


def _cut_words(rows: list[list[OcrLine]], gaps: list[bool]) -> dict[int, str]:
    """Find the rows whose last word goes on in the next row, and what stands for the hyphen between: itself, or nothing."""
    found: dict[int, tuple[str, str]] = {}
    for number, (row, below) in enumerate(pairwise(rows)):
        # Rows of several lines are those of a table: what follows a cell does not stand below it.
        if gaps[number + 1] or len(row) != 1 or len(below) != 1 or not row[0].words or not below[0].words:
            continue
        left, right = _CUT.search(row[0].words[-1].text), _BEGUN.match(below[0].words[0].text)
        if left is not None and right is not None:
            found[number] = left.group(1), right.group()
    whole = {
        word.lower()
        for number, row in enumerate(rows)
        for place, line in enumerate(row)
        for at, one in enumerate(line.words)
        if not ((number in found and at == len(line.words) - 1) or (number - 1 in found and at == place == 0))
        for word in _LETTERS.findall(one.text)
    }
    return {number: "-" if hyphen_stays(*parts, whole) else "" for number, parts in found.items()}


def _rows(lines: Sequence[OcrLine]) -> tuple[list[list[OcrLine]], list[bool]]:
    placed = _level(lines)
    if not placed:
        return [], []
    usual = median(p.height for p in placed)
    rows: list[list[OcrLine]] = []
    gaps: list[bool] = []
    level = [p for p in placed if p.height < usual * _UPRIGHT or p.height < p.right - p.left]
    margin = [[p] for p in placed if p not in level]
    for group in [*_groups(level, usual, 0), *margin]:
        last: list[_Placed] | None = None
        for row in _leaf_rows(group):
            rows.append([p.line for p in row])
            above = max(p.bottom for p in last) if last else None
            gaps.append(above is None or min(p.top for p in row) - above > usual * _PARAGRAPH)
            last = row
    return rows, gaps


def _level(lines: Sequence[OcrLine]) -> list[_Placed]:
    """Turn the lines by the page's skew; a box around a skewed line would overlap its neighbours."""
    slopes = []
    for line in lines:
        (x0, y0), (x1, y1), _, (x3, y3) = line.corners
        if math.hypot(x1 - x0, y1 - y0) > 3 * math.hypot(x3 - x0, y3 - y0):
            slopes.append(math.atan2(y1 - y0, x1 - x0))
    angle = median(slopes) if slopes else 0.0
    cos, sin = math.cos(-angle), math.sin(-angle)
    placed = []
    for line in lines:
        turned = tuple((x * cos - y * sin, x * sin + y * cos) for x, y in line.corners)
        placed.append(_Placed(line, *box_of(turned)))
    return placed


def _groups(placed: list[_Placed], usual: float, depth: int) -> list[list[_Placed]]:
    """Cut at gutters between columns first, then at the widest level gap, as long as that finds columns."""
    if len(placed) < 4 or depth > _DEEPEST:
        return [placed]
    gutter = _gutter(placed, usual)
    if gutter is not None:
        left = [p for p in placed if (p.left + p.right) / 2 < gutter]
        right = [p for p in placed if (p.left + p.right) / 2 >= gutter]
        return [*_groups(left, usual, depth + 1), *_groups(right, usual, depth + 1)]
    cut = _level_cut(placed)
    if cut is None:
        return [placed]
    above = _groups([p for p in placed if p.bottom <= cut], usual, depth + 1)
    below = _groups([p for p in placed if p.bottom > cut], usual, depth + 1)
    if len(above) == 1 and len(below) == 1:
        return [placed]  # no columns on either side: one block
    return [*above, *below]


def _gutter(placed: list[_Placed], usual: float) -> float | None:
    """Find a blank strip from top to bottom with prose on both sides."""
    spans = sorted((p.left, p.right) for p in placed)
    reach = spans[0][1]
    best: tuple[float, float] | None = None
    for left, right in spans[1:]:
        gap = left - reach
        if gap > usual * _GUTTER and (best is None or gap > best[0]):
            middle = (left + reach) / 2
            if _is_prose([p for p in placed if p.right < middle], usual) and _is_prose(
                [p for p in placed if p.left > middle], usual
            ):
                best = (gap, middle)
        reach = max(reach, right)
    return None if best is None else best[1]


def _is_prose(side: list[_Placed], usual: float) -> bool:
    return len(side) >= 2 and median(p.right - p.left for p in side) >= usual * _PROSE


def _level_cut(placed: list[_Placed]) -> float | None:
    """Find the widest blank strip from left to right."""
    spans = sorted((p.top, p.bottom) for p in placed)
    reach = spans[0][1]
    best: tuple[float, float] | None = None
    for top, bottom in spans[1:]:
        if top >= reach and (best is None or top - reach > best[0]):
            best = (top - reach, reach)
        reach = max(reach, bottom)
    return None if best is None else best[1]


def _leaf_rows(placed: list[_Placed]) -> list[list[_Placed]]:
    rows: list[list[_Placed]] = []
    for one in sorted(placed, key=lambda p: (p.top + p.bottom) / 2):
        for row in rows[-3:]:
            other = row[-1]
            shared = min(other.bottom, one.bottom) - max(other.top, one.top)
            if shared > min(other.height, one.height) * _SAME_ROW and not any(
                p.left < one.right and one.left < p.right for p in row
            ):
                row.append(one)
                break
        else:
            rows.append([one])
    for row in rows:
        row.sort(key=lambda p: p.left)
    return rows

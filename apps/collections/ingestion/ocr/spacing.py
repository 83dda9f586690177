"""Where words end in a recognised line: the models name characters, and leave out most blanks between Latin words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Measured on pages of federal documents at 150 and 300 dpi: of the model's own blanks only every third word is told.
# Gaps are in pixels of a line scaled to 48, above the usual gap between letters of that line.
_WIDE_GAP = 11.0
_SOME_GAP = 3.0
_DIGIT_GAP = (
    12.0  # figures are set in columns of one width: a 1 stands free without ending a number
)
_HINT = 0.01  # the model's probability of a blank that a visible gap needs beside it
_SURE = 0.3
_LETTER_GAPS = 14


@dataclass(frozen=True, slots=True)
class Mark:
    """A recognised character and where its middle is, as a fraction of the line's length."""

    text: str
    place: float


def line_marks(
    best: Any, blanks: Any, characters: Sequence[str], ink: Any, *, step: float
) -> list[Mark]:
    """Put the blanks back into a line.

    Args:
        best: index of the most probable character for each step along the line; 0 is none.
        blanks: probability of a blank for each step.
        characters: by index.
        ink: for each pixel column of the line (48 high) whether something is printed there.
        step: pixel columns for each step.
    """
    runs = _runs(best)
    if not runs:
        return []
    width = max(1, len(ink))
    places = [(start + end) / 2 * step for _, start, end in runs]
    gaps = [_widest_gap(ink[int(a) : int(b)]) for a, b in itertools.pairwise(places)]
    usual = float(np.median([gap for gap in gaps if gap < _LETTER_GAPS] or [0]))
    marks = [Mark(characters[runs[0][0]], min(1.0, places[0] / width))]
    for i, (code, start, _) in enumerate(runs[1:]):
        before, now = marks[-1].text, characters[code]
        if now != " " and before != " ":
            between = blanks[max(0, runs[i][2] - 1) : start + 1]
            hint = float(between.max()) if len(between) else 0.0
            if _is_blank(before, now, gaps[i] - usual, hint):
                marks.append(Mark(" ", min(1.0, (places[i] + places[i + 1]) / 2 / width)))
        marks.append(Mark(now, min(1.0, places[i + 1] / width)))
    return marks


def _is_blank(before: str, now: str, gap: float, hint: float) -> bool:
    if is_unspaced(before) or is_unspaced(now):
        return False
    if hint >= _SURE:
        return True
    if before.isdigit() and now.isdigit():
        return gap >= _DIGIT_GAP
    return gap >= _WIDE_GAP or (hint >= _HINT and gap >= _SOME_GAP)


def is_unspaced(character: str) -> bool:
    """Tell whether a character belongs to a script that writes without blanks between words (Chinese, Japanese)."""
    return "\u3000" <= character <= "\u9fff" or "\uf900" <= character <= "\uffef"


def _runs(best: Any) -> list[tuple[int, int, int]]:
    """Collapse repeated steps into (character, first step, just past the last)."""
    runs: list[tuple[int, int, int]] = []
    start = 0
    for end in range(1, len(best) + 1):
        if end == len(best) or best[end] != best[start]:
            if best[start] != 0:
                runs.append((int(best[start]), start, end))
            start = end
    return runs


def _widest_gap(ink: Any) -> int:
    widest = here = 0
    for printed in ink:
        here = 0 if printed else here + 1
        widest = max(widest, here)
    return widest

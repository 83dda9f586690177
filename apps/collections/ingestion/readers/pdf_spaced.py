"""Titles set with air between their letters ("S U M M A R Y"): words again, told by how far apart the letters stand."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median

from apps.collections.ingestion.readers.pdf_rtl import Place

SPACED = re.compile(r"(?<!\w)[^\W\d_](?: [^\W\d_]){3,}(?!\w)")
_LINE = re.compile(r"[^\r\n]+")
_PAIR = re.compile(r"(?=([^\W_]) ?([^\W_]))")
_WORD_GAP = 1.35  # times the usual way from letter to letter; from word to word it is more
_WIDE = frozenset("MWmw")
_WIDER = 0.2  # the middles of such a letter and its neighbour are so much farther apart
_VOWELS = frozenset("aeiouyAEIOUY")


def spaced_blanks(raw: str, place: Place) -> list[int]:
    """List the offsets of blanks that stand inside a word of a spaced title.

    Args:
        raw: PDFium's text of a page.
        place: where the middle of a character stands, from the left.
    """
    found: list[int] = []
    for line in _LINE.finditer(raw):
        runs = list(SPACED.finditer(line.group()))
        if runs:
            found += _line_blanks(raw, line.start(), line.end(), [m.group() for m in runs], place)
    return found


def _line_blanks(raw: str, start: int, end: int, runs: list[str], place: Place) -> list[int]:
    apart: list[tuple[int, float]] = []  # offset of the blank, way over it
    close: list[float] = []
    for match in _PAIR.finditer(raw, start, end):
        first, second = match.start(1), match.start(2)
        left, right = place(first), place(second)
        if second >= end or left is None or right is None or right <= left:
            continue
        if second == first + 1:
            close.append(right - left)
        else:
            wide = sum(raw[at] in _WIDE for at in (first, second))
            apart.append((first + 1, (right - left) / (1 + _WIDER * wide)))
    if not apart:
        return []
    if close:
        # Where letters of one line touch and others stand apart, single letters are letters: "A B C D are the options".
        usual = median(close)
        if median(way for _, way in apart) > usual * _WORD_GAP:
            return []
    elif not any(_is_word(run) for run in runs):
        return []
    else:
        usual = median(way for _, way in apart)
    return [at for at, way in apart if way < usual * _WORD_GAP]


def _is_word(run: str) -> bool:
    """Tell a spaced word from a row of letters as over columns (A B C D) or in a formula (x y z w)."""
    letters = run.split()
    rises = all(ord(b) - ord(a) == 1 for a, b in pairwise(letters))
    is_latin = all(letter.isascii() for letter in letters)
    return not rises and (not is_latin or any(letter in _VOWELS for letter in letters))

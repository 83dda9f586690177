"""Where paragraphs begin on a drawn page: told by white space, letter sizes and weight, in every script.

The text of a page has its lines only. What parts them for the eye is measured here: a gap between two lines that is clearly
larger than the usual one of lines of that size, a first line set in, a line set out behind one that had room left, another
size or weight. The text doesn't change; see ``PageMarks``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SAME_SIZE = 0.06
_LARGER = 1.12
_LEAST_GAP, _MOST_GAP = 0.7, 4.0  # letter sizes from one baseline to the next in a run of text
_ONE_GAP = 0.04  # share in which gaps of one kind differ
_WIDER, _WIDER_RAISED = (
    1.2,
    1.3,
)  # times the usual gap; a raised mark in a line pushes it down in some programs
_WIDER_SIZES = 0.18
_MOSTLY_FULL = 0.6
_INDENT, _MOST_INDENT = 0.7, 6.0  # letter sizes
_LEVEL = 0.3
_BLANK = 0.3  # letter sizes between two words
_MOST_ROOM = 10.0  # letter sizes: no word is longer
_NEAR = 12  # lines above and below that tell how wide a column is
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_EAST = re.compile("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
# Words of these scripts have no blanks between them and are longer than a letter.
_SOUTH_EAST = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_SOUTH_EAST_WORD = 4.0  # letter sizes
_LEAST_ROOM = 5  # lines
# Marks that no line begins with: they need room behind the letter before them, or hang over the line's end.
_EAST_CLOSING = re.compile("[、。，．！？：；）」』】〉》”’ーぁぃぅぇぉっゃゅょァィゥェォッャュョ]{0,2}")
_HANGING = ("、", "。", "，", "．", "」", "』", "）", "”")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦▪●■□○◆◇・※–—]|[(（]?\w{1,4}[.．)）、])")


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line of a page's text and where it stands, in points of the page's own coordinates.

    Attributes:
        start: offset into the page's cleaned text.
        word: how wide its first word is.
        baseline: where its letters stand, from the bottom.
        last_baseline: where its last ones do: a word that a hyphen cut has joined two lines of the page.
        size: of its letters.
        ends: size of its first letter and of its last.
        is_raised: a raised number stands in it.
        is_bold: all of it is bold.
        begins_bold: its first letter is.
        is_apart: it is part of a table, whose lines say nothing about paragraphs.
        is_rtl: see ``is_rtl``.
        is_south_east: see ``is_south_east``.
    """

    start: int
    text: str
    left: float
    right: float
    word: float
    baseline: float
    last_baseline: float
    size: float
    ends: tuple[float, float]
    is_bold: bool = False
    begins_bold: bool = False
    is_raised: bool = False
    is_apart: bool = False
    is_rtl: bool = False
    is_south_east: bool = False


def is_rtl(text: str) -> bool:
    """Tell whether a line is read from right to left: most of its letters are."""
    return len(_RTL.findall(text)) > len(_LATIN.findall(text))


def is_south_east(text: str) -> bool:
    """Tell whether a line is of a script whose words are longer than a letter and have no blanks between them."""
    return _SOUTH_EAST.search(text) is not None


def paragraph_marks(lines: Sequence[DrawnLine]) -> tuple[list[int], list[int]]:
    """Tell which lines begin a paragraph, and which continue the line above though their words don't tell.

    Args:
        lines: of one page, in the order of its text.

    Returns:
        Starts of lines that begin, and of lines that go on; what is in neither is left to the words.
    """
    word = _south_east_word(lines)
    pairs = [_Pair(lines, i, word) for i in range(1, len(lines)) if _is_stacked(lines[i - 1], lines[i])]
    usual = {size: _usual_gaps([p for p in pairs if p.size == size]) for size in {p.size for p in pairs}}
    is_indented = _first_lines([p for p in pairs if p.is_same and p.gap_in(usual[p.size])])
    wide = {size: sum(p.is_wide(gaps) for p in pairs if p.size == size) for size, gaps in usual.items()}
    begins: list[int] = []
    goes_on: list[int] = []
    # How far first lines are set in on this page: a line that is set out as far follows one, at a column's head too.
    depths = {round(pair.set_in, 1) for pair in pairs if pair.is_first_line and is_indented(pair)}
    for pair in pairs:
        is_inside = pair.is_same and pair.gap_in(usual[pair.size])
        is_first = pair.is_first_line and is_indented(pair)
        is_second = any(abs(depth + pair.set_in) <= _LEVEL for depth in depths) and pair.room < _MOST_ROOM
        if is_inside and pair.is_south_east and is_second:
            goes_on.append(pair.lower.start)
        elif (
            pair.is_wide(usual[pair.size])
            or pair.is_other_look
            or (pair.is_shifted and not pair.is_full and not is_second)
            or is_first
        ):
            begins.append(pair.lower.start)
        elif is_inside and pair.is_south_east and pair.is_level and (pair.is_full or wide[pair.size] > 1):
            goes_on.append(pair.lower.start)
    # From one column to the next no gap tells, only the room that was left on the last line.
    begins += [
        lines[i].start
        for i in range(1, len(lines))
        if _is_jump(lines[i - 1], lines[i]) and not _Pair(lines, i, word).is_full
    ]
    return sorted(begins), goes_on


class _Pair:
    """Two lines, one below the other."""

    def __init__(self, lines: Sequence[DrawnLine], i: int, word: float) -> None:
        self.upper, self.lower = lines[i - 1], lines[i]
        self.gap = self.upper.last_baseline - self.lower.baseline
        self.is_same = _is_one_size(self.upper, self.lower)
        # Sizes are rounded to halves: one kind of text may be measured as 10 and as 10.5.
        self.size = round(max(self.upper.size, self.lower.size)) if self.is_same else 0
        near = lines[max(0, i - 1 - _NEAR) : i + _NEAR]
        self.room, needed = _room(self.upper, self.lower, near, word)
        self.is_full = self.room < needed
        self.is_south_east = _is_south_east(self.upper, self.lower)
        following = lines[i + 1] if i + 1 < len(lines) and _is_stacked(self.lower, lines[i + 1]) else None
        # From the side where lines begin, in letter sizes, positive where the lower line is set in.
        self.set_in = _set_in(self.upper, self.lower)
        back = None if following is None else -_set_in(self.lower, following)
        self.is_level = abs(self.set_in) <= _LEVEL
        is_in = self.is_same and _INDENT < self.set_in < _MOST_INDENT and not _ITEM.match(self.upper.text)
        # Its next line stands where the one above begins.
        self.is_first_line = is_in and back is not None and abs(back - self.set_in) <= _LEVEL
        self.is_shifted = is_in or (self.is_same and self.set_in < -_INDENT)
        is_bold_apart = (self.upper.is_bold and not self.lower.begins_bold) or (
            self.lower.is_bold and not self.upper.is_bold and not self.is_full
        )
        # Small capitals at a line's begin, or a raised number at its end, make no other kind of text.
        is_larger = _is_larger(self.upper.size, self.lower.size)
        is_size_apart = is_larger and _is_larger(self.upper.ends[1], self.lower.ends[0])
        self.is_other_look = is_size_apart or is_bold_apart

    def gap_in(self, usual: Sequence[float]) -> bool:
        return any(abs(self.gap - one) <= max(0.6, one * _ONE_GAP) for one in usual)

    def is_wide(self, usual: Sequence[float]) -> bool:
        """Tell whether the gap is clearly larger than what is usual between lines."""
        if not self.is_same or self.gap_in(usual):
            return False
        smaller = [one for one in usual if one < self.gap]
        if not smaller:
            return False
        least = _WIDER_RAISED if self.lower.is_raised else _WIDER
        return self.gap >= smaller[-1] * least and self.gap - smaller[-1] >= _WIDER_SIZES * self.lower.size


def _is_stacked(upper: DrawnLine, lower: DrawnLine) -> bool:
    gap = upper.last_baseline - lower.baseline
    size = max(upper.size, lower.size)
    is_below = _LEAST_GAP * size <= gap <= _MOST_GAP * size
    return (
        is_below
        and upper.left < lower.right
        and lower.left < upper.right
        and not (upper.is_apart or lower.is_apart)
    )


def _is_larger(one: float, two: float) -> bool:
    return max(one, two) >= min(one, two) * _LARGER


def _is_one_size(one: DrawnLine, two: DrawnLine) -> bool:
    return abs(one.size - two.size) <= max(one.size, two.size) * _SAME_SIZE


def _usual_gaps(pairs: Sequence[_Pair]) -> list[float]:
    """Return the gaps between lines of a paragraph, ascending: text may stand close here and wide there.

    Behind a line that is full the text had to break, so most lines above a usual gap are full; above the gap between two
    paragraphs few are.
    """
    kinds: list[list[_Pair]] = []
    for pair in sorted((p for p in pairs if p.is_same), key=lambda p: p.gap):
        if kinds and pair.gap <= kinds[-1][0].gap + max(0.6, kinds[-1][0].gap * _ONE_GAP):
            kinds[-1].append(pair)
        else:
            kinds.append([pair])
    least = max(3, len(pairs) // 4)
    usual = []
    for place, kind in enumerate(kinds):
        # A list's entries may fill their lines by chance: what an entry follows says nothing.
        inside = [p.is_full for p in kind if not _ITEM.match(p.lower.text)]
        is_first = place == 0 and (len(kind) > 1 or kind[0].is_full)
        if is_first or (len(inside) >= least and sum(inside) >= _MOSTLY_FULL * len(inside)):
            usual.append(sum(p.gap for p in kind) / len(kind))
    return usual


def _first_lines(pairs: Sequence[_Pair]) -> Callable[[_Pair], bool]:
    """Tell what lines that are set in mean on this page: first lines of paragraphs, or all but the first line of an entry."""
    found = [p for p in pairs if p.is_first_line]
    full = sum(p.is_full for p in found)
    is_first_line = bool(found) and full <= _MOSTLY_FULL * len(found)
    return lambda pair: not pair.is_full or is_first_line


def _set_in(upper: DrawnLine, lower: DrawnLine) -> float:
    unit = max(lower.size, 1.0)
    return (upper.right - lower.right if lower.is_rtl else lower.left - upper.left) / unit


def _is_jump(before: DrawnLine, line: DrawnLine) -> bool:
    """Tell whether a line stands elsewhere than below the one before it, in letters of one size."""
    is_beside = abs(before.last_baseline - line.baseline) < _LEAST_GAP * max(before.size, line.size)
    return (
        not (before.is_apart or line.is_apart or is_beside)
        and _is_one_size(before, line)
        and not _is_stacked(before, line)
    )


def _south_east_word(lines: Sequence[DrawnLine]) -> float:
    """Return how long the words of scripts without blanks are, in letter sizes: by the room that is left on most lines.

    A program that knows the words breaks lines between them, another one after any letter.
    """
    room = [
        _room(a, b, lines[max(0, i - _NEAR) : i + _NEAR], 0.0)[0]
        for i, (a, b) in enumerate(pairwise(lines))
        if _is_south_east(a, b) and _is_stacked(a, b) and _is_one_size(a, b)
    ]
    if len(room) < _LEAST_ROOM:
        return _SOUTH_EAST_WORD
    return min(_SOUTH_EAST_WORD, max(1.0, sorted(room)[int(len(room) * _MOSTLY_FULL)] + 0.5))


def _room(
    upper: DrawnLine, lower: DrawnLine, near: Sequence[DrawnLine], south_east: float
) -> tuple[float, float]:
    """Return how much room the upper line has left, and how much the first word of the lower one needs, in letter sizes."""
    size = max(upper.size, 1.0)
    word = lower.word
    if _EAST.match(lower.text):
        marks = _EAST_CLOSING.match(lower.text, 1)
        word = (1 + (len(marks.group()) if marks else 0)) * size
    elif _SOUTH_EAST.match(lower.text):
        word = south_east * size
    if upper.is_rtl:
        column = [line for line in near if abs(line.right - upper.right) <= 3 * size]
        edge = min((line.left for line in column if _is_like(line, upper)), default=upper.left)
        return (upper.left - edge) / size, word / size + _BLANK
    column = [line for line in near if abs(line.left - upper.left) <= 3 * size]
    edge = max((_edge(line) for line in column if _is_like(line, upper)), default=upper.right)
    return (edge - upper.right) / size, word / size + _BLANK


def _is_like(line: DrawnLine, other: DrawnLine) -> bool:
    return _is_one_size(line, other) and not line.is_apart


def _edge(line: DrawnLine) -> float:
    """Return how far a line reaches, without a mark that may hang over its end."""
    return line.right - (line.size if line.text.rstrip().endswith(_HANGING) else 0.0)


def _is_south_east(upper: DrawnLine, lower: DrawnLine) -> bool:
    return upper.is_south_east and lower.is_south_east and is_south_east(lower.text[:4])

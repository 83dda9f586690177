"""Right-to-left text of a PDF page in the order in which it is read.

PDFium gives the words of a line in reading order, but the letters of a word as its font drew them: some words come
reversed, others not, in one line. Where each letter stands on the page tells which; brackets and the full stop behind a
number come as they are seen, not as they are read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

Place = Callable[[int], float | None]
"""Gives the middle of a character of the raw text on the page, from the left; None for one that PDFium added."""

_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_DIGITS = "\u0660-\u0669\u06f0-\u06f9"
_HAS_RTL = re.compile(f"[{_RTL}]")
# A word: letters and marks, with the joiners that Persian writes inside words; figures run left to right.
_WORD = re.compile(f"(?:(?![{_DIGITS}\u060c\u061b\u061f\u066a-\u066c\u06d4])[{_RTL}\u200c\u200d])+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_STOP = re.compile(rf"(?:(?<=\s)|^)([.,:;!?]+)([\d{_DIGITS}][\d{_DIGITS}.,/:\-]*)(?=\s|$)")
_BRACKETS = re.compile(r"([)\]])(\s)([^()\[\]\r\n]*)([(\[])")
_MIRROR = {"(": ")", ")": "(", "[": "]", "]": "["}


def reading_order(raw: str, place: Place) -> tuple[str, list[int] | None]:
    """Put the letters of a page's raw text in reading order.

    Args:
        raw: the text as PDFium gives it.
        place: where a character stands.

    Returns:
        The text, as long as before, and for each of its characters the offset in ``raw``; None where nothing changed.
    """
    if not _HAS_RTL.search(raw):
        return raw, None
    text = list(raw)
    order = list(range(len(raw)))
    for word in _WORD.finditer(raw):
        if _is_reversed(word.start(), word.end(), place):
            start, end = word.span()
            text[start:end] = _reversed(raw[start:end])
            order[start:end] = _reversed_order(raw, start, end)
    start = 0
    for line in re.split("(\r\n|\n|\r)", "".join(text)):
        end = start + len(line)
        if len(_HAS_RTL.findall(line)) > len(_LATIN.findall(line)):
            _line_order(text, order, start, end)
        start = end
    return "".join(text), order


def _is_reversed(start: int, end: int, place: Place) -> bool:
    """Tell whether the letters of a word run from left to right, which none of these scripts does."""
    places = [x for x in (place(i) for i in range(start, end)) if x is not None]
    if len(places) < 2:
        return False
    forward = sum(1 for a, b in itertools.pairwise(places) if b > a)
    backward = sum(1 for a, b in itertools.pairwise(places) if b < a)
    return forward > backward


def _clusters(raw: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a word into letters with the marks that stand on them: a mark follows its letter in both directions."""
    import unicodedata

    found: list[tuple[int, int]] = []
    for i in range(start, end):
        if found and unicodedata.combining(raw[i]):
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found


def _reversed_order(raw: str, start: int, end: int) -> list[int]:
    return [i for a, b in reversed(_clusters(raw, start, end)) for i in range(a, b)]


def _reversed(word: str) -> list[str]:
    return [word[i] for i in _reversed_order(word, 0, len(word))]


def _line_order(text: list[str], order: list[int], start: int, end: int) -> None:
    """Mend full stops before numbers and brackets that are seen mirrored, in one line."""
    line = "".join(text[start:end])
    for match in _STOP.finditer(line):
        a, middle, b = (start + match.start(), start + match.end(1), start + match.end())
        text[a:b] = text[middle:b] + text[a:middle]
        order[a:b] = order[middle:b] + order[a:middle]
    line = "".join(text[start:end])
    opened_before = [0, *itertools.accumulate((ch in "([") - (ch in ")]") for ch in line)]
    for match in _BRACKETS.finditer(line):
        if opened_before[match.start()] > 0:
            continue  # it closes what was opened: the line's brackets come as they are read
        a, b = start + match.start(), start + match.end() - 1
        text[a], text[a + 1] = text[a + 1], _MIRROR[text[a]]
        order[a], order[a + 1] = order[a + 1], order[a]
        text[b] = _MIRROR[text[b]]
    # ")a( first": nothing was opened that the first one could close, so that both are seen mirrored.
    opened: list[int] = []
    closed = -1
    for i in range(start, end):
        if text[i] in "([":
            if closed >= 0:
                text[closed], text[i] = _MIRROR[text[closed]], _MIRROR[text[i]]
                closed = -1
            else:
                opened.append(i)
        elif text[i] in ")]":
            if opened:
                opened.pop()
            else:
                closed = i

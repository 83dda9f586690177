"""Right-to-left text of a PDF page in the order in which it is read.

PDFium gives the words of a line in reading order, but the letters of a word as its font drew them: some words come
reversed, others not, in one line. Where each letter stands on the page tells which; brackets and the full stop behind a
number come as they are seen, not as they are read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from apps.collections.ingestion.readers.pdf_breaks import Box, Where, is_apart, is_beside

Place = Callable[[int], float | None]
"""Gives the middle of a character of the raw text on the page, from the left; None for one that PDFium added."""

_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_DIGITS = "\u0660-\u0669\u06f0-\u06f9"
_HAS_RTL = re.compile(f"[{_RTL}]")
# A word: letters and marks, with the joiners that Persian writes inside words; figures run left to right.
_WORD = re.compile(f"(?:(?![{_DIGITS}\u060c\u061b\u061f\u066a-\u066c\u06d4])[{_RTL}\u200c\u200d])+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_STOP = re.compile(rf"(?:(?<=\s)|^)([.,:;!?\u060c\u061b]+)([\d{_DIGITS}][\d{_DIGITS}.,/:\-]*)(?=\s|$)")
_BRACKETS = re.compile(r"([)\]»])(\s)([^()\[\]«»\r\n]*)([(\[«])")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_MIRROR = {"(": ")", ")": "(", "[": "]", "]": "[", "«": "»", "»": "«"}
_OPENING, _CLOSING = "([«", ")]»"


def reading_order(raw: str, place: Place, where: Where | None = None) -> tuple[str, list[int] | None]:
    """Put the letters of a page's raw text in reading order.

    Args:
        raw: the text as PDFium gives it.
        place: where a character stands.
        where: gives a character's box, for lines that PDFium cuts at a raised mark; without it those stay as they came.

    Returns:
        The text, and for each of its characters the offset in ``raw``; None where nothing changed.
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
    if where is not None:
        text, order = _whole_lines(text, order, where)
    start = 0
    for line in re.split("(\r\n|\n|\r)", "".join(text)):
        end = start + len(line)
        if len(_HAS_RTL.findall(line)) > len(_LATIN.findall(line)):
            _line_order(text, order, start, end)
        start = end
    return "".join(text), order


def _whole_lines(text: list[str], order: list[int], where: Where) -> tuple[list[str], list[int]]:
    """Join the pieces of one line: PDFium cuts it at a raised mark and gives the piece on the left first."""
    lines: list[list[_Piece]] = []
    for match in _LINE.finditer("".join(text)):
        piece = _Piece(*match.span(1), match.span(2), _box_of(order[match.start(1) : match.end(1)], where))
        if lines and any(is_beside(one.box, piece.box) or is_beside(piece.box, one.box) for one in lines[-1]):
            lines[-1].append(piece)
        else:
            lines.append([piece])
    if all(len(line) == 1 for line in lines):
        return text, order
    kept, places = list[str](), list[int]()
    for line in lines:
        end = line[-1].end
        said = "".join("".join(text[one.start : one.stop]) for one in line)
        is_rtl = len(_HAS_RTL.findall(said)) > len(_LATIN.findall(said))
        if len(line) > 1:
            line.sort(key=lambda one: (-one.box[2] if is_rtl else one.box[0]) if one.box else 0.0)
        for before, one in zip([None, *line], line, strict=False):
            if before is not None and is_apart(before.box, one.box):
                kept.append(" ")
                places.append(order[one.start])
            kept += text[one.start : one.stop]
            places += order[one.start : one.stop]
        kept += text[slice(*end)]
        places += order[slice(*end)]
    return kept, places


class _Piece(NamedTuple):
    """A line as PDFium gives it: where its words and its end stand in the text, and its box on the page."""

    start: int
    stop: int
    end: tuple[int, int]
    box: Box | None


def _box_of(places: Sequence[int], where: Where) -> Box | None:
    boxes = [box for at in places if (box := where(at)) is not None and box[2] > box[0]]
    if not boxes:
        return None
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


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
    opened_before = [0, *itertools.accumulate((ch in _OPENING) - (ch in _CLOSING) for ch in line)]
    for match in _BRACKETS.finditer(line):
        if match[4] != _MIRROR[match[1]] or opened_before[match.start()] > 0:
            continue  # it closes what was opened: the line's brackets come as they are read
        a, b = start + match.start(), start + match.end() - 1
        text[a], text[a + 1] = text[a + 1], _MIRROR[text[a]]
        order[a], order[a + 1] = order[a + 1], order[a]
        text[b] = _MIRROR[text[b]]
    # ")a( first": nothing was opened that the first one could close, so that both are seen mirrored.
    opened: list[int] = []
    closed = -1
    for i in range(start, end):
        if text[i] in _OPENING:
            if closed >= 0 and text[i] == _MIRROR[text[closed]]:
                text[closed], text[i] = _MIRROR[text[closed]], _MIRROR[text[i]]
                closed = -1
            else:
                opened.append(i)
        elif text[i] in _CLOSING:
            if opened:
                opened.pop()
            else:
                closed = i

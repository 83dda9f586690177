"""The lines of a page's text with what its look says about them. Pure.

A raised number is a plain digit in the text ("free?3 It"). Here it becomes the superscript digit that it is on the page, so
that whoever cuts sentences knows it for a note's mark in any script; offsets stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from apps.collections.ingestion.types import PageMarks
from apps.collections.quotes.paragraphs import PageLine

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_OTHER = "†"  # any other mark between the digits: one that belongs to notes


class MarkedLines:
    """Gives lines with their marks.

    Args:
        marks: of the pages that the text is of, with offsets into the document's text, in order.
    """

    def __init__(self, marks: Iterable[PageMarks | None]) -> None:
        known = [one for one in marks if one is not None]
        self._begins = frozenset(at for one in known for at in one.begins)
        self._goes_on = frozenset(at for one in known for at in one.goes_on)
        self._raised = sorted(span for one in known for span in one.raised)

    def lines(self, text: str, base: int, low: int, high: int, *, is_first: bool) -> Iterator[PageLine]:
        """Yield the lines of a stretch.

        Args:
            text: the document's text from ``base``.
            low: where the stretch begins in the document's text.
            high: just past its end.
            is_first: nothing stands before it.
        """
        at = low
        for number, line in enumerate(text[low - base : high - base].split("\n")):
            yield PageLine(
                at,
                self._shown(line, at),
                follows_gap=number == 0 and not is_first,
                begins=at in self._begins,
                goes_on=at in self._goes_on,
            )
            at += len(line) + 1

    def _shown(self, line: str, at: int) -> str:
        for start, end in self._raised[bisect_left(self._raised, (at, at)) :]:
            if start >= at + len(line):
                break
            low, high = start - at, end - at
            shown = line[low:high].translate(_RAISED)
            line = line[:low] + "".join(c if c in "⁰¹²³⁴⁵⁶⁷⁸⁹" else _OTHER for c in shown) + line[high:]
        return line

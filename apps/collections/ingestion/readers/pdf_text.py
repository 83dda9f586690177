"""Clean the text PDFium gives for a page, and remember where each cleaned character came from."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from apps.collections.ingestion.readers.pdf_breaks import Where, false_breaks
from apps.collections.ingestion.readers.pdf_rtl import Place, reading_order
from apps.collections.ingestion.readers.pdf_spaced import SPACED, spaced_blanks

# PDFium writes U+FFFE for a hyphen at a line end and joins the lines there, whether the hyphen belongs to the word or not.
_LINE_HYPHEN = "\ufffe"
_FORMS = "\ufb00-\ufb06\ufb1d-\ufdfb\ufe70-\ufefc"
"""Ligatures and letters in the shape that their place in a word gives them: search knows the plain letters."""
_EDIT = re.compile(
    f"[ \t]*\r\n|[ \t]+\n|\r|\ufffe|\u00ad|[{_FORMS}]|[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ud800-\udfff\uffff]+"
)
_AROUND = re.compile(r"[^\W_]*\Z"), re.compile(r"[^\W_]*")
_WORD = re.compile(r"[^\W\d_]+")
_BROKEN_WORD = re.compile("[^\\W_]*\ufffe\\s*[^\\W_]*")
_MIN_PART = 4


@dataclass(frozen=True, slots=True)
class CleanPage:
    """Cleaned text and how it lines up with PDFium's.

    Attributes:
        text: the page's text as stored.
        clean_starts: ascending offsets into ``text`` where a run copied unchanged begins.
        raw_starts: for each of them the offset into the raw text.
        order: of right-to-left text, for each character in reading order its offset in the raw text.
    """

    text: str
    clean_starts: tuple[int, ...]
    raw_starts: tuple[int, ...]
    order: tuple[int, ...] | None = None

    def raw_offset(self, offset: int) -> int:
        """Map an offset of the cleaned text to the raw text."""
        i = max(0, bisect_right(self.clean_starts, offset) - 1)
        found = self.raw_starts[i] + offset - self.clean_starts[i]
        if self.order is None:
            return found
        return self.order[min(found, len(self.order) - 1)]


def clean_page(raw: str, place: Place | None = None, where: Where | None = None) -> CleanPage:
    """Clean a page: ``\\n`` newlines without blanks before them, no control codes, line-end hyphens resolved.

    Args:
        raw: PDFium's text of the page.
        place: tells where a character stands, for right-to-left text; without it that stays as it came.
        where: gives a character's box, for line breaks inside of lines; without it those stay.

    The result depends on this page's text alone, so that a later call for highlighting finds the same offsets.
    """
    order: list[int] | None = None
    if place is not None:
        raw, order = reading_order(raw, place, where)
    pieces: list[str] = []
    clean_starts: list[int] = []
    raw_starts: list[int] = []
    position = length = 0
    words: frozenset[str] | None = None
    joined = false_breaks(raw, where) if where is not None and order is None else {}
    for start, end in _edits(raw, place if order is None else None, joined):
        if start > position:
            pieces.append(raw[position:start])
            clean_starts.append(length)
            raw_starts.append(position)
            length += start - position
        found = raw[start:end]
        if (start, end) in joined:
            new = joined[start, end]
        elif "\n" in found or found == "\r":
            new = "\n"
        elif found == " ":
            new = ""
        elif found[0] >= "\ufb00" and found[0] < "\uff00":
            new = unicodedata.normalize("NFKC", found)
        elif found == _LINE_HYPHEN:
            if words is None:
                whole = _BROKEN_WORD.sub(" ", raw)
                words = frozenset(w.lower() for w in _WORD.findall(whole))
            new = _resolve_hyphen(raw, start, end, words)
        else:
            new = ""
        if new:
            pieces.append(new)
            clean_starts.append(length)
            raw_starts.append(start)
            length += len(new)
        position = end
    if position < len(raw):
        pieces.append(raw[position:])
        clean_starts.append(length)
        raw_starts.append(position)
    return CleanPage(
        "".join(pieces),
        tuple(clean_starts) or (0,),
        tuple(raw_starts) or (0,),
        None if order is None else tuple(order),
    )


def _edits(raw: str, place: Place | None, joined: Mapping[tuple[int, int], str]) -> list[tuple[int, int]]:
    """List what is replaced or left out, as offsets in ascending order."""
    found = [match.span() for match in _EDIT.finditer(raw)]
    if joined:
        found = [span for span in found if not any(a < span[1] and span[0] < b for a, b in joined)]
        found = sorted([*found, *joined])
    if place is None or SPACED.search(raw) is None:
        return found
    return sorted([*found, *((at, at + 1) for at in spaced_blanks(raw, place))])


def _resolve_hyphen(raw: str, start: int, end: int, words: frozenset[str]) -> str:
    """Decide whether a hyphen at a line end stays.

    It stays next to digits, capitals and non-letters (codes, ranges, compounds of names), and between two words
    that both stand alone on this page while their union does not; otherwise it was typesetting and goes.
    """
    before = raw[max(0, start - 60) : start]
    after = raw[end : end + 60].lstrip("\r\n")
    left_match, right_match = _AROUND[0].search(before), _AROUND[1].match(after)
    left = left_match.group() if left_match else ""
    right = right_match.group() if right_match else ""
    return "-" if hyphen_stays(left, right, words) else ""


def hyphen_stays(left: str, right: str, words: AbstractSet[str]) -> bool:
    """Tell whether the hyphen at a line's end belongs to the word it cuts.

    Args:
        left: letters and digits before it.
        right: those that begin the next line.
        words: of the page, in small letters, without those that lines cut.
    """
    if not left or not right or not (left.isalpha() and right.isalpha()) or right[0].isupper():
        return True
    joined, left, right = (left + right).lower(), left.lower(), right.lower()
    if joined in words:
        return False
    return min(len(left), len(right)) >= _MIN_PART and left in words and right in words

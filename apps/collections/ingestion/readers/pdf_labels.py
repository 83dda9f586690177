"""What is printed beside a field of a form: its label, where the file names the field for programs only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from apps.collections.ingestion.readers.base import clean_text

Rect = tuple[float, float, float, float]
"""Left, bottom, right and top in points, in the page's own coordinates."""

_MOST = 3_000  # pieces of text of one page
_LEFT = 150.0  # points from a label to its field beside it
_RIGHT = 24.0  # from a box to tick to what it stands for
_ABOVE = 14.0  # from a label's foot to the field below it
_INTO = 3.0  # that a field's frame reaches over its label
_GOES_ON = 0.8  # heights of a piece between it and the next one of the same label
_LONGEST = 160
_TRIMMED = " \t\n:.…_*-–"


class _Piece(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float
    text: str


class PageLabels:
    """The printed text of a page, asked field by field.

    Args:
        textpage: PDFium's text of the page.
        fields: where all fields of the page stand.
    """

    def __init__(self, textpage: Any, fields: Sequence[Rect]) -> None:
        self._fields = fields
        self._pieces: list[_Piece] = []
        for index in range(min(_MOST, int(textpage.count_rects()))):
            left, bottom, right, top = textpage.get_rect(index)
            for begin, end in self._parts((left, bottom, right, top)):
                text = clean_text(textpage.get_text_bounded(begin, bottom, end, top, errors="ignore"))
                if text.strip() and top > bottom:
                    self._pieces.append(_Piece(begin, bottom, end, top, " ".join(text.split())))

    def _parts(self, printed: Rect) -> list[tuple[float, float]]:
        """Cut a piece of text where fields stand on it: "Name: ______ Date: ______" holds two labels."""
        left, bottom, right, top = printed
        middle = (bottom + top) / 2
        parts = []
        for field in sorted(self._fields):
            if field[1] < middle < field[3] and field[0] < right and left < field[2]:
                if field[0] > left:
                    parts.append((left, field[0]))
                left = max(left, field[2])
        return [*parts, (left, right)] if left < right else parts

    def beside(self, field: Rect) -> str:
        """Return what stands on the left of a field, on its line; "" if nothing does, or another field comes first."""
        left, bottom, _, top = field
        near = [
            piece
            for piece in self._pieces
            if _is_level(piece, bottom, top)
            and piece.right <= left + _INTO
            and left - piece.right <= _LEFT
            and not self._is_parted(piece.right, left, field)
        ]
        # Of a field of several lines the first one has the label.
        return self._whole(min(near, key=lambda p: left - p.right - p.top * 0.1)) if near else ""

    def behind(self, field: Rect) -> str:
        """Return what stands on the right of a box to tick."""
        _, bottom, right, top = field
        near = [
            piece
            for piece in self._pieces
            if _is_level(piece, bottom, top)
            and -_INTO <= piece.left - right <= _RIGHT
            and not self._is_parted(right, piece.left, field)
        ]
        return self._whole(min(near, key=lambda p: p.left)) if near else ""

    def above(self, field: Rect) -> str:
        """Return what stands over a field, or over the column of fields that it stands in."""
        for _ in range(len(self._fields) + 1):
            left, _, right, top = field
            near = [
                piece
                for piece in self._pieces
                if -_INTO <= piece.bottom - top <= _ABOVE and left - _INTO * 2 <= piece.left < right
            ]
            if near:
                return self._whole(min(near, key=lambda p: (p.bottom, p.left)))
            over = [
                other
                for other in self._fields
                if -_INTO <= other[1] - top <= _ABOVE and other[3] > top and abs(other[0] - left) <= _INTO
            ]
            # Fields below each other are a table only where others stand beside them.
            if not over or not any(_is_row(field, other) for other in self._fields):
                return ""
            field = min(over, key=lambda other: other[1])
        return ""

    def _is_parted(self, begin: float, end: float, field: Rect) -> bool:
        """Tell whether another field stands between two places on a field's line."""
        _, bottom, _, top = field
        return any(
            other != field
            and min(top, other[3]) - max(bottom, other[1]) > (top - bottom) / 2
            and begin - _INTO <= (other[0] + other[2]) / 2 <= end + _INTO
            for other in self._fields
        )

    def _whole(self, piece: _Piece) -> str:
        """Add the pieces that go on on both sides: a label's bold word is a piece of its own."""
        label = [piece]
        while (more := self._next(label[0], is_left=True)) is not None:
            label.insert(0, more)
        while (more := self._next(label[-1], is_left=False)) is not None:
            label.append(more)
        text = " ".join(one.text for one in label).strip(_TRIMMED)
        return text[:_LONGEST] if any(ch.isalpha() for ch in text) else ""

    def _next(self, piece: _Piece, *, is_left: bool) -> _Piece | None:
        height = piece.top - piece.bottom
        for other in self._pieces:
            gap = piece.left - other.right if is_left else other.left - piece.right
            is_further = other.left < piece.left if is_left else other.left > piece.left
            begin, end = (other.right, piece.left) if is_left else (piece.right, other.left)
            if (
                other is not piece
                and is_further
                and -0.2 * height <= gap <= _GOES_ON * height
                and _is_level(other, piece.bottom, piece.top)
                and not self._is_parted(begin, end, (begin, piece.bottom, end, piece.top))
            ):
                return other
        return None


def _is_row(field: Rect, other: Rect) -> bool:
    """Tell whether two fields stand beside each other."""
    return (other[0] >= field[2] or other[2] <= field[0]) and other[1] < (field[1] + field[3]) / 2 < other[3]


def _is_level(piece: _Piece, bottom: float, top: float) -> bool:
    """Tell whether the middle of a piece stands between two heights."""
    return bottom - 2 <= (piece.bottom + piece.top) / 2 <= top + 2

"""Two answers word by word: what only A says, and what only B says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS = 3_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an answer; ``is_own`` where the other answer has not got it."""

    text: str
    is_own: bool


def word_diff(a: str, b: str) -> tuple[list[Piece], list[Piece]]:
    """Return both answers in pieces. Very long ones are shown without differences, as the search for them would take long."""
    first, second = _WORDS.findall(a), _WORDS.findall(b)
    if len(first) + len(second) > _MOST_WORDS:
        return [Piece(a, False)], [Piece(b, False)]
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, i, j, k, m in matcher.get_opcodes():
        _add(left, "".join(first[i:j]), kind != "equal")
        _add(right, "".join(second[k:m]), kind != "equal")
    return _joined(left), _joined(right)


def _add(pieces: list[Piece], text: str, is_own: bool) -> None:
    if text:
        pieces.append(Piece(text, is_own))


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with a space between two own ones as part of them, so that phrases are marked and not words."""
    found: list[Piece] = []
    for place, piece in enumerate(pieces):
        around = [p.is_own for p in (*pieces[max(0, place - 1) : place], *pieces[place + 1 : place + 2])]
        is_own = piece.is_own or (not piece.text.strip() and around == [True, True])
        if found and found[-1].is_own == is_own:
            found[-1] = Piece(found[-1].text + piece.text, is_own)
        else:
            found.append(Piece(piece.text, is_own))
    return found

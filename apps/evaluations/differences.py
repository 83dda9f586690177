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
        _add(left, first[i:j], kind != "equal")
        _add(right, second[k:m], kind != "equal")
    return left, right


def _add(pieces: list[Piece], words: Sequence[str], is_own: bool) -> None:
    text = "".join(words)
    if not text:
        return
    if pieces and pieces[-1].is_own == (is_own and bool(text.strip())):
        pieces[-1] = Piece(pieces[-1].text + text, pieces[-1].is_own)
    else:
        pieces.append(Piece(text, is_own and bool(text.strip())))

"""From the parser's byte offsets to characters and lines of the text."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right

_MULTIBYTE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
_NEWLINE = re.compile("\n")


class Offsets:
    """Converts offsets of one text; free where the text is ASCII."""

    def __init__(self, text: str, data: bytes) -> None:
        self._newlines = array("q", (m.start() for m in _NEWLINE.finditer(text)))
        self._ends = array("q")
        self._extra = array("q", [0])
        if not text.isascii():
            extra = 0
            for match in _MULTIBYTE.finditer(data):
                extra += match.end() - match.start() - 1
                self._ends.append(match.end())
                self._extra.append(extra)

    def char(self, byte: int) -> int:
        """Return the character that a byte offset (at a character's first byte) stands for."""
        return byte - self._extra[bisect_right(self._ends, byte)] if self._ends else byte

    def line(self, char: int) -> int:
        """Return the line, from 1, of a character."""
        return bisect_left(self._newlines, char) + 1

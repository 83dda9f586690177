"""What stands directly above a definition and belongs to it: comments, attributes, decorators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.collections.ingestion.code.describe import MAX_NAME

if TYPE_CHECKING:
    from tree_sitter import Node

_BLANK = b" \t\n\r\f\v"
_MAX_ABOVE = 400  # comments and attributes above one definition
_REACH = 400  # bytes looked back over for the start of a line
_LEGAL = ("copyright", "license", "licence")


@dataclass(frozen=True, slots=True)
class Lead:
    """``start`` is the byte where the definition with everything above it begins."""

    start: int
    comments: list[str]
    marks: tuple[str, ...]


class Leading:
    """Finds the comments and attributes that end right before an offset; each question costs what it finds."""

    def __init__(self, data: bytes, notes: list[Node], marks: list[Node], *, is_rust: bool = False) -> None:
        self._data = data
        self._ends: dict[int, tuple[int, bool]] = {}
        for nodes, is_mark in ((notes, False), (marks, True)):
            for node in nodes:
                end = node.end_byte
                if is_rust and data[end - 1 : end] == b"\n":
                    end -= 1  # Rust's doc comments take their line's end along
                self._ends[end] = (node.start_byte, is_mark)
        self._first = min((node.start_byte for node in notes), default=-1)

    def before(self, start: int) -> Lead:
        """Collect what stands above the definition that starts at a byte; a blank line ends it."""
        comments: list[str] = []
        marks: list[str] = []
        for _ in range(_MAX_ABOVE):
            end = self._skip_blanks(start)
            found = self._ends.get(end)
            if found is None:
                break
            begin, is_mark = found
            if self._data.count(b"\n", end, start) > 1 and not is_mark:
                break
            if not is_mark and not self._starts_line(begin):
                break
            said = self._data[begin:end].decode(errors="ignore")
            (marks if is_mark else comments).append(said[:MAX_NAME] if is_mark else said)
            start = begin
        return Lead(start, comments[::-1], tuple(marks[::-1]))

    def opening(self) -> list[str]:
        """Return the comments that open the file, [] when they are only about rights."""
        if self._first < 0 or self._data[: self._first].strip():
            return []
        begins = {begin: end for end, (begin, is_mark) in self._ends.items() if not is_mark}
        comments: list[str] = []
        position = self._first
        while position in begins and len(comments) < _MAX_ABOVE:
            end = begins[position]
            comments.append(self._data[position:end].decode(errors="ignore"))
            rest = self._data[end : end + _REACH]
            position = end + len(rest) - len(rest.lstrip(_BLANK))
            if rest[: position - end].count(b"\n") > 1:
                break
        said = "\n".join(comments).lower()
        return [] if any(word in said for word in _LEGAL) else comments

    def _skip_blanks(self, start: int) -> int:
        near = self._data[max(0, start - _REACH) : start]
        return start - (len(near) - len(near.rstrip(_BLANK)))

    def _starts_line(self, begin: int) -> bool:
        near = self._data[max(0, begin - _REACH) : begin]
        return not near[near.rfind(b"\n") + 1 :].strip()

"""What people wrote for people in source code: comments and docstrings as lines of prose, everything else as lines. Pure.

By the marks alone, for every language: a chunk comes with only a stretch of its file, which no parser reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apps.collections.quotes.paragraphs import PageLine

# "#include" and "--option" are no comments: a blank follows the mark.
_COMMENT = re.compile(r"[ \t]*(?:/{2,3}!?|#{1,6}|--)(?:[ \t]+|(?=\n|\Z))")
_BLOCK_OPEN = re.compile(r"[ \t]*/\*+!?[ \t]*")
_BLOCK_LEAD = re.compile(r"[ \t]*(?:\*(?!/)[ \t]?)?[ \t]*")
# What is left of a block when its begin is not there: lines that begin with a star, down to its end.
_REST_OF_BLOCK = re.compile(r"(?:[^\n]*\n)?(?:[ \t]*\*(?!/)[^\n]*\n)*[ \t]*\*(?:/|[^\n]*\*/)[ \t]*(?:\n|\Z)")
_TRIPLE = re.compile(r"\"\"\"|'''")
_DOC_OPEN = re.compile(r"[ \t]*[rRuU]?(\"\"\"|''')[ \t]*")
# An entry of what is documented: "size: in bytes.", "@param size in bytes", ":param size: in bytes".
_ENTRY = re.compile(
    r"(?:@\w+\s|:\w+[^:\n]{0,60}:\s|"
    r"\*{0,2}\w[\w.]{0,40}(?:, \w[\w.]{0,40}){0,5}(?:\s?\([^()\n]{0,60}\))?:(?:\s|\Z))"
)
_RULE = re.compile(r"[\W_]*\Z")


@dataclass(frozen=True, slots=True)
class CodePiece:
    """A line of code, or the lines of one paragraph of a comment.

    Attributes:
        lines: with offsets in the text; without the marks of the comment.
        marks: (start, end) of what stands before each line and is no part of it.
    """

    is_prose: bool
    lines: tuple[PageLine, ...]
    marks: tuple[tuple[int, int], ...] = ()


def code_pieces(text: str, start: int) -> Iterator[CodePiece]:
    """Cut a stretch of source code into lines of code and paragraphs of comments; blank lines are in none.

    Args:
        start: where ``text`` begins in the document.
    """
    lines: list[PageLine] = []
    marks: list[tuple[int, int]] = []
    for begun, line, said in _lines(text):
        is_end = said is None or _RULE.match(line, *said) is not None
        if lines and (is_end or (said is not None and _ENTRY.match(line, *said))):
            yield CodePiece(True, tuple(lines), tuple(marks))
            lines, marks = [], []
        if said is not None and not is_end:
            lines.append(PageLine(start + begun + said[0], line[said[0] : said[1]]))
            marks.append((start + begun, start + begun + said[0]))
        elif said is None and line.strip():
            yield CodePiece(False, (PageLine(start + begun, line),))
    if lines:
        yield CodePiece(True, tuple(lines), tuple(marks))


def _lines(text: str) -> Iterator[tuple[int, str, tuple[int, int] | None]]:
    """Yield each line with its offset, and where in it the words of a comment stand, None in a line of code."""
    inside = _begins_inside(
        text
    )  # the mark that ends what is inside: of a docstring, of a block, of other strings
    is_doc = bool(inside)
    at = 0
    before = ""
    for line in text.split("\n"):
        said: tuple[int, int] | None = None
        if inside == "*/":
            end = line.find("*/")
            lead = _BLOCK_LEAD.match(line)
            low = lead.end() if lead else 0
            said = (min(low, end) if end >= 0 else low, end if end >= 0 else len(line))
            inside = "" if end >= 0 else inside
        elif inside:
            end = line.find(inside)
            indent = len(line) - len(line.lstrip())
            high = end if end >= 0 else len(line)
            said = (min(indent, high), high) if is_doc else None
            inside = "" if end >= 0 else inside
        elif (found := _COMMENT.match(line)) is not None:
            said = (found.end(), len(line))
        elif (found := _BLOCK_OPEN.match(line)) is not None:
            end = line.find("*/", found.end())
            if end < 0 or not line[end + 2 :].strip():
                said = (found.end(), end if end >= 0 else len(line))
            inside = "" if end >= 0 else "*/"
        elif (found := _DOC_OPEN.match(line)) is not None and _opens_doc(before):
            end = line.find(found[1], found.end())
            if end < 0 or not line[end + 3 :].strip():
                said = (found.end(), end if end >= 0 else len(line))
            inside, is_doc = ("" if end >= 0 else found[1]), True
        elif len(marks := _TRIPLE.findall(line)) % 2:
            inside, is_doc = marks[-1], False
        yield at, line, said
        at += len(line) + 1
        before = line if line.strip() else before


def _opens_doc(before: str) -> bool:
    """Tell whether a string on its own line documents what the line before begins: it is no argument of a call."""
    return not before.rstrip().endswith(("(", "[", "{", ",", "=", "\\"))


def _begins_inside(text: str) -> str:
    """Return what ends the comment or docstring that a stretch begins in, "" where it begins in code."""
    if _REST_OF_BLOCK.match(text):
        return "*/"
    first = _TRIPLE.search(text)
    if first is None:
        return ""
    line_start = text.rfind("\n", 0, first.start()) + 1
    lead = text[line_start : first.start()].strip()
    behind = text[first.end() : text.find("\n", first.end()) % (len(text) + 1)].strip()
    before = text[:line_start].rstrip()
    if lead in ("", "r", "R"):
        return "" if behind or not before or before.endswith(":") else first.group()
    # Words before a mark that ends its line: a sentence's end, no assignment or call.
    return first.group() if not behind and not lead.endswith(("(", "=", "[", ",", "f", "r", "b")) else ""

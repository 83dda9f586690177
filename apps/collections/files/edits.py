"""Edits of a text: by lines as the editor saw them, and by exact text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from basics.errors import Conflict, Invalid

Kind = Literal["insert", "replace_lines", "delete_lines", "replace_text"]
MAX_EDITS = 200


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One edit.

    Attributes:
        kind: what is done.
        text: what is put there.
        line: the first line, from 1; for an insert the line that the text goes before, one more than there are to append.
        end_line: the last line, inclusive; 0 for ``line`` itself.
        old: for ``replace_text``: exactly what is to go, with its line ends.
        count: how often ``old`` must occur; all of them are replaced.
    """

    kind: Kind
    text: str = ""
    line: int = 0
    end_line: int = 0
    old: str = ""
    count: int = 1


def text_edit(text: str, edits: Sequence[TextEdit], *, path: str) -> str:
    """Return the text with all edits made.

    Line numbers are those of ``text``, whatever the other edits do. Replacements of exact text come after them, in order.

    Args:
        text: with "\\n" as line ends.
        path: for messages.

    Raises:
        Invalid: ``edit_invalid``: lines that are not there, or edits that overlap.
        Conflict: ``text_not_found``: the exact text is there more or less often than said.
    """
    if not 1 <= len(edits) <= MAX_EDITS:
        raise Invalid("edit_invalid", f"Make 1 to {MAX_EDITS} edits per file at a time.")
    by_line = [edit for edit in edits if edit.kind != "replace_text"]
    changed = _lines_edit(text, by_line, path) if by_line else text
    for edit in edits:
        if edit.kind == "replace_text":
            changed = _text_replace(changed, edit, path)
    return changed


def _lines_edit(text: str, edits: Sequence[TextEdit], path: str) -> str:
    lines = text.split("\n")
    has_end = lines[-1] == ""
    if has_end:
        lines.pop()
    spans = sorted((_span(edit, len(lines), path), number) for number, edit in enumerate(edits))
    for ((_, end), _), ((start, _), _) in pairwise(spans):
        if start < end:
            raise Invalid("edit_invalid", f"Two edits of “{path}” touch line {start + 1}.")
    for (start, end), number in reversed(spans):
        edit = edits[number]
        new = [] if edit.kind == "delete_lines" else _text_lines(edit.text)
        lines[start:end] = new
    if not lines:
        return ""
    return "\n".join(lines) + ("\n" if has_end or not text else "")


def _text_lines(text: str) -> list[str]:
    clean = text.replace("\r\n", "\n").replace("\r", "\n")
    return clean.removesuffix("\n").split("\n")


def _span(edit: TextEdit, count: int, path: str) -> tuple[int, int]:
    """Return the lines an edit takes away, from 0, as a half-open range."""
    if edit.kind == "insert":
        if not 1 <= edit.line <= count + 1:
            raise Invalid("edit_invalid", f"“{path}” has {count} lines: insert before line 1 to {count + 1}.")
        return edit.line - 1, edit.line - 1
    end = edit.end_line or edit.line
    if not 1 <= edit.line <= end <= count:
        raise Invalid("edit_invalid", f"“{path}” has {count} lines; there is no range {edit.line} to {end}.")
    return edit.line - 1, end


def _text_replace(text: str, edit: TextEdit, path: str) -> str:
    old = edit.old.replace("\r\n", "\n")
    if not old:
        raise Invalid("edit_invalid", "Say which text to replace (old).")
    found = text.count(old)
    if found != edit.count:
        raise Conflict(
            "text_not_found",
            f"The text is {found} times in “{path}”, not {edit.count} time(s). Read the file again, and give more of the "
            "lines around it, or the right count.",
            data={"path": path, "found": found},
        )
    return text.replace(old, edit.text.replace("\r\n", "\n"))

"""How a file's text looks on a page: coloured by its language, and differences in rows."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from apps.collections.tree.text import FileText

_COLOURED = 200_000
_LONG_LINE = 2_000
MAX_ROWS = 3_000
_MAX_LINES = 20_000
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of a difference, both sides; ``kind`` is same, change, add, remove or gap."""

    kind: str
    old_number: int | None = None
    old: str = ""
    new_number: int | None = None
    new: str = ""


@dataclass(frozen=True, slots=True)
class DiffRows:
    """A difference for the page; ``note`` says what is not shown."""

    rows: list[DiffRow]
    added: int
    removed: int
    note: str = ""


def highlighted(text: str, path: str) -> SafeString:
    """Return a text as HTML with Pygments' classes; plain where its language is unknown or it is long."""
    lines_long = any(len(line) > _LONG_LINE for line in text.split("\n"))
    if len(text) > _COLOURED or lines_long:
        return escape(text)
    try:
        lexer = get_lexer_for_filename(path.rsplit("/", 1)[-1], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(text)
    # Pygments escapes what it is given and adds spans with classes alone.
    html: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return mark_safe(html)  # noqa: S308


def diff_rows(before: FileText, after: FileText) -> DiffRows:
    """Return the changed lines with three lines around them, side by side."""
    old, new = before.lines, after.lines
    if max(len(old), len(new)) > _MAX_LINES:
        return DiffRows(
            [], 0, 0, _("Texts of more than %(most)s lines are not compared here.") % {"most": _MAX_LINES}
        )
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) > 2000)
    rows: list[DiffRow] = []
    added = removed = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if group[0][1] > 0 or group[0][3] > 0:
            rows.append(DiffRow("gap", group[0][1] + 1, "", group[0][3] + 1))
        for tag, old_start, old_end, new_start, new_end in group:
            if tag != "equal":
                removed += old_end - old_start
                added += new_end - new_start
            for index in range(max(old_end - old_start, new_end - new_start)):
                left, right = old_start + index, new_start + index
                has_left, has_right = left < old_end, right < new_end
                kind = "same" if tag == "equal" else "change"
                if kind == "change" and not (has_left and has_right):
                    kind = "remove" if has_left else "add"
                rows.append(
                    DiffRow(
                        kind,
                        left + 1 if has_left else None,
                        old[left] if has_left else "",
                        right + 1 if has_right else None,
                        new[right] if has_right else "",
                    )
                )
    note = _("Only the first %(most)s rows are shown.") % {"most": MAX_ROWS} if len(rows) > MAX_ROWS else ""
    return DiffRows(rows[:MAX_ROWS], added, removed, note)

"""Line breaks that PDFium sets where the line goes on: before and after raised or lowered marks."""

from __future__ import annotations

import re
from collections.abc import Callable

Box = tuple[float, float, float, float]
Where = Callable[[int], Box | None]
"""Gives left, bottom, right and top of a character of a page's raw text, in points; None where PDFium made it up."""

_BREAK = re.compile(r"(\S)([ \t]*(?:\r\n|\r|\n)[ \t]*)(?=\S)")
_AHEAD = (
    0.6  # heights of the larger letter that the line may jump ahead: a blank, never a gap between columns
)
_BACK = 0.3  # letters lean over each other
_SHARED = 0.3  # of the smaller letter's height, that both have in common
_BLANK = 0.15


def false_breaks(raw: str, where: Where) -> dict[tuple[int, int], str]:
    """Find line breaks between letters that stand beside each other at one height.

    Args:
        raw: PDFium's text of a page.
        where: tells where a character stands.

    Returns:
        For each break its offsets, and what stands there instead: a blank or nothing.
    """
    found: dict[tuple[int, int], str] = {}
    for match in _BREAK.finditer(raw):
        before, after = where(match.start(1)), where(match.end())
        if before is None or after is None:
            continue
        height = max(before[3] - before[1], after[3] - after[1])
        gap = after[0] - before[2]
        shared = min(before[3], after[3]) - max(before[1], after[1])
        least = min(before[3] - before[1], after[3] - after[1])
        if -_BACK * height <= gap <= _AHEAD * height and shared > _SHARED * least > 0:
            is_apart = gap > _BLANK * height or match.group(2).strip("\r\n") != ""
            found[match.span(2)] = " " if is_apart else ""
    return found

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
        if is_beside(before, after):
            is_blank = is_apart(before, after) or match.group(2).strip("\r\n") != ""
            found[match.span(2)] = " " if is_blank else ""
    return found


def is_beside(one: Box | None, two: Box | None) -> bool:
    """Tell whether a box stands on the right of another at one height, touching or with no more than a blank between."""
    if one is None or two is None:
        return False
    height = max(one[3] - one[1], two[3] - two[1])
    least = min(one[3] - one[1], two[3] - two[1])
    shared = min(one[3], two[3]) - max(one[1], two[1])
    return -_BACK * height <= two[0] - one[2] <= _AHEAD * height and shared > _SHARED * least > 0


def is_apart(one: Box | None, two: Box | None) -> bool:
    """Tell whether there is a blank's room between two boxes that stand beside each other."""
    if one is None or two is None:
        return False
    height = max(one[3] - one[1], two[3] - two[1])
    return max(one[0], two[0]) - min(one[2], two[2]) > _BLANK * height

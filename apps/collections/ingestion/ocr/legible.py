"""Tell what an engine could read from what it only guessed at: a script that it doesn't know, or a blot.

An engine answers whatever it is shown, in the letters that it has: of a page in Korean it makes lines of Chinese characters
and digits that nobody wrote. Such a line must not be found and quoted as what the page says.
"""

from __future__ import annotations

import math
from dataclasses import replace

from apps.collections.ingestion.ocr.lines import OcrLine, Recognised

MOST = 0.5
"""Share of a page's lines, by their length, from which the page counts as one that was not read."""
SOME = 0.1
"""Share from which it is worth saying: below are stamps, logos and what stands in drawings."""
_LONG = 5.0  # heights of a line: shorter boxes with nothing in them are dots, rules and parts of pictures
_LETTER = 0.35  # signs for each height of a line: Chinese has about 0.9, Latin 2; Cyrillic, of which nothing is known, 0.06


def legible(found: Recognised, sure: float) -> tuple[Recognised, float]:
    """Leave out the lines that were not read.

    Args:
        found: all lines, those without words among them.
        sure: the confidence from which a line of this engine counts as read, 0 to 1.

    Returns:
        The lines that were read, and how much of the page's lines was not, by their length, 0 to 1.
    """
    read = unread = 0.0
    kept = []
    for line in found.lines:
        length, height = _size(line)
        is_read = bool(line.words) and line.confidence >= sure
        if is_read:
            kept.append(line)
        # The engine is sure of the few signs that it knows in a line of others, so their number tells.
        if is_read and (length < _LONG * height or _signs(line) >= _LETTER * length / height):
            read += length
        elif line.words or length >= _LONG * height:
            unread += length
    return replace(found, lines=tuple(kept)), unread / (read + unread) if unread else 0.0


def _signs(line: OcrLine) -> int:
    return sum(len(word.text) for word in line.words)


def _size(line: OcrLine) -> tuple[float, float]:
    """Return the length and the height of a line, in pixels."""
    (x0, y0), (x1, y1), _, (x3, y3) = line.corners
    return math.hypot(x1 - x0, y1 - y0), max(1.0, math.hypot(x3 - x0, y3 - y0))

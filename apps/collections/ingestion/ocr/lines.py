"""Recognised lines as the engines hand them over, in pixels of the picture that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class LineWord:
    """A word of a line.

    Attributes:
        text: without blanks.
        corners: of its box: top left, top right, bottom right, bottom left, as the line runs.
    """

    text: str
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A recognised line.

    Attributes:
        words: in reading order; ``glue`` tells whether a blank stands between them. None where nothing was read.
        glue: between word i and i+1: " " or "".
        confidence: 0 to 1.
        corners: of the whole line.
    """

    words: tuple[LineWord, ...]
    glue: tuple[str, ...]
    confidence: float
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Recognised:
    """What an engine found in a picture.

    Attributes:
        lines: in pixels of the picture turned upright.
        quarter_turns: how often that was turned counter-clockwise by 90 degrees to stand upright.
        width: of the upright picture, in pixels.
        height: of the upright picture, in pixels.
        is_ordered: the engine has put the lines in reading order itself.
    """

    lines: tuple[OcrLine, ...]
    quarter_turns: int
    width: int
    height: int
    is_ordered: bool = False


class Engine(Protocol):
    """Something that reads pictures.

    Attributes:
        sure: the confidence from which a line counts as read, 0 to 1; what that means differs between engines.
    """

    name: str
    sure: float

    def read(self, picture: Any) -> Recognised:
        """Find the lines of a picture (height × width × 3, blue-green-red, bytes)."""


def box_of(corners: tuple[tuple[float, float], ...]) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of the upright box around corners."""
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def turned_back(box: tuple[float, float, float, float], found: Recognised) -> tuple[float, ...]:
    """Map a box of the upright picture to fractions (left, top, right, bottom) of the picture as it was given."""
    points = np.array([[box[0], box[1]], [box[2], box[3]]], dtype=float)
    points[:, 0] /= max(1, found.width)
    points[:, 1] /= max(1, found.height)
    for _ in range(found.quarter_turns % 4):
        # One turn counter-clockwise took (x, y) to (y, 1 - x).
        points = np.stack([1 - points[:, 1], points[:, 0]], axis=1)
    low, high = points.min(axis=0).clip(0, 1), points.max(axis=0).clip(0, 1)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def is_unspaced(character: str) -> bool:
    """Tell whether a character belongs to a script that writes without blanks between words (Chinese, Japanese)."""
    return "\u3000" <= character <= "\u9fff" or "\uf900" <= character <= "\uffef"

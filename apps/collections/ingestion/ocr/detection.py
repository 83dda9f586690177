"""Where the lines of a page stand: the detector of PP-OCR marks what is text, and each mark becomes a box."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np

_PIXELS = 2_000_000
"""Of the picture in which lines are looked for: Letter at 145 dpi. They are read from the picture at its own size."""
_LEAST = 736  # pixels of the short side: what is smaller is enlarged as far as the area allows
_SLIMMEST = 4  # times as long as wide
_MARKED = 0.3  # probability at which a pixel counts as text
_SURE = 0.5  # mean probability of a box
_UNCLIP = (
    1.6  # the marks are shrunk by their area over their outline times this (Liao et al. 2020, section 3.4)
)
_SMALLEST = 3  # pixels of a mark's short side
_STEP = 32  # the model takes multiples of it
_COARSE = 0.5  # of the size in which lines are looked for first
_COARSEST, _FEW = 0.35, 12  # and where that has found so few lines, once more
_MISSED = 0.5  # of a line's area: where the first look has marked less, the second counts
_MOST = 6000


class LineFinder:
    """The detector.

    Args:
        session: of onnxruntime; takes 1 × 3 × height × width from -1 to 1, gives the probability of each pixel.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name

    def boxes(self, picture: Any) -> list[Any]:
        """Return the corners (4 × 2: top left, top right, bottom right, bottom left) of each line, in pixels.

        Args:
            picture: height × width × 3, blue-green-red, bytes.
        """
        height, width = picture.shape[:2]
        padded = _padded(picture)
        high, wide = padded.shape[:2]
        enlarged = max(1.0, _LEAST / min(high, wide))
        scale = min(enlarged, math.sqrt(_PIXELS / (high * wide)))
        # On a page that is almost blank the model marks bits of its few lines only, but at half the size all of them.
        found = _joined(self._marked(padded, scale), self._marked(padded, scale * _COARSE))
        if len(found) < _FEW:
            found = _joined(found, self._marked(padded, scale * _COARSEST))
        inside = (_within(box, width, height) for box in found)
        return [box for box in inside if box is not None]

    def _marked(self, picture: Any, scale: float) -> list[Any]:
        height, width = picture.shape[:2]
        high, wide = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in (height, width))
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        taken = cv2.resize(picture, (wide, high), interpolation=how)
        ready = (taken.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[np.newaxis]
        sure = self._session.run(None, {self._input: ready})[0][0, 0]
        marked = cv2.dilate((sure > _MARKED).astype(np.uint8), np.ones((2, 2), np.uint8))
        outlines, _ = cv2.findContours(marked, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        found = (_box(outline, sure) for outline in outlines[:_MOST])
        return [box * (width / wide, height / high) for box in found if box is not None]


def line_crop(picture: Any, box: Any) -> Any:
    """Cut a line out and turn it level; one that stands is laid on its side."""
    across = max(1, round(float(np.linalg.norm(box[1] - box[0]))))
    down = max(1, round(float(np.linalg.norm(box[3] - box[0]))))
    corners = np.array([[0, 0], [across, 0], [0, down]], dtype=np.float32)
    turn = cv2.getAffineTransform(box[[0, 1, 3]].astype(np.float32), corners)
    line = cv2.warpAffine(
        picture, turn, (across, down), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.ascontiguousarray(np.rot90(line)) if down >= 1.5 * across else line


def _joined(fine: list[Any], coarse: list[Any]) -> list[Any]:
    """Add lines of the second look where the first has marked nothing, or only bits of them."""
    for line in coarse:
        size = cv2.contourArea(line.astype(np.float32))
        shares = [_shared(box, line) for box in fine]
        if sum(shares) < size * _MISSED:
            kept = [
                box
                for box, share in zip(fine, shares, strict=True)
                if share < cv2.contourArea(box.astype(np.float32)) * _MISSED
            ]
            fine = [*kept, line]
    return fine


def _shared(one: Any, other: Any) -> float:
    """Return the area that two boxes have in common, in square pixels."""
    if (one.max(axis=0) <= other.min(axis=0)).any() or (other.max(axis=0) <= one.min(axis=0)).any():
        return 0.0
    return float(cv2.intersectConvexConvex(one.astype(np.float32), other.astype(np.float32))[0])


def _within(box: Any, width: int, height: int) -> Any | None:
    """Cut a box off where its middle lines leave the picture; None where nothing is left of it."""
    across, down = box[1] - box[0], box[3] - box[0]
    left, right = _part_inside(box[0] + down / 2, across, (width, height))
    top, bottom = _part_inside(box[0] + across / 2, down, (width, height))
    if right <= left or bottom <= top:
        return None
    return np.array(
        [
            box[0] + across * x + down * y
            for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))
        ]
    )


def _part_inside(start: Any, way: Any, sizes: tuple[int, int]) -> tuple[float, float]:
    """Return from where to where, as fractions of it, a way from ``start`` runs inside the picture."""
    begin, end = 0.0, 1.0
    for first, step, size in zip(start, way, sizes, strict=True):
        if abs(step) < 1e-9:
            if not 0 <= first <= size:
                return 0.0, 0.0
            continue
        one, other = sorted((-first / step, (size - first) / step))
        begin, end = max(begin, float(one)), min(end, float(other))
    return begin, end


def _padded(picture: Any) -> Any:
    # The model sees nothing in a strip of a few pixels.
    height, width = picture.shape[:2]
    least = max(height, width) // _SLIMMEST
    below, beside = max(0, least - height), max(0, least - width)
    if not below and not beside:
        return picture
    white = (255, 255, 255)
    return cv2.copyMakeBorder(picture, 0, below, 0, beside, cv2.BORDER_CONSTANT, value=white)


def _box(outline: Any, sure: Any) -> Any | None:
    """Return the box around an outline, grown to what the mark was shrunk from; None where it is no text."""
    middle, (across, down), degrees = cv2.minAreaRect(outline)
    if min(across, down) < _SMALLEST or _mean(sure, cv2.boxPoints((middle, (across, down), degrees))) < _SURE:
        return None
    grown = across * down * _UNCLIP / (across + down)
    across, down = across + grown, down + grown
    while degrees > 45:
        degrees, across, down = degrees - 90, down, across
    while degrees <= -45:
        degrees, across, down = degrees + 90, down, across
    angle = math.radians(degrees)
    along = np.array([math.cos(angle), math.sin(angle)]) * across / 2
    below = np.array([-math.sin(angle), math.cos(angle)]) * down / 2
    centre = np.array(middle)
    return np.array(
        [centre - along - below, centre + along - below, centre + along + below, centre - along + below]
    )


def _mean(sure: Any, corners: Any) -> float:
    height, width = sure.shape
    left, top = np.floor(corners.min(axis=0)).astype(int).clip(0)
    right, bottom = np.ceil(corners.max(axis=0)).astype(int).clip(None, (width - 1, height - 1))
    if right <= left or bottom <= top:
        return 0.0
    inside = np.zeros((bottom - top + 1, right - left + 1), np.uint8)
    cv2.fillPoly(inside, [(corners - (left, top)).astype(np.int32)], 1)
    return float(cv2.mean(sure[top : bottom + 1, left : right + 1], inside)[0])

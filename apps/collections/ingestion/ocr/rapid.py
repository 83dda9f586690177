"""The engine that comes with the product: PP-OCR models (Chinese and English) through ``rapidocr-onnxruntime``.

Its own entry point loses most blanks between English words and turns single lines upside down by mistake, so its
detector and recogniser are called one by one here.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import cv2
import numpy as np

from apps.collections.ingestion.ocr.lines import Line, LineWord, Recognised
from apps.collections.ingestion.ocr.spacing import Mark, is_unspaced, line_marks

_HEIGHT = 48  # of a line as the recogniser takes it
_SHORTEST = 320  # pixels, the recogniser's least width
_BATCH = 4
_MIN_CONFIDENCE = 0.5
_STANDING = 1.5
_SIDEWAYS_SHARE = 0.6
_TRIED = 6.0  # how many times as long as high a line is that tells best which way up it stands
_TRIALS = 7
_SLIMMEST = 4  # times as long as wide


class RapidEngine:
    """Detector and recogniser on one thread."""

    name = "rapidocr"

    def __init__(self) -> None:
        from rapidocr_onnxruntime import RapidOCR

        cv2.setNumThreads(1)
        rapid = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
        self._detect, self._crop = rapid.text_det, rapid.get_crop_img_list
        self._recognise = rapid.text_rec
        self._characters: list[str] = rapid.text_rec.postprocess_op.character
        self._blank = self._characters.index(" ")

    def read(self, picture: Any) -> Recognised:
        """Find and read the lines of a picture, which may lie on its side or upside down."""
        turns = 0
        boxes = self._boxes(picture)
        if _is_sideways(boxes):
            picture, turns = np.ascontiguousarray(np.rot90(picture)), 1
            boxes = self._boxes(picture)
        height, width = picture.shape[:2]
        crops = self._crop(picture, boxes) if len(boxes) else []
        if crops and self._is_upside_down(crops):
            turns += 2
            crops = [np.ascontiguousarray(np.rot90(crop, 2)) for crop in crops]
            boxes = [
                np.array([(width - x, height - y) for x, y in np.roll(box, 2, axis=0)])
                for box in boxes
            ]
        return Recognised(tuple(self._lines(boxes, crops)), turns, width, height)

    def _boxes(self, picture: Any) -> Any:
        # The detector enlarges the short side to 736 pixels: a strip of 2000 by 1 would become gigabytes.
        height, width = picture.shape[:2]
        least = max(height, width) // _SLIMMEST
        below, beside = max(0, least - height), max(0, least - width)
        if below or beside:
            picture = cv2.copyMakeBorder(
                picture, 0, below, 0, beside, cv2.BORDER_CONSTANT, value=(255, 255, 255)
            )
        boxes, _ = self._detect(picture)
        return [] if boxes is None else boxes

    def _is_upside_down(self, crops: list[Any]) -> bool:
        """Read some lines both ways round: the classifier that comes along is wrong about every third long line."""
        tried = sorted(crops, key=lambda crop: abs(crop.shape[1] / max(1, crop.shape[0]) - _TRIED))
        upright = tried[:_TRIALS]
        turned = [np.ascontiguousarray(np.rot90(crop, 2)) for crop in upright]
        return self._sureness(turned) > self._sureness(upright)

    def _sureness(self, crops: list[Any]) -> float:
        sums = []
        for crop in crops:
            picture = self._recognise.resize_norm_img(
                crop, max(_SHORTEST / _HEIGHT, crop.shape[1] / max(1, crop.shape[0]))
            )
            steps = self._recognise.session(picture[np.newaxis].astype(np.float32))[0][0]
            sure = steps.max(axis=1)[steps.argmax(axis=1) != 0]
            sums.append(float(sure.mean()) if len(sure) else 0.0)
        return sum(sums)

    def _lines(self, boxes: Any, crops: list[Any]) -> list[Line]:
        ratios = [crop.shape[1] / max(1, crop.shape[0]) for crop in crops]
        order = sorted(range(len(crops)), key=lambda i: ratios[i])
        found: dict[int, Line] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            widest = max(_SHORTEST / _HEIGHT, *(ratios[i] for i in batch))
            pictures = [self._recognise.resize_norm_img(crops[i], widest) for i in batch]
            told = self._recognise.session(np.stack(pictures).astype(np.float32))[0]
            for i, steps in zip(batch, told, strict=True):
                line = self._line(boxes[i], crops[i], steps, pictures[0].shape[2])
                if line is not None:
                    found[i] = line
        return [found[i] for i in sorted(found)]

    def _line(self, box: Any, crop: Any, steps: Any, width: int) -> Line | None:
        best = steps.argmax(axis=1)
        sure = steps.max(axis=1)[best != 0]
        if not len(sure) or float(sure.mean()) < _MIN_CONFIDENCE:
            return None
        used = min(width, math.ceil(_HEIGHT * crop.shape[1] / crop.shape[0]))
        marks = line_marks(
            best,
            steps[:, self._blank],
            self._characters,
            _ink(crop, used),
            step=width / len(steps),
        )
        words, glue = _words(marks, box)
        if not words:
            return None
        corners = tuple((float(x), float(y)) for x, y in box)
        return Line(tuple(words), tuple(glue), float(sure.mean()), corners)


def _is_sideways(boxes: Any) -> bool:
    standing = every = 0.0
    for box in boxes:
        across = float(np.linalg.norm(box[0] - box[1]))
        down = float(np.linalg.norm(box[0] - box[3]))
        every += max(across, down)
        standing += down if down > across * _STANDING else 0.0
    return every > 0 and standing / every > _SIDEWAYS_SHARE


def _ink(crop: Any, width: int) -> Any:
    """Tell for each pixel column of a line whether something is printed there, dark on light or light on dark."""
    grey = cv2.resize(cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY), (max(1, width), _HEIGHT))
    _, printed = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)
    if (printed > 0).mean() > 0.5:
        printed = 255 - printed
    return (printed[4 : _HEIGHT - 4] > 0).sum(axis=0) > 1


def _words(marks: list[Mark], box: Any) -> tuple[list[LineWord], list[str]]:
    """Cut a line into words, each with its part of the line's box."""
    edges = [0.0]
    edges += [(a.place + b.place) / 2 for a, b in itertools.pairwise(marks)]
    edges.append(1.0)
    words: list[LineWord] = []
    glue: list[str] = []
    start: int | None = None
    is_open = False  # the next word begins without a blank before it

    def close(end: int) -> None:
        nonlocal start, is_open
        if start is None:
            return
        if words:
            glue.append("" if is_open else " ")
        text = "".join(mark.text for mark in marks[start:end])
        words.append(LineWord(text, _part(box, edges[start], edges[end])))
        start, is_open = None, True

    for i, mark in enumerate(marks):
        if mark.text == " ":
            close(i)
            is_open = False
        elif is_unspaced(mark.text):
            close(i)
            start = i
            close(i + 1)
        elif start is None:
            start = i
    close(len(marks))
    return words, glue


def _part(box: Any, begin: float, end: float) -> tuple[tuple[float, float], ...]:
    top_left, top_right, bottom_right, bottom_left = (np.asarray(p, dtype=float) for p in box)
    corners = (
        top_left + (top_right - top_left) * begin,
        top_left + (top_right - top_left) * end,
        bottom_left + (bottom_right - bottom_left) * end,
        bottom_left + (bottom_right - bottom_left) * begin,
    )
    return tuple((float(x), float(y)) for x, y in corners)

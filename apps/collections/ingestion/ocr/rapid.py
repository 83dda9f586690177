"""The engine that comes with the product: the models of PP-OCR that the wheel ``rapidocr`` carries.

Only the two files are taken from it: its code asks for a dozen packages and may download.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from apps.collections.ingestion.ocr.detection import LineFinder, line_crop
from apps.collections.ingestion.ocr.lines import LineWord, OcrLine, Recognised, box_of, is_unspaced

PACKAGE = "rapidocr"
DETECTOR = "PP-OCRv6_det_small.onnx"
RECOGNISER = "PP-OCRv6_rec_small.onnx"
_HEIGHT = 48  # of a line as the recogniser takes it
_SHORTEST = 320  # pixels, the recogniser's least width
_LONGEST = 4000  # and most: a page is at most so many letters wide
_BATCH = 4
_MIN_CONFIDENCE = 0.5  # below it a line is a pattern, and has no words
_STANDING = 1.5
_SIDEWAYS_SHARE = 0.6
_TRIED = 6.0  # how many times as long as high a line is that tells best which way up it stands
_TRIALS = 7


@dataclass(frozen=True, slots=True)
class _Mark:
    """A recognised character and where its middle is, as a fraction of the line's length."""

    text: str
    place: float


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the recogniser says of a line.

    Attributes:
        best: for each step along it the most probable character.
        sure: and how probable that is.
        width: pixels that the steps span.
    """

    best: Any
    sure: Any
    width: int

    @property
    def confidence(self) -> float:
        """Return how sure it is of the characters on average, 0 where it sees none."""
        sure = self.sure[self.best != 0]
        return float(sure.mean()) if len(sure) else 0.0


class RapidEngine:
    """Detector and recogniser on one thread.

    Raises:
        ImportError: the models are not installed.
    """

    name = "PP-OCRv6"
    # Noisy lines of scripts that it knows have .94 at least; of Greek, whose letters it half knows, .70 to .90, of others .6.
    sure = 0.9

    def __init__(self) -> None:
        cv2.setNumThreads(1)
        self._finder = LineFinder(_session(DETECTOR))
        self._recogniser = _session(RECOGNISER)
        self._input = self._recogniser.get_inputs()[0].name
        told = self._recogniser.get_modelmeta().custom_metadata_map["character"]
        self._characters = ["", *told.split("\n"), " "]

    def read(self, picture: Any) -> Recognised:
        """Find and read the lines of a picture, which may lie on its side or upside down."""
        turns = 0
        boxes = self._finder.boxes(picture)
        if _is_sideways(boxes):
            picture, turns = np.ascontiguousarray(np.rot90(picture)), 1
            boxes = self._finder.boxes(picture)
        height, width = picture.shape[:2]
        crops = {i: line_crop(picture, box) for i, box in enumerate(boxes)}
        # Some lines are read both ways round: the classifier that comes along is wrong about every third long one.
        tried = sorted(crops, key=lambda i: abs(_ratio(crops[i]) - _TRIED))[:_TRIALS]
        told = self._readings({i: crops[i] for i in tried})
        turned = self._readings({i: _turned(crops[i]) for i in tried})
        if _sureness(turned) > _sureness(told):
            turns += 2
            crops, told = {i: _turned(crop) for i, crop in crops.items()}, turned
            boxes = [np.array([(width - x, height - y) for x, y in np.roll(box, 2, axis=0)]) for box in boxes]
        if len(told) < len(crops):
            # Those that were tried too: what a line is read as hangs a little on which ones are read with it.
            told = self._readings(crops)
        lines = [self._line(boxes[i], crops[i], told[i]) for i in crops]
        kept = tuple(line for line in lines if not _is_shape(line, width * height))
        return Recognised(kept, turns, width, height)

    def _readings(self, crops: dict[int, Any]) -> dict[int, _Reading]:
        """Read lines, those of like length together."""
        order = sorted(crops, key=lambda i: _ratio(crops[i]))
        found: dict[int, _Reading] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            steps, width = self._steps([crops[i] for i in batch])
            # Only the best of each step is kept: a line's probabilities of all characters take tens of megabytes.
            for i, of in zip(batch, steps, strict=True):
                found[i] = _Reading(of.argmax(axis=1), of.max(axis=1), width)
        return found

    def _steps(self, crops: list[Any]) -> tuple[Any, int]:
        """Return the probability of each character for each step along lines, and the width those steps span."""
        widths = [_width(crop) for crop in crops]
        taken = np.zeros((len(crops), 3, _HEIGHT, max(_SHORTEST, *widths)), dtype=np.float32)
        for row, crop, width in zip(taken, crops, widths, strict=True):
            level = cv2.resize(crop, (width, _HEIGHT))
            row[:, :, :width] = level.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
        return self._recogniser.run(None, {self._input: taken})[0], taken.shape[3]

    def _line(self, box: Any, crop: Any, told: _Reading) -> OcrLine:
        corners = tuple((float(x), float(y)) for x, y in box)
        if told.confidence < _MIN_CONFIDENCE:
            return OcrLine((), (), told.confidence, corners)
        marks = _marks(told.best, self._characters, told.width / _width(crop) / len(told.best))
        words, glue = _words(marks, box)
        return OcrLine(tuple(words), tuple(glue), told.confidence, corners)


def _turned(crop: Any) -> Any:
    return np.ascontiguousarray(np.rot90(crop, 2))


def _sureness(told: dict[int, _Reading]) -> float:
    return sum(reading.confidence for reading in told.values())


def _ratio(crop: Any) -> float:
    return float(crop.shape[1]) / max(1, int(crop.shape[0]))


def _is_shape(line: OcrLine, area: int) -> bool:
    """Tell whether a line is one character over a quarter of the picture: a drawing that the models take for one."""
    left, top, right, bottom = box_of(line.corners)
    is_one = sum(len(word.text) for word in line.words) == 1
    return is_one and (right - left) * (bottom - top) > area / 4


def _width(crop: Any) -> int:
    """Return a line's width in pixels once it is as high as the recogniser takes it."""
    height, width = crop.shape[:2]
    return max(1, min(_LONGEST, math.ceil(_HEIGHT * int(width) / int(height))))


def _marks(best: Any, characters: list[str], step: float) -> list[_Mark]:
    """Collapse the most probable character of each step; ``step`` is a step's share of the line's length."""
    marks: list[_Mark] = []
    start = 0
    for end in range(1, len(best) + 1):
        if end == len(best) or best[end] != best[start]:
            if best[start] != 0:
                marks.append(_Mark(characters[best[start]], min(1.0, (start + end) / 2 * step)))
            start = end
    return marks


def _session(name: str) -> Any:
    import onnxruntime

    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the package {PACKAGE} is missing")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it would keep what the largest page took
    options.log_severity_level = 3
    path = Path(spec.submodule_search_locations[0]) / "models" / name
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _is_sideways(boxes: Any) -> bool:
    standing = every = 0.0
    for box in boxes:
        across = float(np.linalg.norm(box[0] - box[1]))
        down = float(np.linalg.norm(box[0] - box[3]))
        every += max(across, down)
        standing += down if down > across * _STANDING else 0.0
    return every > 0 and standing / every > _SIDEWAYS_SHARE


def _words(marks: list[_Mark], box: Any) -> tuple[list[LineWord], list[str]]:
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

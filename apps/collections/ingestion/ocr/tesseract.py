"""Tesseract as the engine, where it is installed: it reads many more languages than the models that come along."""

from __future__ import annotations

import csv
import io
import itertools
import shutil
import subprocess
from functools import cache
from typing import Any

from apps.collections.ingestion.ocr.lines import LineWord, OcrLine, Recognised, is_unspaced

PROGRAM = "tesseract"
_LIST_S = 10
_PAGE_S = 110
_WORD_LEVEL = "5"
_LEAST = 20.0  # of 100; below it are specks and rules taken for letters


@cache
def tesseract_languages() -> frozenset[str]:
    """Return the codes of the languages that Tesseract can read here; empty where it is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        return frozenset()
    try:
        told = subprocess.run(
            [program, "--list-langs"], capture_output=True, text=True, timeout=_LIST_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(line.strip() for line in told.stdout.splitlines()[1:] if line.strip()) - {"osd"}


class TesseractEngine:
    """One run of the program for each picture, which goes in and out through pipes.

    Args:
        languages: codes joined with +, for example ``deu+fra``, of ``tesseract_languages()``.
    """

    # Of a noisy page in its language it has .86, and a thirtieth of the lines below this; of another script .49, nine tenths.
    sure = 0.6

    def __init__(self, languages: str) -> None:
        self.name = f"tesseract {languages}"
        self._languages = languages
        self._program = shutil.which(PROGRAM) or PROGRAM

    def read(self, picture: Any) -> Recognised:
        """Find the words of a picture; Tesseract turns it upright and orders the lines itself (page mode 1, or 3)."""
        import cv2

        ok, encoded = cv2.imencode(".png", picture)
        if not ok:
            raise ValueError("a picture could not be packed for Tesseract")
        mode = "1" if "osd" in _installed_data() else "3"
        done = subprocess.run(
            [self._program, "stdin", "stdout", "-l", self._languages, "--psm", mode, "tsv"],
            input=encoded.tobytes(),
            capture_output=True,
            timeout=_PAGE_S,
            check=True,
        )
        height, width = picture.shape[:2]
        lines = tuple(_lines(done.stdout.decode("utf-8", errors="replace")))
        return Recognised(lines, 0, width, height, is_ordered=True)


@cache
def _installed_data() -> frozenset[str]:
    told = subprocess.run(
        [shutil.which(PROGRAM) or PROGRAM, "--list-langs"],
        capture_output=True,
        text=True,
        timeout=_LIST_S,
        check=True,
    )
    return frozenset(line.strip() for line in told.stdout.splitlines()[1:])


def _lines(table: str) -> list[OcrLine]:
    """Read Tesseract's TSV: one row for each word, numbered by block, paragraph and line.

    The columns are described in Tesseract's manual under "tsv": level, page_num, block_num, par_num, line_num,
    word_num, left, top, width, height, conf, text.
    """
    found: dict[tuple[str, ...], list[tuple[LineWord, float]]] = {}
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        if row["level"] != _WORD_LEVEL or not text or float(row["conf"]) < _LEAST:
            continue
        left, top = float(row["left"]), float(row["top"])
        right, bottom = left + float(row["width"]), top + float(row["height"])
        word = LineWord(text, ((left, top), (right, top), (right, bottom), (left, bottom)))
        place = (row["page_num"], row["block_num"], row["par_num"], row["line_num"])
        found.setdefault(place, []).append((word, float(row["conf"]) / 100))
    return [_line(words) for words in found.values()]


def _line(told: list[tuple[LineWord, float]]) -> OcrLine:
    words = tuple(word for word, _ in told)
    glue = tuple(
        "" if is_unspaced(a.text[-1]) and is_unspaced(b.text[0]) else " "
        for a, b in itertools.pairwise(words)
    )
    left, top = words[0].corners[0]
    right, bottom = words[-1].corners[2]
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return OcrLine(words, glue, sum(sure for _, sure in told) / len(told), corners)

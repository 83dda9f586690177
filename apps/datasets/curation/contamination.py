"""Find rows for evaluation whose words a model may have seen: in rows for training, or in the examples of a prompt. Pure.

A shared run of 13 words is what GPT-3's authors took for contamination (Brown et al. 2020, appendix C); 8 words (PaLM,
Chowdhery et al. 2022) are reported as an overlap. Questions too short for either count when they are the same.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from apps.datasets.curation.duplicates import normalised
from apps.datasets.record import Record

LONG, SHORT = 13, 8


@dataclass(frozen=True, slots=True)
class Overlap:
    """Words that two rows share.

    Attributes:
        evaluated: id of the row for evaluation.
        seen: id of the row for training, or the name of the prompt.
        words: length of the longest shared run, in words.
        text: that run, normalised.
        fingerprint: names the overlap in a waiver; another wording of either side is another overlap.
    """

    evaluated: str
    seen: str
    words: int
    text: str
    fingerprint: str

    @property
    def is_contamination(self) -> bool:
        """Tell whether the row should not be used to evaluate what was trained on the other."""
        return self.words >= LONG or self.words == 0


class EvaluationIndex:
    """The runs of 8 words of the rows for evaluation. Grows with these rows only; what is compared with it streams by."""

    def __init__(self, rows: Iterable[Record]) -> None:
        self._texts: list[tuple[str, list[str]]] = []
        self._runs: dict[int, list[int]] = {}
        self._questions: dict[str, list[int]] = {}
        for row in rows:
            at = len(self._texts)
            self._questions.setdefault(normalised(row.question), []).append(at)
            words = _words(row)
            self._texts.append((row.id, words))
            for run in {hash_ for _, hash_ in _runs(words)}:
                self._runs.setdefault(run, []).append(at)

    def overlaps(self, row: Record) -> Iterator[Overlap]:
        """Yield the rows for evaluation that a row for training shares words with, once each."""
        yield from self._overlaps(row.id, normalised(row.question), _words(row))

    def overlaps_of_prompt(self, name: str, text: str) -> Iterator[Overlap]:
        """Yield the rows for evaluation that a prompt with its examples shares words with."""
        yield from self._overlaps(name, "", normalised(text).split())

    def _overlaps(self, name: str, question: str, words: list[str]) -> Iterator[Overlap]:
        places: dict[int, list[int]] = {}
        for place, run in _runs(words):
            for at in self._runs.get(run, ()):
                places.setdefault(at, []).append(place)
        for at, starts in sorted(places.items()):
            found = _longest(words, starts, self._texts[at][1])
            if found:
                yield self._overlap(at, name, found)
        for at in self._questions.get(question, ()) if question else ():
            if at not in places:
                yield self._overlap(at, name, [], question)

    def _overlap(self, at: int, name: str, run: list[str], question: str = "") -> Overlap:
        row, words = self._texts[at]
        text = " ".join(run) or question
        key = hashlib.sha256(f"{' '.join(words)}\0{text}".encode()).hexdigest()
        return Overlap(row, name, len(run), text, key)


def contamination(
    trained: Iterable[Record], evaluated: Iterable[Record], prompts: Mapping[str, str] | None = None
) -> Iterator[Overlap]:
    """Yield the overlaps of rows for evaluation with rows for training and with prompts."""
    index = EvaluationIndex(evaluated)
    for row in trained:
        yield from index.overlaps(row)
    for name, text in (prompts or {}).items():
        yield from index.overlaps_of_prompt(name, text)


def _words(row: Record) -> list[str]:
    return normalised(f"{row.question}\n{row.answer}").split()


def _runs(words: list[str]) -> Iterator[tuple[int, int]]:
    for start in range(len(words) - SHORT + 1):
        run = " ".join(words[start : start + SHORT]).encode("utf-8", "replace")
        yield start, zlib.crc32(run) << 32 | zlib.adler32(run)


def _longest(words: list[str], starts: list[int], other: list[str]) -> list[str]:
    """Return the longest run of words from one of the places that the other text has too; [] for a chance hash."""
    heads: dict[tuple[str, ...], list[int]] = {}
    for place in range(len(other) - SHORT + 1):
        heads.setdefault(tuple(other[place : place + SHORT]), []).append(place)
    best: list[str] = []
    done = -1
    for start in starts:
        if start < done:
            continue
        for place in heads.get(tuple(words[start : start + SHORT]), ())[:50]:
            length = SHORT
            while (
                start + length < len(words)
                and place + length < len(other)
                and words[start + length] == other[place + length]
            ):
                length += 1
            if length > len(best):
                best, done = words[start : start + length], start + length - SHORT
    return best

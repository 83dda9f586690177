"""Find rows for evaluation whose words a model may have seen: in rows for training, or in the examples of a prompt. Pure.

A shared run of 13 words is what GPT-3's authors took for contamination (Brown et al. 2020, appendix C); 8 words (PaLM,
Chowdhery et al. 2022) are reported as an overlap. Questions too short for either count when they are the same. Questions in
other words are found by their embeddings, where these are asked for.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from apps.datasets.checks.duplicates import MEANING
from apps.datasets.records.record import Record
from apps.datasets.records.texts import normalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embed = Callable[[list[str]], NDArray[np.float32]]

LONG, SHORT = 13, 8
ALIKE = 0.9
"""Cosine of two questions from which it is reported; ``MEANING`` is taken for contamination."""
BLOCK = 256
MOST_SHARED = 50
"""Rows for evaluation that a run of words may stand in: what more of them say is a phrase of the house, such as how answers
abstain, and no sign that one of them was seen. Counting it would compare each row with each."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Words that two rows share.

    Attributes:
        evaluated: id of the row for evaluation.
        seen: id of the row for training, or the name of the prompt.
        words: length of the longest shared run, in words.
        text: that run, normalised.
        fingerprint: names the overlap in a waiver; another wording of either side is another overlap.
        similarity: cosine of the two questions, where they were compared by meaning; 0 otherwise.
    """

    evaluated: str
    seen: str
    words: int
    text: str
    fingerprint: str
    similarity: float = 0.0

    @property
    def is_contamination(self) -> bool:
        """Tell whether the row should not be used to evaluate what was trained on the other."""
        if self.similarity:
            return self.similarity >= MEANING
        return self.words >= LONG or self.words == 0


class EvaluationIndex:
    """The runs of 8 words of the rows for evaluation, 12 bytes each; what is compared with them streams by."""

    def __init__(self, rows: Iterable[Record]) -> None:
        self._texts: list[tuple[str, str]] = []
        self._questions: dict[str, list[int]] = {}
        runs, owners = array("Q"), array("Q")
        for row in rows:
            at = len(self._texts)
            self._questions.setdefault(normalised(row.question), []).append(at)
            words = _words(row)
            self._texts.append((row.id, " ".join(words)))
            mine = {hash_ for _, hash_ in _runs(words)}
            runs.extend(mine)
            owners.extend([at] * len(mine))
        order = np.argsort(np.array(runs, np.uint64), kind="stable")
        every = np.array(runs, np.uint64)[order]
        _, counts = np.unique(every, return_counts=True)
        told = np.repeat(counts <= MOST_SHARED, counts)
        self._runs = every[told]
        self._owners = np.array(owners, np.uint32)[order][told]

    def overlaps(self, row: Record) -> Iterator[Overlap]:
        """Yield the rows for evaluation that a row for training shares words with, once each."""
        yield from self._overlaps(row.id, normalised(row.question), _words(row))

    def overlaps_of_prompt(self, name: str, text: str) -> Iterator[Overlap]:
        """Yield the rows for evaluation that a prompt with its examples shares words with."""
        yield from self._overlaps(name, "", normalised(text).split())

    def _overlaps(self, name: str, question: str, words: list[str]) -> Iterator[Overlap]:
        places: dict[int, list[int]] = {}
        asked = np.array([run for _, run in _runs(words)], np.uint64)
        first = np.searchsorted(self._runs, asked, "left")
        past = np.searchsorted(self._runs, asked, "right")
        for place in np.flatnonzero(first < past).tolist():
            for at in self._owners[first[place] : past[place]].tolist():
                places.setdefault(at, []).append(place)
        for at, starts in sorted(places.items()):
            found = _longest(words, starts, self._texts[at][1].split())
            if found:
                yield self._overlap(at, name, found)
        for at in self._questions.get(question, ()) if question else ():
            if at not in places:
                yield self._overlap(at, name, [], question)

    def _overlap(self, at: int, name: str, run: list[str], question: str = "") -> Overlap:
        row, whole = self._texts[at]
        text = " ".join(run) or question
        key = hashlib.sha256(f"{whole}\0{text}".encode()).hexdigest()
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


def same_meaning(
    trained: Iterable[Record],
    evaluated: Sequence[Record],
    embed: Embed,
    prompts: Mapping[str, str] | None = None,
) -> Iterator[Overlap]:
    """Yield for each row for evaluation the question seen in training or in a prompt that is closest in meaning.

    What is compared streams by in blocks; only the rows for evaluation are held.

    Args:
        embed: returns one unit vector for each text.
    """
    if not evaluated:
        return
    mine = embed([row.question for row in evaluated])
    best: list[tuple[float, str, str]] = [(0.0, "", "")] * len(evaluated)
    seen = _seen(trained, prompts or {})
    while block := list(islice(seen, BLOCK)):
        likeness = mine @ embed([text for _, text in block]).T
        for at, place in enumerate(likeness.argmax(axis=1)):
            found = float(likeness[at, place])
            if found > best[at][0]:
                best[at] = (found, *block[int(place)])
    for row, (found, name, text) in zip(evaluated, best, strict=True):
        if found >= ALIKE:
            key = hashlib.sha256(f"meaning\0{row.question}\0{text}".encode()).hexdigest()
            yield Overlap(row.id, name, 0, text, key, round(min(found, 1.0), 4))


def _seen(trained: Iterable[Record], prompts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the question of all that a model may have seen; of prompts, the lines that ask."""
    for row in trained:
        yield row.id, row.question
    for name, text in prompts.items():
        yield from ((name, line) for line in text.splitlines() if line.rstrip().endswith("?"))


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

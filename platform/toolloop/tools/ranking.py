"""Rank short texts against a query: by words (BM25 over weighted fields), and by vectors somebody else computed.

Pure Python on purpose: a catalog of a thousand tools is ranked in about a millisecond, without an index on disk. BM25 as
in Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with term frequencies weighted by field before
saturation (BM25F).
"""

from __future__ import annotations

import bisect
import functools
import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_K1, _B = 1.2, 0.5
_PREFIX_WEIGHT = 0.5  # "invoic" finds "invoice", for less than the whole word does.
_LEAST_PREFIX = 3
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STOP = set(
    """
    a an and are as at be by for from how i in is it me my of on or that the this to what when which with you
""".split()
)


def words_of(text: str) -> list[str]:
    """Split text into lower-case word stems: "listOpenInvoices" -> list, open, invoice."""
    found = []
    for word in _WORD.findall(_CAMEL.sub(" ", text)):
        lower = word.lower()
        if lower not in _STOP:
            found.append(_stem(lower))
    return found


def name_words(name: str) -> str:
    """Return a name of code as words: "listOpen_invoices" -> "list Open invoices"."""
    return " ".join(_CAMEL.sub(" ", name).replace("_", " ").replace("-", " ").split())


def _stem(word: str) -> str:
    # Only what English plurals and verb forms need; a real stemmer would cost a dependency and gain little on names.
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 4 and word.endswith("ed"):
        return word[:-2]
    # "create", "created" and "creating" must meet.
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


class WordIndex:
    """An inverted index over documents of weighted fields.

    Args:
        documents: per document its fields as (weight, text).
    """

    def __init__(self, documents: Iterable[Sequence[tuple[float, str]]]) -> None:
        self._postings: defaultdict[str, dict[int, float]] = defaultdict(dict)
        lengths: list[float] = []
        for number, fields in enumerate(documents):
            counts: defaultdict[str, float] = defaultdict(float)
            for weight, text in fields:
                for word in words_of(text):
                    counts[word] += weight
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._postings[word][number] = count
        self._size = len(lengths)
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [_K1 * (1 - _B + _B * length / (mean or 1.0)) for length in lengths]
        self._vocabulary = sorted(self._postings)

    def __len__(self) -> int:
        return self._size

    def scores(self, query: str) -> dict[int, float]:
        """Return the documents that share a word with the query, scored in 0..1 (1: every word, saturated)."""
        words = list(dict.fromkeys(words_of(query)))
        best = 0.0
        scores: defaultdict[int, float] = defaultdict(float)
        for word in words:
            known = word in self._postings
            weight = 1.0 if known else _PREFIX_WEIGHT
            postings = self._postings[word] if known else self._by_prefix(word)
            idf = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            best += idf * (_K1 + 1)
            for number, count in postings.items():
                saturated = count * (_K1 + 1) / (count + self._norms[number])
                scores[number] += weight * idf * saturated
        return {number: score / best for number, score in scores.items()} if best > 0 else {}

    def _by_prefix(self, word: str) -> dict[int, float]:
        if len(word) < _LEAST_PREFIX:
            return {}
        merged: dict[int, float] = {}
        for index in range(bisect.bisect_left(self._vocabulary, word), len(self._vocabulary)):
            longer = self._vocabulary[index]
            if not longer.startswith(word):
                break
            for number, count in self._postings[longer].items():
                merged[number] = max(merged.get(number, 0.0), count)
        return merged


class VectorIndex:
    """Unit vectors of documents; numpy carries the products where it is installed.

    Args:
        vectors: one per document, of one length, None for a document that has none; normalised here.

    Raises:
        ValueError: they are not of one length.
    """

    def __init__(self, vectors: Sequence[Sequence[float] | None]) -> None:
        self._known = [vector is not None for vector in vectors]
        lengths = {len(vector) for vector in vectors if vector is not None}
        if len(lengths) > 1:
            raise ValueError(f"vectors of different lengths: {sorted(lengths)}")
        length = next(iter(lengths), 0)
        blank: Sequence[float] = [0.0] * length
        rows = [blank if vector is None else vector for vector in vectors]
        self._matrix: Any = None
        self._product: Any = None
        self._array: Callable[[Any], Any] = list
        try:
            import numpy
        except ModuleNotFoundError:
            self._rows = [_unit(row) for row in rows]
            return
        self._array = functools.partial(numpy.asarray, dtype=numpy.float32)
        self._product = numpy.einsum
        matrix = self._array(rows).reshape(len(rows), length)
        norms = numpy.sqrt(self._product("ij,ij->i", matrix, matrix))[:, None]
        self._matrix = matrix / numpy.where(norms > 0, norms, 1)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def has_any(self) -> bool:
        """Tell whether at least one document has a vector."""
        return any(self._known)

    def similarities(self, vector: Sequence[float]) -> list[float | None]:
        """Return the cosine similarity of every document, in order; None for one without a vector."""
        unit = _unit(vector)
        if self._matrix is not None:
            # einsum and not "@": a BLAS library would wake its threads, which costs more than so small a product.
            found = self._product("ij,j->i", self._matrix, self._array(unit)).tolist()
        else:
            found = [sum(map(operator.mul, row, unit)) for row in self._rows]
        return [one if known else None for one, known in zip(found, self._known, strict=True)]


def _unit(vector: Sequence[float]) -> list[float]:
    values = [float(value) for value in vector]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values] if length else values

"""Find rows that say the same: equal, nearly equal, equal in meaning, or resting on the same passage. Pure.

Nearly equal questions are found by MinHash with locality-sensitive hashing (Broder 1997; Leskovec, Rajaraman and Ullman,
Mining of Massive Datasets, ch. 3) over character 5-grams, and each candidate is confirmed by its true Jaccard similarity,
so that nothing is reported that is not so. With 21 bands of 6 rows a pair of similarity 0.8 is missed once in 600.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from apps.datasets.records.record import Record
from apps.datasets.records.texts import normalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["exact", "near", "meaning", "passage"]
NEAR, MEANING = 0.8, 0.95
BANDS, ROWS = 21, 6
SHINGLE = 5
# Above this a comparison of each with each takes minutes on one core.
MAX_MEANING = 20_000
_PRIME = np.uint64(4_294_967_311)  # the first above 2**32, so that products stay below 2**64


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows that say the same.

    Attributes:
        kept, dropped: ids; the earlier row is kept.
        similarity: 0 to 1.
    """

    kind: Kind
    kept: str
    dropped: str
    similarity: float


def exact(rows: Iterable[Record]) -> Iterator[Pair]:
    """Yield rows whose question is that of an earlier one, apart from case, punctuation and spacing."""
    first: dict[str, str] = {}
    for row in rows:
        text = normalised(row.question)
        if (kept := first.setdefault(text, row.id)) != row.id:
            yield Pair("exact", kept, row.id, 1.0)


def near(rows: Sequence[Record], threshold: float = NEAR) -> Iterator[Pair]:
    """Yield rows whose question is nearly that of an earlier one (Jaccard of 5-grams), equal ones left out."""
    texts = [normalised(row.question) for row in rows]
    if len(texts) < 2:
        return
    signatures = np.stack([minhash(shingles(text)) for text in texts])
    seen: set[tuple[int, int]] = set()
    for band in range(BANDS):
        part = np.ascontiguousarray(signatures[:, band * ROWS : (band + 1) * ROWS])
        for group in _equal_rows(part):
            for at, later in enumerate(group[1:], start=1):
                # The first and the one before: a chain of near rows stays connected, and a group costs no square.
                for earlier in {group[0], group[at - 1]}:
                    pair = (earlier, later)
                    if pair in seen or texts[earlier] == texts[later]:
                        continue
                    seen.add(pair)
                    likeness = jaccard(shingles(texts[earlier]), shingles(texts[later]))
                    if likeness >= threshold:
                        yield Pair("near", rows[earlier].id, rows[later].id, round(likeness, 4))


def same_passage(rows: Iterable[Record]) -> Iterator[Pair]:
    """Yield rows of one type that rest on exactly the passages of an earlier one."""
    first: dict[tuple[str, tuple[str, ...]], str] = {}
    for row in rows:
        keys = tuple(sorted({source.key for source in row.sources}))
        if keys and (kept := first.setdefault((row.type, keys), row.id)) != row.id:
            yield Pair("passage", kept, row.id, 1.0)


def same_meaning(
    ids: Sequence[str], vectors: NDArray[np.float32], threshold: float = MEANING
) -> Iterator[Pair]:
    """Yield rows whose question is closest in meaning to an earlier one.

    Args:
        vectors: one unit vector for each id.
    """
    block = 512
    for start in range(0, len(ids), block):
        likeness = vectors[start : start + block] @ vectors[: start + block].T
        for at in range(likeness.shape[0]):
            here = start + at
            earlier = likeness[at, :here]
            if earlier.size and (best := int(earlier.argmax())) >= 0 and earlier[best] >= threshold:
                yield Pair("meaning", ids[best], ids[here], round(float(earlier[best]), 4))


def shingles(text: str) -> frozenset[str]:
    """Return the character 5-grams of a text; a shorter text is its own."""
    if len(text) <= SHINGLE:
        return frozenset([text])
    return frozenset(text[i : i + SHINGLE] for i in range(len(text) - SHINGLE + 1))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of two sets that is common to both."""
    return len(one & other) / len(one | other) if one or other else 1.0


def minhash(grams: frozenset[str]) -> NDArray[np.uint64]:
    """Return the signature of a set: the least value of each of 126 hash functions over it."""
    values = np.fromiter((zlib.crc32(gram.encode("utf-8", "replace")) for gram in grams), np.uint64)
    hashed: NDArray[np.uint64] = ((_A[:, None] * values[None, :] + _B[:, None]) % _PRIME).min(axis=1)
    return hashed


def _equal_rows(part: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Yield the groups of equal rows of a matrix, each in the rows' order."""
    keys = part.view(np.dtype((np.void, part.dtype.itemsize * part.shape[1]))).ravel()
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    bounds = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for group in np.split(order, bounds):
        if len(group) > 1:
            yield [int(i) for i in group]


_random = np.random.default_rng(1997)
_A = _random.integers(1, 1 << 31, BANDS * ROWS, dtype=np.uint64)
_B = _random.integers(0, 1 << 31, BANDS * ROWS, dtype=np.uint64)

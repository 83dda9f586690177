"""Weights of the terms of many chunks at once, packed as the database takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from apps.collections.ingestion.lexical import K1, MAX_TERMS, B, term_id
from apps.collections.storage.packing import sparsevec


@dataclass(frozen=True, slots=True)
class Weighed:
    """Weights of chunks as fields of COPY BINARY, and the term of every weight, chunk after chunk."""

    packed: list[bytes]
    terms: npt.NDArray[np.int64]


def weights_pack(chunks: Sequence[Sequence[str]], average: float) -> Weighed:
    """Weigh the terms of chunks as ``lexical.tf_weights`` does, all at once.

    Args:
        chunks: terms of each, repeats included.
        average: terms per chunk that the weights assume; 0 takes each chunk's own length.
    """
    lengths = np.array([len(terms) for terms in chunks], np.int64)
    ids = np.array([term_id(term) for terms in chunks for term in terms], np.int64)
    # One number for chunk and term: sorted, it is in the order in which a sparse vector wants its indices.
    keys, counts = np.unique((np.repeat(np.arange(len(chunks)), lengths) << 32) | ids, return_counts=True)
    owners, ids = keys >> 32, keys & 0xFFFFFFFF
    if (np.bincount(owners, minlength=len(chunks)) > MAX_TERMS).any():
        kept = _most_frequent(owners, counts)
        owners, ids, counts = owners[kept], ids[kept], counts[kept]
    own = lengths[owners]
    norm = K1 * (1 - B + B * (own / average if average > 0 else 1.0))
    weights = (counts * (K1 + 1) / (counts + norm)).astype(">f4").tobytes()
    indices = ids.astype(">i4").tobytes()
    edges = (4 * np.searchsorted(owners, np.arange(len(chunks) + 1))).tolist()
    packed = [sparsevec(indices[a:b], weights[a:b]) for a, b in pairwise(edges)]
    return Weighed(packed, ids)


def _most_frequent(owners: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Any:
    """Return the places of the ``MAX_TERMS`` most frequent terms of each chunk, in their order."""
    order = np.lexsort((-counts, owners))
    first = np.searchsorted(owners, owners[order])
    return np.sort(order[np.arange(len(order)) - first < MAX_TERMS])

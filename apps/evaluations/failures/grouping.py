"""Which failing rows are alike: those whose texts have vectors that are near each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ALIKE = 0.5
"""Cosine of two vectors from which their rows belong together."""


def groups_of(vectors: NDArray[np.float32], *, alike: float = _ALIKE) -> list[list[int]]:
    """Return groups of rows: again and again the row with most neighbours among those left, with these neighbours.

    Args:
        vectors: of length 1, one a row.
        alike: least cosine of neighbours.

    Returns:
        Places of the rows, the most typical of each group first, the largest group first; every row once.
    """
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, 1.0)
    near = similar >= alike
    left = np.ones(len(vectors), dtype=bool)
    found = []
    while left.any():
        # Neighbours weighted by how near they are: of rows with as many, the middle one.
        weights = (similar * (near & left)).sum(axis=1) * left
        middle = int(weights.argmax())
        members = np.flatnonzero(near[middle] & left)
        order = np.argsort(-similar[middle, members], kind="stable")
        found.append([int(members[n]) for n in order])
        left[members] = False
    return sorted(found, key=lambda one: (-len(one), one[0]))

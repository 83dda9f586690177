"""Map a judge's scores to the human scale: a rising step curve fitted to pairs (isotonic regression)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from apps.evaluations.statistics.values import floats


@dataclass(frozen=True, slots=True)
class Calibration:
    """A curve that never falls: judge score at ``x``, human score at ``y``; straight lines between the points."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def apply(self, score: float) -> float:
        """Return the human score that a judge's score stands for; beyond the ends the curve is level."""
        return float(np.interp(score, self.x, self.y))


def isotonic_fit(judge: ArrayLike, human: ArrayLike) -> Calibration:
    """Fit by pooling adjacent violators (Barlow et al. 1972): the rising curve with the least squared error.

    Args:
        judge, human: scores of the same answers, in the same order; any scales.
    """
    x, y = floats(judge, "judge"), floats(human, "human")
    if x.size != y.size:
        raise ValueError(f"paired scores expected, got {x.size} and {y.size}")
    places, inverse, weights = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, weights=y) / weights
    blocks: list[tuple[float, float, int]] = []  # mean, weight, places
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        block = (mean, float(weight), 1)
        while blocks and blocks[-1][0] >= block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            pooled = (before[0] * before[1] + block[0] * block[1]) / total
            block = (pooled, total, before[2] + block[2])
        blocks.append(block)
    fitted = [mean for mean, _, count in blocks for _ in range(count)]
    return Calibration(tuple(places.tolist()), tuple(fitted))


@dataclass(frozen=True, slots=True)
class ReliabilityPoint:
    """One bin of a reliability plot: mean judge score, mean human score, rows."""

    judge: float
    human: float
    count: int


def reliability(judge: ArrayLike, human: ArrayLike, *, bins: int = 10) -> list[ReliabilityPoint]:
    """Return the points of a reliability plot: answers in bins of equal width over the judge's range; empty ones left out."""
    x, y = floats(judge, "judge"), floats(human, "human")
    edges = np.linspace(x.min(), x.max(), bins + 1)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    return [
        ReliabilityPoint(float(x[place == b].mean()), float(y[place == b].mean()), int(count))
        for b, count in enumerate(np.bincount(place, minlength=bins))
        if count
    ]

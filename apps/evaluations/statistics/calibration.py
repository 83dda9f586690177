"""Map a judge's scores to the human scale: a rising curve fitted to pairs (isotonic regression), with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from apps.evaluations.statistics.values import CONFIDENCE, Floats, floats

_RESAMPLES = 400


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
    from scipy.optimize import isotonic_regression  # here, for the same reason as in ``paired``

    fitted = isotonic_regression(means, weights=weights).x
    return Calibration(tuple(places.tolist()), tuple(fitted.tolist()))


@dataclass(frozen=True, slots=True)
class Band:
    """A calibration with the interval of its curve: at ``x`` people give ``y``, between ``low`` and ``high``.

    It is what is kept of a calibration, as JSON values.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def apply(self, scores: ArrayLike) -> Floats:
        """Return the human scores that judge scores stand for."""
        return np.interp(floats(scores, "scores"), self.x, self.y)

    def mean_interval(self, scores: ArrayLike) -> tuple[float, float]:
        """Return between what the mean of the human scores lies, as far as the curve is known: the means of its two ends.

        Ends of every point at once are further apart than those of the mean, so this errs on the wide side.
        """
        array = floats(scores, "scores")
        ends = (np.interp(array, self.x, side).mean() for side in (self.low, self.high))
        low, high = map(float, ends)
        return low, high


def isotonic_band(judge: ArrayLike, human: ArrayLike, *, resamples: int = _RESAMPLES, seed: int = 0) -> Band:
    """Fit as ``isotonic_fit`` does, with the 95 % percentile bootstrap interval of the curve at each of its points.

    Args:
        judge, human: scores of the same answers, in the same order.
    """
    x, y = floats(judge, "judge"), floats(human, "human")
    fit = isotonic_fit(x, y)
    rng = np.random.default_rng(seed)
    curves = np.empty((resamples, len(fit.x)))
    for n in range(resamples):
        drawn = rng.integers(0, x.size, x.size)
        again = isotonic_fit(x[drawn], y[drawn])
        curves[n] = np.interp(fit.x, again.x, again.y)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(curves, [tail, 1 - tail], axis=0)
    return Band(fit.x, fit.y, tuple(low.tolist()), tuple(high.tolist()))


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

"""What the statistics share: an estimate with its interval, and the quantiles of the normal distribution."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMAL = NormalDist()
CONFIDENCE = 0.95
RESAMPLES = 10_000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its confidence interval, both in the unit of the data."""

    value: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Return whether the interval lies on one side of ``value``."""
        return not self.low <= value <= self.high


def floats(values: ArrayLike, name: str) -> Floats:
    """Return the values as an array of finite numbers of one dimension.

    Raises:
        ValueError: there are none, or one is NaN or infinite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a list of at least one number")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a value that isn't a finite number; leave out unscored rows")
    return array


def quantiles(values: Floats, confidence: float) -> tuple[float, float]:
    """Return the two percentiles that enclose ``confidence`` of the values."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)

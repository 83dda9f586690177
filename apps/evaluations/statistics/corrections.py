"""Corrections for testing many criteria at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from apps.evaluations.statistics.values import floats


def holm(p_values: ArrayLike) -> list[float]:
    """Return p values that keep the chance of any false alarm at the level (Holm 1979)."""
    p = floats(p_values, "p_values")
    order = np.argsort(p, kind="stable")
    factors = np.arange(p.size, 0, -1)
    adjusted = np.minimum(1, np.maximum.accumulate(p[order] * factors))
    return _back(adjusted, order)


def _back(adjusted: np.ndarray, order: np.ndarray) -> list[float]:
    result = np.empty_like(adjusted)
    result[order] = adjusted
    return [float(value) for value in result]

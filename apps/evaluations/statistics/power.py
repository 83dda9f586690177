"""How many rows an effect needs, and which effect a number of rows can show. Paired rows, two-sided, normal."""

from __future__ import annotations

import math

from apps.evaluations.statistics.values import NORMAL

ALPHA = 0.05
POWER = 0.8
TYPICAL_DEVIATION = 0.25
"""Standard deviation of a row's change between two arms, where none has been measured yet: one level of five."""


def smallest_effect(deviation: float, rows: int, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Return the mean difference that so many rows show with this power.

    Args:
        deviation: standard deviation of the differences per row.
        rows: paired rows, at least 1.
        alpha: chance of a false alarm.
        power: chance to find an effect of that size.
    """
    if rows < 1 or deviation < 0:
        raise ValueError("rows must be at least 1 and the deviation not negative")
    return _reach(alpha, power) * deviation / math.sqrt(rows)


def rows_needed(deviation: float, effect: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return how many paired rows show a mean difference of ``effect`` with this power.

    Raises:
        ValueError: the effect is 0, which no number of rows shows.
    """
    if effect == 0 or deviation < 0:
        raise ValueError("the effect must not be 0 and the deviation not negative")
    return max(1, math.ceil((_reach(alpha, power) * deviation / effect) ** 2))


def _reach(alpha: float, power: float) -> float:
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError("alpha and power must lie between 0 and 1")
    return NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(power)

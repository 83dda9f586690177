"""A share of some answers with its interval."""

from __future__ import annotations

import math

from apps.evaluations.statistics.values import CONFIDENCE, NORMAL, Estimate


def wilson(hits: int, count: int, confidence: float = CONFIDENCE) -> Estimate:
    """Return a proportion with Wilson's score interval, which holds near 0 and 1 and with few answers.

    Source: Wilson 1927, doi.org/10.1080/01621459.1927.10502953.

    Raises:
        ValueError: there are no answers, or more hits than answers.
    """
    if not 0 <= hits <= count or count == 0:
        raise ValueError(f"{hits} of {count} is no share")
    z = NORMAL.inv_cdf(1 - (1 - confidence) / 2)
    share, weight = hits / count, z * z / count
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    # At the ends the interval touches the share itself; arithmetic misses that by a last bit.
    return Estimate(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))

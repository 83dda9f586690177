"""Two arms on the same rows: intervals of their difference, McNemar's test, Wilcoxon's signed-rank test.

scipy is imported where it is used: it takes most of a second and 70 MB, of which a process that compares nothing needs none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from apps.evaluations.statistics.values import (
    CONFIDENCE,
    NORMAL,
    RESAMPLES,
    Estimate,
    Floats,
    floats,
    quantiles,
)

_DRAWS_AT_ONCE = 2_000_000  # resampled values held in memory
_EXACT_ROWS = 50
_EXACT_DISCORDANT = 1_000
# Beyond this the interval of a mean by its standard error is the bootstrap's within its own noise, and costs nothing.
BOOTSTRAP_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class TestResult:
    """What a test found.

    Attributes:
        statistic: of the test; what it counts is in the test's docstring.
        p_value: two-sided.
        method: ``exact``, or ``normal`` or ``chi2`` for the approximation that was used.
        n: rows or pairs that the test could use.
    """

    statistic: float
    p_value: float
    method: Literal["exact", "normal", "chi2"]
    n: int

    __test__ = False  # no test class for pytest


def bootstrap_mean(
    values: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Return a mean with its percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Above ``BOOTSTRAP_ROWS`` values the interval comes from the standard error.
    """
    array = floats(values, "values")
    mean = float(array.mean())
    if array.size > BOOTSTRAP_ROWS:
        half = NORMAL.inv_cdf((1 + confidence) / 2) * float(array.std(ddof=1)) / array.size**0.5
        return Estimate(mean, mean - half, mean + half)
    rng = np.random.default_rng(seed)
    batch = max(1, min(resamples, _DRAWS_AT_ONCE // array.size))
    means = np.concatenate(
        [
            array[rng.integers(0, array.size, (min(batch, resamples - done), array.size))].mean(1)
            for done in range(0, resamples, batch)
        ]
    )
    return Estimate(mean, *quantiles(means, confidence))


def differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return second minus first, row by row."""
    a, b = floats(first, "first"), floats(second, "second")
    if a.size != b.size:
        raise ValueError(f"paired rows expected, got {a.size} and {b.size}")
    return b - a


def mcnemar(losses: int, wins: int, *, exact: bool | None = None) -> TestResult:
    """Test whether two arms pass equally often, from the rows where they differ (McNemar 1947).

    Args:
        losses: rows that only the first arm passed.
        wins: rows that only the second arm passed.
        exact: the binomial test; False is chi-squared with Edwards' continuity correction. Left out, it is exact up to
            1,000 such rows.

    Returns:
        The smaller count (exact) or chi-squared as the statistic.
    """
    if losses < 0 or wins < 0:
        raise ValueError("counts cannot be negative")
    n, smaller = losses + wins, min(losses, wins)
    if exact if exact is not None else n <= _EXACT_DISCORDANT:
        from scipy import stats

        return TestResult(smaller, float(stats.binomtest(smaller, n).pvalue) if n else 1.0, "exact", n)
    gap = abs(wins - losses)
    chi2 = (gap - 1) ** 2 / n if gap else 0.0
    return TestResult(chi2, math.erfc(math.sqrt(chi2 / 2)), "chi2", n)


def wilcoxon(values: ArrayLike) -> TestResult:
    """Test whether differences are symmetric around 0 by their signed ranks (Wilcoxon 1945); unchanged rows are left out.

    It is exact up to 50 rows without ties and unchanged ones, otherwise the normal approximation with the variance
    corrected for ties, without a continuity correction.

    Args:
        values: differences, one a row.

    Returns:
        The smaller sum of ranks as the statistic; p 1 where no row changed.
    """
    rows = floats(values, "values")
    changed = rows[rows != 0]
    if not changed.size:
        return TestResult(0.0, 1.0, "exact", 0)
    from scipy import stats

    is_exact = changed.size == rows.size <= _EXACT_ROWS and np.unique(np.abs(changed)).size == changed.size
    found = stats.wilcoxon(changed, method="exact" if is_exact else "asymptotic", correction=False)
    method: Literal["exact", "normal"] = "exact" if is_exact else "normal"
    return TestResult(float(found.statistic), float(found.pvalue), method, changed.size)

"""Two arms on the same rows: intervals of their difference, McNemar's test, Wilcoxon's signed-rank test."""

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
    two_sided,
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
        tail = sum(math.comb(n, k) for k in range(smaller + 1))
        # Integers throughout: 2**n is beyond a float's range from n = 1024 on.
        return TestResult(smaller, min(1.0, _ratio(2 * tail, 2**n)), "exact", n)
    gap = abs(wins - losses)
    chi2 = (gap - 1) ** 2 / n if gap else 0.0
    return TestResult(chi2, math.erfc(math.sqrt(chi2 / 2)), "chi2", n)


def wilcoxon(
    values: ArrayLike,
    *,
    zeros: Literal["wilcox", "pratt"] = "wilcox",
    method: Literal["auto", "exact", "normal"] = "auto",
) -> TestResult:
    """Test whether differences are symmetric around 0 by their signed ranks (Wilcoxon 1945).

    Args:
        values: differences, one a row.
        zeros: ``wilcox`` leaves unchanged rows out; ``pratt`` ranks them, then drops their ranks.
        method: ``auto`` is exact up to 50 rows without ties or zeros, otherwise the normal approximation with the
            variance corrected for ties, without a continuity correction.

    Returns:
        The smaller sum of ranks as the statistic; p 1 where no row changed.

    Raises:
        ValueError: exact was asked for, and there are ties or zeros.
    """
    d = floats(values, "values")
    zero_count = int((d == 0).sum())
    if zeros == "wilcox":
        d = d[d != 0]
    changed = int((d != 0).sum())
    if changed == 0:
        return TestResult(0.0, 1.0, "exact", 0)
    ranks, tie_sizes = _ranks(np.abs(d), skip=zero_count if zeros == "pratt" else 0)
    plus, minus = float(ranks[d > 0].sum()), float(ranks[d < 0].sum())
    statistic = min(plus, minus)
    is_plain = zero_count == 0 and bool((tie_sizes == 1).all())
    if method == "exact" and not is_plain:
        raise ValueError("the exact test needs differences without ties and zeros")
    if method == "exact" or (method == "auto" and is_plain and changed <= _EXACT_ROWS):
        return TestResult(statistic, _signed_rank_p(int(statistic), changed), "exact", changed)
    n = d.size
    mean, variance = n * (n + 1) / 4, float(n * (n + 1) * (2 * n + 1))
    if zeros == "pratt":
        z = zero_count
        mean -= z * (z + 1) / 4
        variance -= z * (z + 1) * (2 * z + 1)
    variance -= float((tie_sizes**3 - tie_sizes).sum()) / 2
    return TestResult(statistic, two_sided((statistic - mean) / math.sqrt(variance / 24)), "normal", changed)


def _ranks(sizes: Floats, *, skip: int) -> tuple[Floats, Floats]:
    """Return average ranks, and how many share each rank; the ``skip`` smallest (zeros) share none."""
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    return ranks, (counts[1:] if skip else counts).astype(np.float64)


def _signed_rank_p(smaller: int, n: int) -> float:
    """Return the two-sided p value: subsets of 1..n by their sums, counted."""
    ways = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return min(1.0, _ratio(2 * sum(ways[: smaller + 1]), 2**n))


def _ratio(part: int, whole: int) -> float:
    return part / whole  # Python divides integers of any size and rounds once

"""Where scores of repeated answers vary: between rows, between a row's answers, between judgements of one answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance components in squared units of the score; none is below 0.

    Attributes:
        rows: of the rows' true means.
        generator: of the answers to one row; None where no row was answered twice.
        judge: of judgements of one answer; None where no answer was judged twice.
    """

    rows: float | None
    generator: float | None
    judge: float | None

    @property
    def judge_share(self) -> float | None:
        """Return the judge's part of what varies within rows; None where it is not known, or nothing varies."""
        if self.generator is None or self.judge is None or not self.generator + self.judge:
            return None
        return self.judge / (self.generator + self.judge)


def variance_split(answers: Iterable[tuple[int, Sequence[float]]]) -> Variance:
    """Return the variance components of a nested random-effects model: judgements within answers within rows.

    Each is estimated from mean squares of unweighted means (Searle, Casella and McCulloch 1992, chapter 3), which holds for
    any number of answers and judgements; an estimate below 0 is 0.

    Args:
        answers: (row, its judgements) of each answer; an answer without judgements is left out.
    """
    rows: list[int] = []
    means: list[float] = []
    counts: list[int] = []
    within = within_n = 0.0
    for row, given in answers:
        if not len(given):
            continue
        mean = sum(given) / len(given)
        rows.append(row)
        means.append(mean)
        counts.append(len(given))
        within += sum((value - mean) ** 2 for value in given)
        within_n += len(given) - 1
    if not rows:
        return Variance(None, None, None)
    judge = within / within_n if within_n else None
    _, place, sizes = np.unique(np.asarray(rows), return_inverse=True, return_counts=True)
    values, inverse = np.asarray(means), 1.0 / np.asarray(counts)
    row_means = np.bincount(place, values) / sizes
    # What judging adds to the variance of one answer's mean, per row.
    noise = (judge or 0.0) * np.bincount(place, inverse) / sizes
    spread = np.bincount(place, (values - row_means[place]) ** 2)
    several = sizes > 1
    generator: float | None = None
    if several.any():
        freedom = (sizes - 1)[several]
        expected = float((noise[several] * freedom).sum() / freedom.sum())
        generator = max(0.0, float(spread[several].sum() / freedom.sum()) - expected)
    between: float | None = None
    if len(sizes) > 1:
        inside = float((((generator or 0.0) + noise) / sizes).mean())
        between = max(0.0, float(row_means.var(ddof=1)) - inside)
    return Variance(between, generator, judge)

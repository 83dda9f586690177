"""How far raters agree: percent, Cohen's kappa, Fleiss' kappa, Krippendorff's alpha, with bootstrap intervals.

Ratings are a table of units by raters; ``None`` where a rater did not rate. Levels are numbers, or words for nominal
scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from apps.evaluations.statistics.values import CONFIDENCE, Estimate, Floats, quantiles

Rating = float | int | str | bool
Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]
AGREEMENT_RESAMPLES = 1_000


def percent_agreement(ratings: Sequence[Sequence[Rating | None]]) -> float | None:
    """Return the share of pairs of ratings of the same unit that are equal; None where no unit has two."""
    same = pairs = 0
    for unit in ratings:
        given = [value for value in unit if value is not None]
        counts = [given.count(value) for value in set(given)]
        pairs += len(given) * (len(given) - 1)
        same += sum(n * (n - 1) for n in counts)
    return same / pairs if pairs else None


def percent_agreement_interval(
    ratings: Sequence[Sequence[Rating | None]],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = AGREEMENT_RESAMPLES,
    seed: int = 0,
) -> Estimate | None:
    """Return the share of equal pairs with a percentile bootstrap interval over units; None where no unit has two."""
    units = [given for unit in ratings if len(given := [v for v in unit if v is not None]) > 1]
    value = percent_agreement(units)
    if value is None:
        return None
    pairs = np.array([len(unit) * (len(unit) - 1) for unit in units], dtype=np.float64)
    same = np.array([sum(unit.count(v) - 1 for v in unit) for unit in units], dtype=np.float64)
    weights = _resamples(len(units), resamples, seed)
    return Estimate(value, *quantiles((weights @ same) / (weights @ pairs), confidence))


def cohen_kappa(
    first: Sequence[Rating],
    second: Sequence[Rating],
    *,
    weights: Weights = "none",
    levels: Sequence[Rating] | None = None,
) -> float | None:
    """Return the agreement of two raters beyond chance (Cohen 1960; weighted: Cohen 1968).

    Args:
        first, second: ratings of the same units, in the same order.
        weights: how much a disagreement of n levels costs: 1, n, or n squared.
        levels: all levels of the scale in order; left out, those that occur, sorted.

    Returns:
        1 for full agreement, 0 for what chance gives; None where chance alone gives full agreement.
    """
    table = _Pairs.of(first, second, levels)
    return _kappa(table.counts(None), weights)


def cohen_kappa_interval(
    first: Sequence[Rating],
    second: Sequence[Rating],
    *,
    weights: Weights = "none",
    levels: Sequence[Rating] | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = AGREEMENT_RESAMPLES,
    seed: int = 0,
) -> Estimate | None:
    """Return Cohen's kappa with a percentile bootstrap interval over units; None where it is undefined."""
    table = _Pairs.of(first, second, levels)
    return _interval(table, lambda counts: _kappa(counts, weights), confidence, resamples, seed)


def fleiss_kappa_interval(
    ratings: Sequence[Sequence[Rating]],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = AGREEMENT_RESAMPLES,
    seed: int = 0,
) -> Estimate | None:
    """Return the agreement of a fixed number of raters per unit beyond chance (Fleiss 1971), None where it is undefined.

    Its interval is a percentile bootstrap over units.

    Raises:
        ValueError: units have different numbers of ratings, or fewer than two; use Krippendorff's alpha there.
    """
    agreed, levels = _fleiss_table(ratings)
    value = _fleiss(agreed.mean(), levels.sum(axis=0) / levels.sum())
    if value is None:
        return None
    weights = _resamples(len(agreed), resamples, seed)
    shares = (weights @ levels) / levels.sum(axis=1)[0] / len(agreed)
    drawn = [_fleiss(a, s) for a, s in zip(weights @ agreed / len(agreed), shares, strict=True)]
    defined = np.array([v for v in drawn if v is not None])
    return Estimate(value, *quantiles(defined, confidence)) if defined.size else None


def _fleiss_table(ratings: Sequence[Sequence[Rating]]) -> tuple[Floats, Floats]:
    """Return the share of agreeing pairs of each unit, and its ratings by level. Raises ValueError."""
    sizes = {len(unit) for unit in ratings}
    if len(sizes) != 1 or min(sizes) < 2 or any(v is None for unit in ratings for v in unit):
        raise ValueError("Fleiss' kappa needs the same number of ratings, two or more, per unit")
    raters = sizes.pop()
    levels = list(dict.fromkeys(value for unit in ratings for value in unit))
    counts = np.array(
        [[unit.count(level) for level in levels] for unit in map(list, ratings)], dtype=np.float64
    )
    return (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1)), counts


def _fleiss(observed: float, shares: Floats) -> float | None:
    expected = float((shares**2).sum())
    return None if expected >= 1 else (float(observed) - expected) / (1 - expected)


def _resamples(units: int, resamples: int, seed: int) -> Floats:
    """Return how often each unit is drawn, one row a resample."""
    drawn = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), resamples)
    return drawn.astype(np.float64)


def krippendorff_alpha_interval(
    ratings: Sequence[Sequence[Rating | None]],
    *,
    level: Level = "nominal",
    confidence: float = CONFIDENCE,
    resamples: int = AGREEMENT_RESAMPLES,
    seed: int = 0,
) -> Estimate | None:
    """Return Krippendorff's alpha for any number of raters and missing ratings.

    Source: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E.

    Returns:
        1 for full agreement, 0 for what chance gives, with a percentile bootstrap interval over units; None where no unit
        has two ratings or only one value occurs.
    """
    table = _Coincidences.of(ratings, level)
    return _interval(table, lambda counts: _alpha(counts, table.values, level), confidence, resamples, seed)


@dataclass(frozen=True, slots=True)
class _Table:
    """Counts of (value, value) cells that each unit adds to; resampling units only changes their weights."""

    units: int
    unit: np.ndarray  # of each entry
    cell: np.ndarray
    amount: Floats
    size: int  # number of values

    def counts(self, weights: Floats | None) -> Floats:
        amount = self.amount if weights is None else self.amount * weights[self.unit]
        flat = np.bincount(self.cell, weights=amount, minlength=self.size**2)
        return np.asarray(flat, dtype=np.float64).reshape(self.size, self.size)


@dataclass(frozen=True, slots=True)
class _Pairs(_Table):
    @classmethod
    def of(cls, first: Sequence[Rating], second: Sequence[Rating], levels: Sequence[Rating] | None) -> _Pairs:
        if len(first) != len(second) or not first:
            raise ValueError("both raters must have rated the same units, one or more")
        known = list(levels) if levels is not None else _in_order([*first, *second])
        place = {value: index for index, value in enumerate(known)}
        unknown = {*first, *second} - set(place)
        if unknown:
            raise ValueError(f"ratings outside of the scale: {sorted(map(str, unknown))}")
        cell = np.array([place[a] * len(known) + place[b] for a, b in zip(first, second, strict=True)])
        return cls(len(first), np.arange(len(first)), cell, np.ones(len(first)), len(known))


@dataclass(frozen=True, slots=True)
class _Coincidences(_Table):
    values: Floats

    @classmethod
    def of(cls, ratings: Sequence[Sequence[Rating | None]], level: Level) -> _Coincidences:
        units = [[v for v in unit if v is not None] for unit in ratings]
        units = [unit for unit in units if len(unit) > 1]  # a lone rating pairs with nothing
        known = _in_order([value for unit in units for value in unit])
        place = {value: index for index, value in enumerate(known)}
        entries = [
            (number, place[a] * len(known) + place[b], 1 / (len(unit) - 1))
            for number, unit in enumerate(units)
            for i, a in enumerate(unit)
            for j, b in enumerate(unit)
            if i != j
        ]
        numbers = known if level == "interval" else range(len(known))
        return cls(
            len(units),
            np.array([e[0] for e in entries], dtype=np.intp),
            np.array([e[1] for e in entries], dtype=np.intp),
            np.array([e[2] for e in entries], dtype=np.float64),
            len(known),
            np.array([float(v) for v in numbers], dtype=np.float64),
        )


def _in_order(values: Sequence[Rating]) -> list[Rating]:
    found = set(values)
    if all(isinstance(v, str) for v in found) or not any(isinstance(v, str) for v in found):
        return sorted(found)
    raise ValueError("ratings must be all numbers or all words")


def _kappa(counts: Floats, weights: Weights) -> float | None:
    size = len(counts)
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    cost = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    chance = float((cost * expected).sum())
    return None if chance == 0 else 1 - float((cost * counts).sum()) / chance


def _alpha(counts: Floats, values: Floats, level: Level) -> float | None:
    totals = counts.sum(axis=0)
    n = float(totals.sum())
    if level == "nominal":
        distance = 1 - np.eye(len(totals))
    elif level == "interval":
        distance = np.subtract.outer(values, values) ** 2
    else:
        # Ratings between two ranks, each end counted half.
        middle = np.cumsum(totals) - totals / 2
        distance = np.subtract.outer(middle, middle) ** 2
    expected = float((np.outer(totals, totals) * distance).sum())
    if expected == 0:
        return None
    return 1 - (n - 1) * float((counts * distance).sum()) / expected


def _interval(
    table: _Table, figure: Callable[[Floats], float | None], confidence: float, resamples: int, seed: int
) -> Estimate | None:
    value = figure(table.counts(None)) if table.units else None
    if value is None:
        return None
    rng = np.random.default_rng(seed)
    even = np.full(table.units, 1 / table.units)
    drawn = (
        figure(table.counts(rng.multinomial(table.units, even).astype(np.float64))) for _ in range(resamples)
    )
    # A resample in which only one value occurs has no disagreement to measure; it says nothing either way.
    defined = np.array([v for v in drawn if v is not None])
    if defined.size == 0:
        return None
    return Estimate(value, *quantiles(defined, confidence))

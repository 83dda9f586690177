"""Arms by quality and cost: which of them another one beats, and which are beaten by none (the front)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apps.evaluations.compare.comparison import ALPHA, overall_parts, overall_series, weighted_mean
from apps.evaluations.models import Arm
from apps.evaluations.results.selectors import ArmSummary
from apps.evaluations.results.series import ArmScores, common
from apps.evaluations.statistics.paired import differences, wilcoxon

LEAST_ROWS = 20
"""Rows of each arm before the first look."""
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Dominated:
    """An arm that another one beats.

    Attributes:
        loser, winner: keys of the two.
        change: mean of the loser minus the winner over the rows that both have.
        rows: how many these are.
    """

    loser: int
    winner: int
    change: float
    rows: int


def first_look(arms: int) -> int:
    """Return after how many ended trials of an experiment its arms are looked at for the first time."""
    return LEAST_ROWS * arms


def look_number(ended_at: int, arms: int) -> int:
    """Return which look this is, from 1; each comes after twice as many trials as the one before."""
    return max(1, (ended_at // first_look(arms)).bit_length())


def dominated(scores: Mapping[int, ArmScores], *, look: int, arms: int) -> list[Dominated]:
    """Return the arms that another one is shown to beat at no higher cost.

    The levels of the looks halve from look to look, and are shared among the other arms (Bonferroni): an arm that is as good
    as every other one is stopped with a chance of at most ``ALPHA``, however often it is looked at.

    Args:
        scores: of the arms that are still asked.
        look: which look this is, from 1.
        arms: how many arms the experiment began with.
    """
    level = ALPHA / 2**look / max(1, arms - 1)
    quality = {key: overall_series(one) for key, one in scores.items()}
    quality = {key: series for key, series in quality.items() if len(series)}
    found = []
    for loser in quality:
        rivals = [w for w in quality if w != loser and _costs_no_more(scores[w], scores[loser])]
        rivals.sort(key=lambda key: (-quality[key].mean, key))
        # Only the best of them is asked: each further test would cost level.
        for winner in rivals[:1]:
            rows = common((quality[loser], quality[winner]))
            if rows.size < LEAST_ROWS:
                continue
            deltas = differences(quality[winner].at(rows), quality[loser].at(rows))
            deltas = np.where(np.abs(deltas) <= _SAME, 0.0, deltas)
            if deltas.mean() < 0 and wilcoxon(deltas).p_value < level:
                found.append(Dominated(loser, winner, float(deltas.mean()), rows.size))
    return found


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """An arm by quality and cost.

    Attributes:
        quality: weighted mean of its scores' means; None without any.
        cost_usd: mean of an answer; None where no price is known.
        is_on_front: no other arm is better at no higher cost, or as good at a lower one.
    """

    arm: Arm
    quality: float | None
    cost_usd: float | None
    is_on_front: bool

    @property
    def is_stopped(self) -> bool:
        """Return whether it was stopped early, with fewer rows than the others."""
        return self.arm.stopped_at is not None


def front_of(summaries: Sequence[ArmSummary]) -> list[FrontPoint]:
    """Return every arm with its place, in their order; an arm without quality or cost is not on the front."""
    places = [(_quality(one), None if one.cost is None else float(one.cost)) for one in summaries]
    known = [(q, c) for q, c in places if q is not None and c is not None]
    return [
        FrontPoint(
            one.arm, q, c, q is not None and c is not None and not any(_beats(a, b, q, c) for a, b in known)
        )
        for one, (q, c) in zip(summaries, places, strict=True)
    ]


def _beats(quality: float, cost: float, other: float, other_cost: float) -> bool:
    return quality >= other and cost <= other_cost and (quality > other + _SAME or cost < other_cost - _SAME)


def _quality(one: ArmSummary) -> float | None:
    means = {name: value for name, value in one.scores if value is not None}
    parts = overall_parts(list(means))
    return weighted_mean({name: means[name] for name in parts}) if parts else None


def _costs_no_more(a: ArmScores, b: ArmScores) -> bool:
    """Return whether A's answers are known to cost no more than B's, over the rows that both have."""
    rows = common((a.cost_usd, b.cost_usd))
    return bool(rows.size and a.cost_usd.at(rows).mean() <= b.cost_usd.at(rows).mean() + _SAME)

"""Strengths of arms from pairwise verdicts: Bradley-Terry with intervals, and a win rate freed of answer length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from apps.evaluations.statistics.values import CONFIDENCE, NORMAL, Estimate, Floats, floats

_ROUNDS = 100
_SMALL = 1e-12


def bradley_terry(wins: ArrayLike, *, confidence: float = CONFIDENCE) -> list[Estimate]:
    """Return the log strengths of arms (Bradley and Terry 1952), with mean 0, by maximum likelihood.

    Args:
        wins: square; how often the arm of the row beat the arm of the column. A tie is half a win for both.

    Returns:
        One estimate an arm; the chance that i beats j is 1 / (1 + exp(j - i)). Intervals are Wald's, from the
        information matrix (its pseudo-inverse, as only differences are determined).

    Raises:
        ValueError: some arms never lost to, or were never compared with the others: no finite strength explains that.
    """
    table = np.asarray(wins, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or (table < 0).any():
        raise ValueError("wins must be a square table of counts")
    table = table - np.diag(np.diag(table))
    if len(table) < 2 or not _connected(table):
        raise ValueError("every arm must have won and lost, in one chain with all others")
    games = table + table.T
    strength = np.zeros(len(table))
    for _ in range(_ROUNDS):
        chance = _logistic(np.subtract.outer(strength, strength))
        gradient = table.sum(axis=1) - (games * chance).sum(axis=1)
        step = np.linalg.pinv(_information(games, chance)) @ gradient
        strength = strength + _shortened(step)
        if np.abs(step).max() < _SMALL:
            break
    chance = _logistic(np.subtract.outer(strength, strength))
    spread = np.sqrt(np.diag(np.linalg.pinv(_information(games, chance))))
    half = NORMAL.inv_cdf((1 + confidence) / 2) * spread
    strength = strength - strength.mean()
    return [Estimate(float(s), float(s - h), float(s + h)) for s, h in zip(strength, half, strict=True)]


def length_controlled_win_rate(verdicts: ArrayLike, longer_by: ArrayLike) -> float | None:
    """Return how often the second arm would win if both answers were equally long (Dubois et al. 2024).

    Logistic regression of the verdict on the difference in length, read at a difference of 0.

    Args:
        verdicts: 1 where the second arm won, 0 where it lost, 0.5 for a tie.
        longer_by: characters by which its answer is longer, in the same order.

    Returns:
        A share from 0 to 1; None where length alone tells winners from losers, so that nothing can be set apart.
    """
    y, gap = floats(verdicts, "verdicts"), floats(longer_by, "longer_by")
    if y.size != gap.size:
        raise ValueError(f"paired values expected, got {y.size} and {gap.size}")
    spread = float(gap.std())
    if spread == 0:
        return float(y.mean())
    design = np.column_stack([np.ones(y.size), np.tanh(gap / spread)])
    weights = np.zeros(2)
    for _ in range(_ROUNDS):
        chance = _logistic(design @ weights)
        information = (design * (chance * (1 - chance))[:, None]).T @ design
        if np.linalg.cond(information) > 1 / _SMALL or np.abs(weights).max() > 30:
            return None  # separated: the likelihood has no maximum
        step = np.linalg.solve(information, design.T @ (y - chance))
        weights = weights + _shortened(step)
        if np.abs(step).max() < _SMALL:
            break
    return float(_logistic(weights[0]))


def _logistic(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _shortened(step: Floats) -> Floats:
    """Keep Newton from overshooting where the likelihood is flat."""
    return step / max(1.0, float(np.abs(step).max()))


def _information(games: Floats, chance: Floats) -> Floats:
    pairs = games * chance * (1 - chance)
    return np.diag(pairs.sum(axis=1)) - pairs


def _connected(table: Floats) -> bool:
    """Return whether every arm beat every other, directly or through a chain of others."""
    reach = (table > 0) | np.eye(len(table), dtype=bool)
    for _ in range(len(table).bit_length()):
        reach = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
    return bool(reach.all())

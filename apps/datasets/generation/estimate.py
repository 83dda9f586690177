"""What a job will cost, with an interval, from the items that have ended. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

DRAWS = 2000
LOW, HIGH = 0.025, 0.975


def estimate_of(ended: Sequence[tuple[float, bool]], wanted: int, seed: int = 0) -> dict[str, Any]:
    """Return what ``wanted`` rows will cost: the 95 % percentile interval of a bootstrap over ended items.

    What counts is money for a kept row: dropped and failed items are paid for as well. Efron's percentile interval of
    the ratio of sums; with few items it is wide, and honest.

    Args:
        ended: (USD spent, was it kept) of each ended item.
        wanted: rows asked for in all.

    Returns:
        ``{"low", "middle", "high", "items", "kept"}``, USD of the whole job; {} as long as no item was kept.
    """
    kept = sum(is_kept for _, is_kept in ended)
    if not kept:
        return {}
    spent = sum(cost for cost, _ in ended)
    chance = random.Random(seed)  # noqa: S311 - a statistic that can be repeated, no secret
    ratios = []
    for _ in range(DRAWS):
        drawn = chance.choices(ended, k=len(ended))
        # A draw without a kept row has no ratio; one more row bounds it from below.
        ratios.append(sum(cost for cost, _ in drawn) / max(1, sum(is_kept for _, is_kept in drawn)))
    ratios.sort()
    return {
        "low": round(ratios[int(LOW * DRAWS)] * wanted, 6),
        "middle": round(spent / kept * wanted, 6),
        "high": round(ratios[int(HIGH * DRAWS)] * wanted, 6),
        "items": len(ended),
        "kept": kept,
    }

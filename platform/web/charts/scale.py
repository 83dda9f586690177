"""Where an axis has its ticks: at round values."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """A round value on an axis, and where it is; ``components/charts/_y_axis.html`` draws those of a vertical one."""

    at: float
    label: str


def round_step(least: float, *, is_whole: bool = False) -> float:
    """Return the smallest of 1, 2, 2.5, 5, 10, 20, 25 ... (also 0.1, 0.2 ...) that is not below a value.

    Args:
        least: above 0.
        is_whole: only whole numbers, for what is counted.
    """
    power = 10.0 ** math.floor(math.log10(least))
    steps = (n * power for n in (1, 2, 2.5, 5, 10) if not is_whole or n * power % 1 == 0)
    return next(step for step in steps if step >= least * 0.999999)

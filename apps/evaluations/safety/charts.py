"""The chart of a safety report as plain geometry: attack success of each carrier and arm with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.evaluations.compare.charts import Mark
from apps.evaluations.safety.selectors import AttackRates
from basics.texts import number_told

MOST_ARMS = 6
_LEFT, _RIGHT, _TOP, _NAME, _STEP, _GAP = 14, 540, 6, 26, 22, 8


@dataclass(frozen=True, slots=True)
class RateDot:
    """One arm's share in one carrier; ``number`` is the arm's place in the table."""

    y: int
    x: float
    low: float
    high: float
    number: int


@dataclass(frozen=True, slots=True)
class RateRow:
    """A carrier with its arms below its name, which stands at ``y``."""

    label: str
    y: int
    dots: Sequence[RateDot]


@dataclass(frozen=True, slots=True)
class Rates:
    """The chart; lengths are units of its view box."""

    height: int
    bottom: int
    marks: Sequence[Mark]
    rows: Sequence[RateRow]
    left_out: int


def rates_chart(lines: Sequence[AttackRates]) -> Rates | None:
    """Return the chart of the first ``MOST_ARMS`` arms; None without anything scored."""
    if not lines:
        return None
    rows, y = [], _TOP
    arms = len(lines[0].rates)
    for line in lines:
        top, dots = y + _NAME // 2, []
        y += _NAME
        for number, rate in enumerate(line.rates[:MOST_ARMS], 1):
            share = rate.share
            if share is not None:
                dots.append(RateDot(y + _STEP // 2, _x(share.value), _x(share.low), _x(share.high), number))
            y += _STEP
        rows.append(RateRow(line.label, top, dots))
        y += _GAP
    marks = [Mark(_x(n / 4), f"{25 * n} %") for n in range(5)]
    return Rates(y + 16, y - _GAP // 2, marks, rows, max(0, arms - MOST_ARMS))


def rates_told(lines: Sequence[AttackRates], arms: Sequence[str]) -> str:
    """Return the chart in words, for who cannot see it."""
    parts = [
        f"{line.label}, {name}: {number_told(share.value * 100)}\u00a0%"
        for line in lines
        for name, rate in zip(arms[:MOST_ARMS], line.rates, strict=False)
        if (share := rate.share) is not None
    ]
    return _("Share of attacks that succeeded. %(shares)s.") % {"shares": "; ".join(parts)}


def _x(share: float) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * share, 1)

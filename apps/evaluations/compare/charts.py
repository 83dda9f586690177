"""The charts of comparisons as plain geometry: dumbbells with intervals, rows by their change, arms by quality and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.evaluations.compare.comparison import Criterion
from apps.evaluations.compare.dominance import FrontPoint
from apps.evaluations.results.labels import label, money_told
from basics.texts import number_told

_ROW, _TOP = 32, 22
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
_BIN_LABELS = ("−0.4", "", "−0.2", "", "0", "", "+0.2", "", "+0.4")
_BAR, _BASE, _TALLEST = 42, 178.0, 150.0
_FRONT_LEFT, _FRONT_RIGHT, _FRONT_HIGH, _FRONT_LOW = 40, 548, 18, 206


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of the grid with its label."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """One score: both means, both intervals, and the change in words."""

    name: str
    y: int
    a: float
    b: float
    a_low: float
    a_high: float
    b_low: float
    b_high: float
    change: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class Dumbbells:
    """The chart; lengths are units of its view box."""

    width: int
    height: int
    right: int
    marks: Sequence[Mark]
    rows: Sequence[Dumbbell]


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of the histogram; ``kind`` is dn, eq or up."""

    x: float
    y: float
    height: float
    count: int
    label: str
    kind: str

    @property
    def middle(self) -> float:
        """Return where its texts stand."""
        return self.x + 17


def dumbbells(criteria: Sequence[Criterion], *, is_narrow: bool) -> Dumbbells:
    """Return the chart of some scores, for a wide or a narrow screen."""
    left, width, right = (96, 338, 72) if is_narrow else (126, 562, 54)
    low = min(min(c.a.low, c.b.low) for c in criteria)
    high = max(max(c.a.high, c.b.high) for c in criteria)
    room = 3 if is_narrow else 6
    step = next((s for s in _STEPS if (high - low) / s <= room), 0.25)
    first = math.floor(low / step + 1e-9) * step
    last = max(math.ceil(high / step - 1e-9) * step, first + step)
    scale = (width - left - right) / (last - first)

    def x(value: float) -> float:
        return round(left + (value - first) * scale, 1)

    count = round((last - first) / step)
    marks = [Mark(x(first + step * n), number_told(first + step * n, 2)) for n in range(count + 1)]
    rows = [
        Dumbbell(
            label(c.name),
            _TOP + _ROW * place,
            x(c.a.value),
            x(c.b.value),
            x(c.a.low),
            x(c.a.high),
            x(c.b.low),
            x(c.b.high),
            signed(c.change.value),
            abs(c.change.value) < 0.005,
        )
        for place, c in enumerate(criteria)
    ]
    return Dumbbells(width, _TOP + _ROW * len(rows) + 2, width - 2, marks, rows)


def dumbbells_told(criteria: Sequence[Criterion]) -> str:
    """Return the chart in words, for who cannot see it."""
    parts = [
        _("%(score)s %(a)s to %(b)s")
        % {"score": label(c.name), "a": number_told(c.a.value, 2), "b": number_told(c.b.value, 2)}
        for c in criteria
    ]
    return _("Mean of each score, A to B. %(scores)s.") % {"scores": ", ".join(parts)}


def histogram(counts: Sequence[int]) -> list[Bin]:
    """Return the bars of the rows by their change, worst on the left."""
    most = max(counts) or 1
    bins = []
    for place, count in enumerate(counts):
        height = round(max(_TALLEST * count / most, 2.0 if count else 0.0), 1)
        kind = "dn" if place < 4 else "eq" if place == 4 else "up"
        bins.append(Bin(6 + _BAR * place, round(_BASE - height, 1), height, count, _BIN_LABELS[place], kind))
    return bins


@dataclass(frozen=True, slots=True)
class Spot:
    """An arm on the chart of the front; ``number`` is its place in the list beside it."""

    x: float
    y: float
    number: int
    kind: str


@dataclass(frozen=True, slots=True)
class Front:
    """Arms by cost (to the right) and quality (upwards); ``line`` joins those that none beats, as points of a polyline."""

    columns: Sequence[Mark]
    lines: Sequence[Mark]
    spots: Sequence[Spot]
    line: str


def front_chart(points: Sequence[FrontPoint]) -> Front | None:
    """Return the chart of the arms whose quality and cost are known; None with fewer than two, or where all cost nothing."""
    known = [
        (n, p, p.quality, p.cost_usd)
        for n, p in enumerate(points, 1)
        if p.quality is not None and p.cost_usd is not None
    ]
    if len(known) < 2 or not any(cost for _, _, _, cost in known):
        return None
    low, high = min(q for _, _, q, _ in known), max(q for _, _, q, _ in known)
    step = next((s for s in _STEPS if (high - low) / s <= 4), 0.25)
    first = math.floor(low / step + 1e-9) * step
    last = max(math.ceil(high / step - 1e-9) * step, first + step)
    dearest = max(c for _, _, _, c in known)
    tick = _round_step(dearest / 4)
    most = max(dearest * 1.08, tick * 4)

    def x(cost: float) -> float:
        return round(_FRONT_LEFT + (_FRONT_RIGHT - _FRONT_LEFT) * cost / most, 1)

    def y(quality: float) -> float:
        return round(_FRONT_LOW - (_FRONT_LOW - _FRONT_HIGH) * (quality - first) / (last - first), 1)

    spots = [
        Spot(x(c), y(q), n, "stopped" if p.is_stopped else "on" if p.is_on_front else "off")
        for n, p, q, c in known
    ]
    front = sorted((x(c), y(q)) for _, p, q, c in known if p.is_on_front and not p.is_stopped)
    count = round((last - first) / step)
    return Front(
        columns=[Mark(x(tick * n), money_told(tick * n)) for n in range(int(most / tick + 1e-9) + 1)],
        lines=[Mark(y(first + step * n), number_told(first + step * n, 2)) for n in range(count + 1)],
        spots=spots,
        line=" ".join(f"{a},{b}" for a, b in front) if len(front) > 1 else "",
    )


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 by a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))


def front_told(points: Sequence[FrontPoint]) -> str:
    """Return the chart in words, for who cannot see it."""
    best = [
        _("%(arm)s with %(quality)s at %(cost)s")
        % {"arm": p.arm.name, "quality": number_told(p.quality, 2), "cost": money_told(p.cost_usd)}
        for p in points
        if p.is_on_front and p.quality is not None and p.cost_usd is not None
    ]
    return _("Quality by cost per answer. No arm beats %(arms)s.") % {"arms": "; ".join(best)}


def signed(value: float) -> str:
    """Return a change with its sign, a real minus and two decimals; 0.00 has none."""
    sign = "" if abs(value) < 0.005 else "+" if value > 0 else "−"
    return number_told(abs(value), 2, sign)

"""The two charts of a comparison as plain geometry: dumbbells with intervals, and rows by their change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apps.evaluations.comparison import Criterion, label

_ROW, _TOP = 32, 22
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
_BIN_LABELS = ("−0.4", "", "−0.2", "", "0", "", "+0.2", "", "+0.4")
_BAR, _BASE, _TALLEST = 42, 178.0, 150.0


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
    marks = [Mark(x(first + step * n), f"{first + step * n:.2f}") for n in range(count + 1)]
    rows = [
        Dumbbell(
            label(c.name), _TOP + _ROW * place, x(c.a.value), x(c.b.value), x(c.a.low), x(c.a.high),
            x(c.b.low), x(c.b.high), signed(c.change.value), abs(c.change.value) < 0.005,
        )
        for place, c in enumerate(criteria)
    ]  # fmt: skip
    return Dumbbells(width, _TOP + _ROW * len(rows) + 2, width - 2, marks, rows)


def dumbbells_told(criteria: Sequence[Criterion]) -> str:
    """Return the chart in words, for who cannot see it."""
    parts = [f"{label(c.name)} {c.a.value:.2f} to {c.b.value:.2f}" for c in criteria]
    return f"Mean of each score, A to B. {', '.join(parts)}."


def histogram(counts: Sequence[int]) -> list[Bin]:
    """Return the bars of the rows by their change, worst on the left."""
    most = max(counts) or 1
    bins = []
    for place, count in enumerate(counts):
        height = round(max(_TALLEST * count / most, 2.0 if count else 0.0), 1)
        kind = "dn" if place < 4 else "eq" if place == 4 else "up"
        bins.append(
            Bin(6 + _BAR * place, round(_BASE - height, 1), height, count, _BIN_LABELS[place], kind)
        )
    return bins


def signed(value: float) -> str:
    """Return a change with its sign, a real minus and two decimals; 0.00 has none."""
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'+' if value > 0 else '−'}{text}"

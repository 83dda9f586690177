"""What pages of the product count, as plain geometry: columns over days, horizontal bars, maps of strips.

Lengths are units of the SVG's view box; ``components/charts/_columns.html``, ``_bars.html`` and ``_strips.html`` draw
them: nothing to load, nothing the content policy must allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import gettext

from web.charts.scale import Tick, round_step

WIDTH = 640.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 4.0, 10.0, 24.0
_GAP = 0.28
_LABELS = 6


@dataclass(frozen=True, slots=True)
class Segment:
    """One rectangle; ``kind`` 0 is the main series, 1 the one stacked on it."""

    x: float
    y: float
    width: float
    height: float
    kind: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column with what it says when somebody points at it; ``label`` is "" for most, so that labels have room."""

    title: str
    label: str
    middle: float
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Columns:
    """A column chart."""

    width: float
    height: float
    left: float
    tick_x: float
    bottom: float
    columns: Sequence[Column]
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal bar with its name and value beside it."""

    label: str
    title: str
    value: str
    y: float
    width: float
    second: float


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart of horizontal bars."""

    width: float
    height: float
    left: float
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a strip: ``fill`` of its height is drawn full, the rest as an empty frame."""

    title: str
    x: float
    y: float
    width: float
    fill: float


@dataclass(frozen=True, slots=True)
class Strip:
    """Something from its beginning to its end, in cells, with its name and value beside it."""

    label: str
    title: str
    value: str
    y: float
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Strips:
    """A map: one strip under the other."""

    width: float
    height: float
    cell: float
    strips: Sequence[Strip]


def columns_chart(
    points: Sequence[tuple[str, float, float]], *, unit: str = "", height: float = 180.0
) -> Columns:
    """Return a column chart.

    Args:
        points: label, value, and the part of the value that is drawn apart (failures, say), from left to right.
        unit: before values, for example ``$``.
        height: of the whole chart.
    """
    is_count = not unit and all(value == int(value) for _, value, _ in points)
    top, ticks = _scale(max((value for _, value, _ in points), default=0.0), is_count=is_count)
    room = height - _TOP - _BOTTOM
    step = (WIDTH - _LEFT - _RIGHT) / max(len(points), 1)
    every = max(1, math.ceil(len(points) / _LABELS))
    made = []
    for index, (label, value, part) in enumerate(points):
        x, width = _LEFT + step * (index + _GAP / 2), step * (1 - _GAP)
        whole, share = room * value / top, room * part / top
        base = _TOP + room
        segments = [Segment(_r(x), _r(base - whole + share), _r(width), _r(whole - share), 0)]
        if share:
            segments.append(Segment(_r(x), _r(base - whole), _r(width), _r(share), 1))
        told = {"label": label, "value": figure(value, unit), "failed": figure(part, unit)}
        made.append(
            Column(
                (gettext("%(label)s: %(value)s, %(failed)s failed") if part else "%(label)s: %(value)s")
                % told,
                label if index % every == 0 else "",
                _r(x + width / 2),
                segments,
            )
        )
    return Columns(
        WIDTH,
        height,
        _LEFT,
        _LEFT - 6,
        height - _BOTTOM + 16,
        made,
        [Tick(_r(_TOP + room * (1 - tick / top)), _short(tick, unit)) for tick in ticks],
    )


def bars_chart(points: Sequence[tuple[str, float, float]], *, unit: str = "") -> Bars:
    """Return horizontal bars, as ``columns_chart`` takes them, from top to bottom."""
    row, left, right = 26.0, 170.0, 76.0
    most = max((value for _, value, _ in points), default=0.0) or 1.0
    room = WIDTH - left - right
    bars = [
        Bar(
            label if len(label) <= 24 else f"{label[:23]}…",
            label,
            figure(value, unit),
            _r(index * row),
            _r(max(room * value / most, 1.0)),
            _r(room * part / most),
        )
        for index, (label, value, part) in enumerate(points)
    ]
    return Bars(WIDTH, row * len(points), left, bars)


def strips_chart(rows: Sequence[tuple[str, Sequence[tuple[str, float]], str]]) -> Strips:
    """Return a map of strips, from top to bottom.

    Args:
        rows: name; cells from left to right, each with what it says when somebody points at it and how much of it is
            full, 0 to 1; and the value at the strip's end. Cells are as wide as the longest strip allows.
    """
    row, left, right, tall = 26.0, 196.0, 90.0, 16.0
    most = max((len(cells) for _, cells, _ in rows), default=0) or 1
    step = min((WIDTH - left - right) / most, tall)
    strips = [
        Strip(
            label if len(label) <= 19 else f"{label[:18]}…",
            label,
            value,
            _r(index * row),
            [
                Cell(
                    title, _r(left + n * step), _r(5 + tall * (1 - share)), _r(step * 0.84), _r(tall * share)
                )
                for n, (title, share) in enumerate(cells)
            ],
        )
        for index, (label, cells, value) in enumerate(rows)
    ]
    return Strips(WIDTH, row * len(rows), tall, strips)


def figure(value: float, unit: str = "") -> str:
    """Return a number as a chart shows it: 950, 1.2k, 3.4M; with a unit two decimals where it is small."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            scaled = value / (1e3 if suffix == "k" else limit)
            return f"{unit}{_local(f'{scaled:.1f}'.removesuffix('.0'))}{suffix}"
    if value == int(value):
        return f"{unit}{_local(int(value))}"
    return f"{unit}{_local(f'{value:.2f}' if value >= 0.01 else f'{value:.2g}')}"


def _short(value: float, unit: str) -> str:
    """Return a round value for an axis, where room is scarce: 6k, 2.5k."""
    return f"{unit}{_local(f'{value / 1000:g}')}k" if 1000 <= value < 1e6 else figure(value, unit)


def _local(number: str | int) -> str:
    """Write a number as the page's language does."""
    return str(number_format(Decimal(number), force_grouping=True))


def _scale(most: float, *, is_count: bool) -> tuple[float, list[float]]:
    """Return a round top that is not below the largest value, and the round values on the way there; of counts, whole ones."""
    if most <= 0:
        return 1.0, [0.0, 1.0]
    raw = max(most / 4, 1.0) if is_count else most / 4
    step = round_step(raw, is_whole=is_count)
    count = math.ceil(most / step - 1e-9)
    return step * count, [step * n for n in range(count + 1)]


def _r(value: float) -> float:
    return round(value, 2)

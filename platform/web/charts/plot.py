"""A ``Chart`` with its axes as plain geometry: a page draws it as SVG, a document as a picture.

Lengths are units of the view box; ``components/charts/_plot.html`` draws it on pages and ``web.charts.picture`` in
documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.utils.formats import get_format

from basics.formulas import FORMULA_STARTS
from toolloop.tools.charting import Chart, Series
from web.charts.scale import Tick, round_step

WIDTH, HEIGHT = 640.0, 320.0
_RIGHT, _TOP, _BOTTOM, _SIGN = 14.0, 12.0, 30.0, 9.0
"""Of ``_SIGN``: how wide a character is where the letters are largest, on a telephone."""
_AXIS = 18.0
_ALIKE = 1e-12
"""Values that differ by less than this share of them are drawn as one: a number has no more digits."""
_DOTS = 60
"""Points of a line that are marked; more would hide it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A value: a bar (``width`` and ``height``), or a point; ``title`` says it when somebody points at it."""

    title: str
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Layer:
    """One series: its bars, its points, and the stretches of its line, each as points of a ``polyline``."""

    number: int
    name: str
    bars: Sequence[Mark] = ()
    dots: Sequence[Mark] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart to draw: the frame from ``left`` to ``right`` and ``top`` to ``bottom``, and what is in it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    zero: float
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    layers: Sequence[Layer]
    x_label: str = ""
    y_label: str = ""
    tick_x: float = field(default=0.0)
    label_y: float = field(default=0.0)
    name_y: float = field(default=0.0)
    middle: float = field(default=0.0)


def plot_of(chart: Chart) -> Plot:
    """Return how a chart is drawn."""
    values = [y for series in chart.series for y in series.y if y is not None]
    if chart.kind in ("bar", "histogram"):
        values.append(0.0)
    y_scale = _Scale.of(values)
    left = _SIGN * max(len(label) for _tick, label in y_scale.marks) + 16
    top = _TOP + (_AXIS if chart.y_label else 0)
    bottom = HEIGHT - _BOTTOM - (_AXIS if chart.x_label else 0)
    right = WIDTH - _RIGHT
    frame = _Frame(left, right, top, bottom, y_scale)
    if chart.kind == "histogram":
        x_ticks, layers = _histogram(chart, frame)
    elif chart.labels:
        x_ticks, layers = _over_labels(chart, frame)
    else:
        x_ticks, layers = _over_numbers(chart, frame)
    return Plot(
        WIDTH,
        HEIGHT,
        _r(left),
        right,
        top,
        bottom,
        frame.y(min(max(0.0, y_scale.low), y_scale.high)),
        x_ticks,
        [Tick(frame.y(tick), label) for tick, label in y_scale.marks],
        layers,
        chart.x_label,
        chart.y_label,
        _r(left - 8),
        bottom + 18,
        bottom + 18 + _AXIS,
        _r((left + right) / 2),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """An axis between two round values."""

    low: float
    high: float
    ticks: Sequence[float]

    @classmethod
    def of(cls, values: Sequence[float], most: int = 5) -> _Scale:
        low, high = min(values), max(values)
        if high - low <= _ALIKE * max(abs(low), abs(high)):
            low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
        elif 0 < low <= high / 2 or high / 2 <= low < 0:  # zero is near enough to be on it
            low, high = min(low, 0.0), max(high, 0.0)
        step = round_step((high - low) / most)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = [float(f"{number * step:.15g}") for number in range(first, last + 1)]
        return cls(ticks[0], ticks[-1], ticks)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Its ticks as they are written: with as many digits as tell one from the next."""
        most, step = max(abs(self.low), abs(self.high)), self.ticks[1] - self.ticks[0]
        digits = max(4, math.floor(math.log10(most)) - math.floor(math.log10(step)) + 2)
        return [(tick, number_short(tick, digits)) for tick in self.ticks]

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The rectangle in which values are drawn."""

    left: float
    right: float
    top: float
    bottom: float
    scale: _Scale

    def y(self, value: float) -> float:
        return _r(self.bottom - (self.bottom - self.top) * self.scale.share(value))

    def x(self, share: float) -> float:
        return _r(self.left + (self.right - self.left) * share)

    def bar(self, title: str, start: float, end: float, value: float) -> Mark:
        zero, at = self.y(0.0), self.y(value)
        return Mark(title, _r(start), min(zero, at), _r(end - start), _r(abs(at - zero)))


def _over_labels(chart: Chart, frame: _Frame) -> tuple[list[Tick], list[Layer]]:
    count = len(chart.labels)
    slot = (frame.right - frame.left) / count
    middles = [frame.left + slot * (index + 0.5) for index in range(count)]
    room = max(1, int((frame.right - frame.left) / (_SIGN * (max(map(len, chart.labels)) + 2))))
    every = math.ceil(count / min(room, count))
    most = max(4, int(slot * every / _SIGN) - 1)
    ticks = [Tick(_r(middles[index]), _cut(chart.labels[index], most)) for index in range(0, count, every)]
    layers = []
    for number, series in enumerate(chart.series):
        if chart.kind == "line":
            points = [
                None if y is None else Mark(_said(chart, series, label, y), _r(x), frame.y(y))
                for label, x, y in zip(chart.labels, middles, series.y, strict=True)
            ]
            layers.append(_line(number, series, points))
            continue
        wide = slot * 0.72 / len(chart.series)
        bars = [
            frame.bar(
                _said(chart, series, label, y),
                middle - slot * 0.36 + wide * number,
                middle - slot * 0.36 + wide * (number + 0.94),
                y,
            )
            for label, middle, y in zip(chart.labels, middles, series.y, strict=True)
            if y is not None
        ]
        layers.append(Layer(number, series.name, bars=bars))
    return ticks, layers


def _over_numbers(chart: Chart, frame: _Frame) -> tuple[list[Tick], list[Layer]]:
    scale = _Scale.of([x for series in chart.series for x in series.x], most=6)
    layers = []
    for number, series in enumerate(chart.series):
        points = [
            None
            if y is None
            else Mark(_said(chart, series, number_said(x), y), frame.x(scale.share(x)), frame.y(y))
            for x, y in zip(series.x, series.y, strict=True)
        ]
        if chart.kind == "line":
            layers.append(_line(number, series, points))
        else:
            layers.append(Layer(number, series.name, dots=[point for point in points if point]))
    return [Tick(frame.x(scale.share(tick)), label) for tick, label in scale.marks], layers


def _histogram(chart: Chart, frame: _Frame) -> tuple[list[Tick], list[Layer]]:
    low, high = chart.edges[0], chart.edges[-1]
    places = [frame.x((edge - low) / (high - low)) for edge in chart.edges]
    every = math.ceil(len(places) / 8)
    ticks = [Tick(places[n], number_short(chart.edges[n])) for n in range(0, len(places), every)]
    layers = []
    for number, series in enumerate(chart.series):
        bars = []
        for index, count in enumerate(series.y):
            wide = (places[index + 1] - places[index]) / len(chart.series)
            start = places[index] + wide * number
            span = f"{number_short(chart.edges[index])} – {number_short(chart.edges[index + 1])}"
            bars.append(
                frame.bar(_said(chart, series, span, count or 0), start + 0.5, start + wide - 0.5, count or 0)
            )
        layers.append(Layer(number, series.name, bars=bars))
    return ticks, layers


def _line(number: int, series: Series, points: Sequence[Mark | None]) -> Layer:
    """Return a line that gaps interrupt; a value between two gaps, and each of a few, is a point."""
    lines: list[str] = []
    alone: list[Mark] = []
    stretch: list[Mark] = []
    for point in [*points, None]:
        if point is not None:
            stretch.append(point)
            continue
        if len(stretch) > 1:
            lines.append(" ".join(f"{one.x},{one.y}" for one in stretch))
        alone += stretch[:1] if len(stretch) == 1 else []
        stretch = []
    shown = [point for point in points if point is not None]
    return Layer(number, series.name, dots=shown if len(shown) <= _DOTS else alone, lines=lines)


def _said(chart: Chart, series: Series, place: str, value: float) -> str:
    name = f"{series.name}, " if len(chart.series) > 1 else ""
    return f"{name}{place}: {number_said(value)}"


def number_said(value: float) -> str:
    """Return a number in full, as a table shows it."""
    return _local(f"{value:,.10g}".replace(",", "\u202f") if abs(value) >= 10_000 else f"{value:.10g}")


def number_short(value: float, digits: int = 4) -> str:
    """Return a number as an axis shows it, with at most so many digits: 950, 1.2k, 3.4M."""
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return _local(f"{value / (1e3 if suffix == 'k' else limit):.{digits}g}{suffix}")
    return _local(f"{value:.{digits}g}")


def _local(number: str) -> str:
    return number.replace(".", str(get_format("DECIMAL_SEPARATOR")))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _r(value: float) -> float:
    return round(value, 2)


def numbers_csv(rows: Iterable[Sequence[str | float | None]]) -> str:
    """Return a table as CSV; a text that a spreadsheet would take for a formula is marked as text."""
    return "".join(",".join(_cell(cell) for cell in row) + "\n" for row in rows)


def _cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return f"{cell:.15g}"
    safe = f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
    return '"' + safe.replace('"', '""') + '"' if any(sign in safe for sign in '",\r\n') else safe

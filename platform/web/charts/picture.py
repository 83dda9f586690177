"""Charts as PNG files, for documents: what ``components/charts/_plot.html`` draws on pages, in ink on white paper."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import basics.papers
from toolloop.tools.charting import Chart
from web.charts.plot import Layer, Plot, plot_of

_SCALE = 3
_INKS = ("#0b6a80", "#c2541b", "#1f7a45", "#7a3fa0", "#8a6a00", "#b3261e", "#3f4f9e", "#54606a")
_TEXT, _GRID, _ZERO = "#4a5158", "#dcdfe2", "#9aa1a8"
_SIZE, _LEGEND = 11, 20.0
_FONT = Path(basics.papers.__file__).parent / "fonts" / "DejaVuSans.ttf"


def chart_png(chart: Chart) -> tuple[bytes, int, int]:
    """Return a chart as PNG, with its width and height in pixels; the names of its series are above it."""
    plot = plot_of(chart)
    above = _LEGEND if len(plot.layers) > 1 else 0.0
    size = (int(plot.width * _SCALE), int((plot.height + above) * _SCALE))
    picture = Image.new("RGB", size, "white")
    draw = _Pen(picture, above)
    _frame(draw, plot)
    for layer in plot.layers:
        _layer(draw, layer)
    draw.line([(plot.left, plot.zero), (plot.right, plot.zero)], _ZERO)
    if above:
        _legend(draw, plot)
    out = io.BytesIO()
    picture.quantize(64).save(out, "PNG")
    return out.getvalue(), *size


class _Pen:
    """Draws in the units of a plot, so far below the top of the picture."""

    def __init__(self, picture: Image.Image, above: float) -> None:
        self._draw, self._above = ImageDraw.Draw(picture), above

    def place(self, x: float, y: float) -> tuple[float, float]:
        return x * _SCALE, (y + self._above) * _SCALE

    def line(self, points: list[tuple[float, float]], ink: str, width: int = 1) -> None:
        self._draw.line([self.place(*point) for point in points], ink, width * _SCALE, joint="curve")

    def box(self, x: float, y: float, width: float, height: float, ink: str) -> None:
        (left, top), (right, bottom) = self.place(x, y), self.place(x + width, y + height)
        self._draw.rectangle((left, top, max(left, right), max(top, bottom)), ink)

    def dot(self, x: float, y: float, ink: str) -> None:
        self._draw.ellipse((*self.place(x - 3, y - 3), *self.place(x + 3, y + 3)), ink)

    def say(self, x: float, y: float, text: str, anchor: str = "ls") -> None:
        self._draw.text(self.place(x, y), text, _TEXT, _font(), anchor)

    def width(self, text: str) -> float:
        return float(self._draw.textlength(text, _font())) / _SCALE


@cache
def _font() -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_FONT), _SIZE * _SCALE)


def _frame(draw: _Pen, plot: Plot) -> None:
    for tick in plot.y_ticks:
        draw.line([(plot.left, tick.at), (plot.right, tick.at)], _GRID)
        draw.say(plot.tick_x, tick.at, tick.label, "rm")
    for tick in plot.x_ticks:
        draw.say(tick.at, plot.label_y, tick.label, "ms")
    if plot.y_label:
        draw.say(0, 12, plot.y_label)
    if plot.x_label:
        draw.say(plot.middle, plot.name_y, plot.x_label, "ms")


def _layer(draw: _Pen, layer: Layer) -> None:
    ink = _INKS[layer.number]
    for bar in layer.bars:
        draw.box(bar.x, bar.y, bar.width, bar.height, ink)
    for points in layer.lines:
        pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
        draw.line([(x, y) for x, y in pairs], ink, 2)
    for dot in layer.dots:
        draw.dot(dot.x, dot.y, ink)


def _legend(draw: _Pen, plot: Plot) -> None:
    x = plot.left
    for layer in plot.layers:
        name = layer.name if len(layer.name) <= 24 else f"{layer.name[:23]}…"
        if x + draw.width(name) > plot.right:
            return
        draw.box(x, -_LEGEND + 5, 9, 9, _INKS[layer.number])
        draw.say(x + 14, -_LEGEND + 14, name)
        x += draw.width(name) + 32

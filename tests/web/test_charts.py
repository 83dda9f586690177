"""Numbers at the edges of what a chart can hold: they are drawn with axes that can be read, or refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from toolloop.tools.charting import CannotDraw, chart_made
from web.charts.picture import chart_png
from web.charts.plot import plot_of


@pytest.mark.parametrize(
    ("kind", "series", "ticks"),
    [
        ("bar", {"values": [1.6e-19, 2e-19]}, ["0", "5e-20", "1e-19", "1.5e-19", "2e-19"]),
        ("bar", {"values": [-1e-14, -2e-14]}, ["-2e-14", "-1.5e-14", "-1e-14", "-5e-15", "0"]),
        ("line", {"values": [1.0, 1.0 + 2.3e-16]}, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ("line", {"values": [10_001, 10_005]}, ["10.001k", "10.002k", "10.003k", "10.004k", "10.005k"]),
        ("line", {"values": [83.1e6, 83.19e6]}, ["83.1M", "83.12M", "83.14M", "83.16M", "83.18M", "83.2M"]),
        ("scatter", {"values": [1e-20, 3e-20], "x": [1e14, 1e14 + 0.02]}, ["0", "1e-20", "2e-20", "3e-20"]),
        ("histogram", {"values": [1.0, 1.0 + 2.3e-16]}, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ("bar", {"values": [0, 0]}, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_close_and_tiny_numbers_have_an_axis(kind: str, series: dict[str, Any], ticks: list[str]) -> None:
    chart = chart_made(kind, "T", [series])
    assert [tick.label for tick in plot_of(chart).y_ticks] == ticks
    assert chart_png(chart)[0].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "not a number"),
        (float("inf"), "too large"),
        (10**400, "too large"),
        (5e-324, "too small"),
        (True, "not a number"),
    ],
)
def test_what_has_no_place_on_an_axis_is_refused(value: float, said: str) -> None:
    with pytest.raises(CannotDraw, match=said):
        chart_made("bar", "T", [{"values": [1, value]}])

"""The tool with which a model shows numbers as a chart; the application draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolloop.tools.charting import KINDS, MOST_POINTS, MOST_SERIES, CannotDraw, chart_made
from toolloop.tools.context import ToolError, ToolOutput
from toolloop.tools.tool import Tool

DRAW_CHART: Final = "draw_chart"
CHART: Final = "chart"
"""Key of the call's payload: the chart, as ``Chart.to_json`` writes it."""
_DESCRIPTION = (
    "Show numbers to the user as a chart. Only numbers that you have from a source, a tool or the user; never make any up. "
    "line: a development; bar: a comparison; scatter: how two measures go together (give x); histogram: how raw values are "
    "spread."
)
_NUMBERS: dict[str, Any] = {"type": "array", "maxItems": MOST_POINTS}
_SERIES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "What the legend calls it."},
        "values": {
            **_NUMBERS,
            "items": {"type": ["number", "null"]},
            "minItems": 1,
            "description": "One for each label; null for a gap.",
        },
        "x": {
            **_NUMBERS,
            "items": {"type": "number"},
            "description": "Of scatter, and of line over numbers: where each value is.",
        },
    },
    "required": ["values"],
    "additionalProperties": False,
}
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": list(KINDS)},
        "title": {"type": "string", "minLength": 1, "description": "What it shows."},
        "series": {"type": "array", "items": _SERIES, "minItems": 1, "maxItems": MOST_SERIES},
        "labels": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MOST_POINTS,
            "description": "Of line and bar: one for each value, in order.",
        },
        "x_label": {"type": "string", "description": "What the x axis measures."},
        "y_label": {"type": "string", "description": "What the y axis measures, with its unit."},
        "bins": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Of histogram."},
    },
    "required": ["kind", "title", "series"],
    "additionalProperties": False,
}


def _drawn(
    kind: str,
    title: str,
    series: Sequence[Mapping[str, Any]],
    labels: Sequence[str] = (),
    x_label: str = "",
    y_label: str = "",
    bins: int = 0,
) -> ToolOutput:
    try:
        chart = chart_made(kind, title, series, labels=labels, x_label=x_label, y_label=y_label, bins=bins)
    except CannotDraw as error:
        raise ToolError(str(error)) from error
    return ToolOutput(
        "The user sees the chart above your answer, with a table of its numbers: don't repeat them. To put it at a certain "
        f"place of your answer instead, write a line ![{chart.title}](figure:{chart.key}) there.",
        {CHART: chart.to_json(), "summary": chart.title},
    )


draw_chart = Tool(
    DRAW_CHART,
    _DESCRIPTION,
    _PARAMETERS,
    _drawn,
    blocking=False,
    category="charts",
    tags=("chart", "plot", "graph", "diagram"),
    group="builtin.charts",
)

"""What a tool call has to look at: the chart it drew, and the pictures its tool returned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import JSONField
from django.db.models.expressions import RawSQL
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from apps.conversations.models import Turn
from toolloop.tools.chart_tool import CHART, DRAW_CHART
from toolloop.tools.charting import Chart
from web.charts.plot import Plot, number_said, numbers_csv, plot_of

# A tool of another name can't draw by what its payload says, nor show a picture that no call of its run returned.
_CHART = f"CASE WHEN runs_toolcall.name = '{DRAW_CHART}' THEN runs_toolcall.payload->'{CHART}' END"
_PICTURES = """(SELECT jsonb_agg(jsonb_build_object('picture_id', p.id, 'key', left(p.sha256, 8), 'name', p.name,
    'media_type', p.media_type, 'width', p.width, 'height', p.height, 'size', p.size) ORDER BY p.index)
    FROM conversations_picture p WHERE p.tenant_id = runs_toolcall.tenant_id AND p.run_id = runs_toolcall.run_id
    AND p.step = runs_toolcall.step AND p.call_id = runs_toolcall.call_id)"""
FIGURE_COLUMNS = f"{_CHART} AS chart, {_PICTURES} AS pictures"
"""Of a statement on ``runs_toolcall``."""
_NAMES = ("key", "picture_id", "media_type", "width", "height", "size")


def figure_annotations() -> dict[str, Any]:
    """Return the same columns for the ORM."""
    return {
        "chart": RawSQL(_CHART, [], output_field=JSONField()),  # noqa: S611 - constants of this module
        "pictures": RawSQL(_PICTURES, [], output_field=JSONField()),  # noqa: S611
    }


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, or a picture by its number.

    Attributes:
        key: what the answer calls it; it follows from what is to be seen.
        title: of a chart its title, of a picture what its tool calls it, which may be nothing.
    """

    key: str
    title: str
    chart: Chart | None = None
    picture_id: int = 0
    media_type: str = ""
    width: int = 0
    height: int = 0
    size: int = 0

    @property
    def alt(self) -> str:
        """What is told of it to who doesn't see it."""
        return self.title or _("Picture from a tool")

    @property
    def plot(self) -> Plot | None:
        """How the chart is drawn."""
        return None if self.chart is None else plot_of(self.chart)

    @property
    def rows(self) -> list[list[str]]:
        """The chart's numbers as a table, names first."""
        if self.chart is None:
            return []
        heads = {"From": _("From"), "To": _("To")} if self.chart.edges else {}
        table = [
            ["" if c is None else c if isinstance(c, str) else number_said(c) for c in row]
            for row in self.chart.rows()
        ]
        return [[heads.get(cell, cell) for cell in table[0]], *table[1:]]

    @property
    def csv(self) -> str:
        """The chart's numbers as CSV."""
        return "" if self.chart is None else numbers_csv(self.chart.rows())

    def to_json(self) -> dict[str, Any]:
        """Return what ``figures_read`` takes."""
        if self.chart is not None:
            return {"chart": self.chart.to_json()}
        return {"name": self.title, **{name: getattr(self, name) for name in _NAMES}}


def call_figures(row: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return what a call that was read with ``FIGURE_COLUMNS`` has to look at."""
    charts = [{"chart": row["chart"]}] if row.get("chart") else []
    return figures_read([*charts, *(row.get("pictures") or ())])


def turn_figures(turn: Turn) -> tuple[Figure, ...]:
    """Return what the calls of a turn of ``turn_list`` have to look at, as its reader may see it."""
    calls = getattr(turn.run, "calls_shown", ())  # none on a turn that was just made
    found = {figure.key: figure for call in calls for figure in call_figures(vars(call))}
    return tuple(found.values())  # a chart that was drawn twice is one


def figures_read(items: Iterable[Mapping[str, Any]]) -> tuple[Figure, ...]:
    """Return figures from what ``Figure.to_json`` wrote; a chart that can't be drawn any more is left out."""
    made = []
    for item in items:
        if "chart" not in item:
            made.append(Figure(title=item["name"], **{name: item[name] for name in _NAMES}))
        elif (chart := Chart.from_json(item["chart"])) is not None:
            made.append(Figure(chart.key, chart.title, chart))
    return tuple(made)


@dataclass(slots=True)
class Placing:
    """Puts figures where an answer refers to them, each at its first place.

    Attributes:
        run_id: makes ids on the page unique.
        placed: keys of those that the answer has.
    """

    run_id: int
    figures: Sequence[Figure] = ()
    placed: set[str] = field(default_factory=set)

    def take(self, key: str, alt: str) -> str | None:
        """Return the HTML of a figure, None for one that isn't there, or stands further above.

        Args:
            alt: what the answer calls it.
        """
        found = next((figure for figure in self.figures if figure.key == key), None)
        if found is None or key in self.placed:
            return None
        self.placed.add(key)
        context = {"figure": found, "run_id": self.run_id, "caption": alt or found.title}
        return render_to_string("conversations/_figure.html", context)

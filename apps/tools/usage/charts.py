"""The charts of the usage page: what each of them counts, by day, tool, member and model."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from django.utils import formats

from runs.usage_figures import Usage, UsageRow
from web.charts.bars import Bars, Columns, bars_chart, columns_chart

MOST_BARS = 12


def usage_charts(usage: Usage) -> dict[str, Columns | Bars]:
    """Return the charts of some days' usage by their names in ``tools/usage.html``.

    Args:
        usage: the days, and tools, members and models with the most used first; a chart shows ``MOST_BARS`` of these.
    """
    return {
        "calls_by_day": _columns(usage.days, lambda row: (row.calls, row.errors)),
        "cost_by_day": _columns(usage.days, lambda row: (float(row.cost_usd or 0), 0.0), "$"),
        "tools_chart": _bars(usage.tools, lambda row: (row.calls, row.errors)),
        "members_chart": _bars(usage.members, lambda row: (row.calls, row.errors)),
        "models_chart": _bars(usage.models, lambda row: (row.tokens, 0)),
    }


def _columns(
    rows: Sequence[UsageRow], value: Callable[[UsageRow], tuple[float, float]], unit: str = ""
) -> Columns:
    return columns_chart([(day_told(row.key, "NEAR_DAY"), *value(row)) for row in rows], unit=unit)


def _bars(rows: Sequence[UsageRow], value: Callable[[UsageRow], tuple[float, float]]) -> Bars:
    return bars_chart([(row.label, *value(row)) for row in rows[:MOST_BARS]])


def day_told(key: str, form: str) -> str:
    """Return the day of a row of usage as the reader's language writes it.

    Args:
        key: of the row, an ISO date.
        form: a name of ``web.formats``.
    """
    return formats.date_format(datetime.date.fromisoformat(key), form)

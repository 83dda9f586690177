"""The page of usage: charts with their tables, over some days. It holds no rules."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from basics.errors import Invalid
from budgets.selectors import budget_notices
from runs.usage_figures import UsageRow, usage_range, usage_read
from web.charts import Bars, Columns, bars_chart, columns_chart
from web.requests import TenantRequest, allowed

BARS, ROWS = 12, 50
PRESETS = (7, 30, 90)


@never_cache
@require_GET
@allowed("run.read")
def usage(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show what tools and models were used for, ``?since=`` to ``?until=``."""
    problem = ""
    try:
        since, until = usage_range(request.GET)
    except Invalid as error:
        problem = error.message
        since, until = usage_range({})
    found = usage_read(actor=request.actor, since=since, until=until)
    today = timezone.localdate()
    context: dict[str, Any] = {
        "usage": found,
        "problem": problem,
        "notices": budget_notices(actor=request.actor),
        "is_everybody": request.actor.can("audit.read"),
        "presets": [
            (
                n,
                today - datetime.timedelta(days=n - 1),
                today,
                (until, (until - since).days + 1) == (today, n),
            )
            for n in PRESETS
        ],
        "calls_by_day": _columns(found.days, lambda row: (row.calls, row.errors)),
        "cost_by_day": _columns(found.days, lambda row: (float(row.cost_usd or 0), 0.0), "$"),
        "tools_chart": _bars(found.tools, lambda row: (row.calls, row.errors)),
        "members_chart": _bars(found.members, lambda row: (row.calls, row.errors)),
        "models_chart": _bars(found.models, lambda row: (row.tokens, 0)),
        "days": [row for row in reversed(found.days) if row.calls or row.requests],
        "tools": found.tools[:ROWS],
        "members": found.members[:ROWS],
        "models": found.models[:ROWS],
        "left_off": {"tools": max(len(found.tools) - ROWS, 0), "members": max(len(found.members) - ROWS, 0)},
    }
    return render(request, "tools/usage.html", context)


def _columns(
    rows: Sequence[UsageRow], value: Callable[[UsageRow], tuple[float, float]], unit: str = ""
) -> Columns:
    return columns_chart([(_day(row.key), *value(row)) for row in rows], unit=unit)


def _bars(rows: Sequence[UsageRow], value: Callable[[UsageRow], tuple[float, float]]) -> Bars:
    return bars_chart([(row.label, *value(row)) for row in rows[:BARS]])


def _day(key: str) -> str:
    day = datetime.date.fromisoformat(key)
    return f"{day.day} {day:%b}"

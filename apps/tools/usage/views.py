"""The page of usage: charts with their tables, over some days. What is drawn is in ``charts``."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.tools.usage.charts import day_told, usage_charts
from basics.errors import Invalid
from budgets.selectors import budget_notices
from runs.usage_figures import usage_range, usage_read
from web.requests import TenantRequest, allowed

ROWS = 50
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
        "days": [
            replace(row, label=day_told(row.key, "DAY"))
            for row in reversed(found.days)
            if row.calls or row.requests
        ],
        "tools": found.tools[:ROWS],
        "members": found.members[:ROWS],
        "models": found.models[:ROWS],
        "left_off": {"tools": max(len(found.tools) - ROWS, 0), "members": max(len(found.members) - ROWS, 0)},
    } | usage_charts(found)
    return render(request, "tools/usage.html", context)

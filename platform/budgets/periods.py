"""The period of a budget: when the one of now began and the next one begins, for pages and for the ledger's SQL. All in UTC."""

from __future__ import annotations

import datetime


def period_start(period: str, now: datetime.datetime) -> datetime.datetime | None:
    """Return when the present period began, in UTC; None for ``total``."""
    day = now.astimezone(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return {"day": day, "month": day.replace(day=1)}.get(period)


def starts_at_sql(now: str) -> str:
    """Return the SQL for when the present period of a row ``b`` of ``budgets_budget`` began.

    Args:
        now: the expression of the moment, such as ``now()``.
    """
    return f"CASE b.period WHEN 'total' THEN b.created_at ELSE date_trunc(b.period, {now}, 'UTC') END"


def budget_resets(period: str, starts_at: datetime.datetime | None) -> datetime.datetime | None:
    """Return when the period after this one begins, in UTC; None for one that never ends."""
    if starts_at is None or period not in ("day", "month"):
        return None
    begun = starts_at.astimezone(datetime.UTC)
    later = begun + datetime.timedelta(days=1 if period == "day" else 31)
    return later if period == "day" else later.replace(day=1)

"""What ``/metrics`` reads of budgets: how many are used up in their period of now, and never whose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from budgets.periods import starts_at_sql
from tenancy.readings import Figure

_USED_UP = f"""
SELECT count(*) FROM budgets_budget b JOIN budgets_budgetspend s ON s.tenant_id = b.tenant_id AND s.budget_id = b.id
WHERE (s.refused_at IS NOT NULL OR s.spent_usd >= b.amount_usd)
    AND s.starts_at = {starts_at_sql("now()")}
"""  # noqa: S608 - a constant


def budgets_read(cursor: Any) -> Iterator[Figure]:
    """Yield how many budgets refuse calls now."""
    cursor.execute(_USED_UP)
    (count,) = cursor.fetchone()
    yield Figure(
        "budgets_used_up", "Budgets that are used up in their current period, of all workspaces.", count
    )

"""What ``/metrics`` reads of budgets: how many are used up in their period of now, and never whose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenancy.readings import Figure

_USED_UP = """
SELECT count(*) FROM budgets_budget b JOIN budgets_budgetspend s ON s.tenant_id = b.tenant_id AND s.budget_id = b.id
WHERE (s.refused_at IS NOT NULL OR s.spent_usd >= b.amount_usd)
    AND s.starts_at = CASE b.period WHEN 'total' THEN b.created_at ELSE date_trunc(b.period, now(), 'UTC') END
"""


def budgets_read(cursor: Any) -> Iterator[Figure]:
    """Yield how many budgets refuse calls now."""
    cursor.execute(_USED_UP)
    (count,) = cursor.fetchone()
    yield Figure(
        "budgets_used_up", "Budgets that are used up in their current period, of all workspaces.", count
    )

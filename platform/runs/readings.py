"""What ``/metrics`` reads of runs: how many calls of tools wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenancy.readings import Figure


def runs_read(cursor: Any) -> Iterator[Figure]:
    """Yield the decisions that are open, by the index of those that can expire."""
    cursor.execute("SELECT count(*) FROM runs_pendingdecision WHERE status = 'pending'")
    (count,) = cursor.fetchone()
    yield Figure("decisions_pending", "Calls of tools that wait for a person's decision.", count)

"""What ``/metrics`` reads of files: those whose bytes should have gone or been named by now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenancy.readings import Figure


def blobs_read(cursor: Any) -> Iterator[Figure]:
    """Yield how many keys the sweep has before it, and for how long the oldest is due."""
    cursor.execute(
        "SELECT count(*), coalesce(extract(epoch FROM now() - min(due_at)), 0)::float FROM blobs_pendingblob "
        "WHERE removed_at IS NULL AND due_at <= now()"
    )
    count, age = cursor.fetchone()
    yield Figure("blobs_due", "Files that are to be removed, unless a row names them after all.", count)
    yield Figure("blobs_due_oldest_seconds", "For how long the oldest of them is due.", age)

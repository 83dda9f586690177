"""What ``/metrics`` reads of streams of audit events: how many fail, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenancy.readings import Figure


def streams_read(cursor: Any) -> Iterator[Figure]:
    """Yield how many streams are on, and how many attempts in a row the worst of them has lost."""
    cursor.execute(
        "SELECT count(*), coalesce(max(failures), 0) FROM audit_auditstream WHERE is_enabled"
    )
    count, failures = cursor.fetchone()
    yield Figure("audit_streams", "Streams of audit events that are on, of all workspaces.", count)
    yield Figure("audit_stream_failures", "Attempts in a row that didn't arrive, of the worst of them.", failures)

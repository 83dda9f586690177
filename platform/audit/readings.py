"""What ``/metrics`` reads of streams of audit events: whether one isn't taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenancy.readings import Figure


def streams_read(cursor: Any) -> Iterator[Figure]:
    """Yield how many attempts in a row the worst stream has lost."""
    cursor.execute("SELECT coalesce(max(failures), 0) FROM audit_auditstream WHERE is_enabled")
    (failures,) = cursor.fetchone()
    yield Figure(
        "audit_stream_failures", "Attempts in a row that didn't arrive, of the worst of them.", failures
    )

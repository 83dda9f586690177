"""What ``/metrics`` reads of backups: whether the last attempt went well, and for how long one is overdue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings

from tenancy.readings import Figure

_LAST = """
SELECT (array_agg(is_ok ORDER BY ended_at DESC, id DESC))[1],
    extract(epoch FROM now() - coalesce(max(began_at) FILTER (WHERE is_ok), min(began_at)))::float
FROM backups_backupresult WHERE kind = 'create'
"""
_DAY_S = 24 * 3600


def backups_read(cursor: Any) -> Iterator[Figure]:
    """Yield how the last attempt ended, and how late the next good one is; both 0 where none is scheduled or was tried yet."""
    cursor.execute(_LAST)
    was_ok, age = cursor.fetchone()
    is_tried = bool(settings.BACKUP_URL) and was_ok is not None
    yield Figure("backup_failed", "Whether the last scheduled backup failed.", is_tried and not was_ok)
    late = max(0.0, age - _DAY_S) if is_tried else 0.0
    yield Figure(
        "backup_overdue_seconds", "For how long a good backup is overdue: one is due each day.", late
    )

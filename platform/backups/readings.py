"""What ``/metrics`` reads of backups: whether they were written and verified, and for how long that is overdue."""

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
_VERIFIED = """
SELECT (array_agg(is_ok ORDER BY ended_at DESC, id DESC) FILTER (WHERE kind = 'verify'))[1],
    extract(epoch FROM now() - coalesce(max(ended_at) FILTER (WHERE kind = 'verify' AND is_ok),
        min(ended_at) FILTER (WHERE kind = 'create' AND name <> '')))::float
FROM backups_backupresult
"""
_DAY_S = 24 * 3600


def backups_read(cursor: Any) -> Iterator[Figure]:
    """Yield how the last attempts ended, and how late the next good ones are; 0 where none is scheduled or was tried yet."""
    cursor.execute(_LAST)
    was_ok, age = cursor.fetchone()
    is_tried = bool(settings.BACKUP_URL) and was_ok is not None
    yield Figure("backup_failed", "Whether the last scheduled backup failed.", is_tried and not was_ok)
    late = max(0.0, age - _DAY_S) if is_tried else 0.0
    yield Figure(
        "backup_overdue_seconds", "For how long a good backup is overdue: one is due each day.", late
    )
    cursor.execute(_VERIFIED)
    was_right, age = cursor.fetchone()
    is_scheduled = bool(settings.BACKUP_URL and settings.BACKUP_VERIFY_DAYS)
    yield Figure(
        "backup_verify_failed",
        "Whether the last verification found something wrong, or couldn't be made.",
        is_scheduled and was_right is False,
    )
    late = max(0.0, (age or 0.0) - settings.BACKUP_VERIFY_DAYS * _DAY_S) if is_scheduled else 0.0
    yield Figure(
        "backup_verify_overdue_seconds", "For how long a verification that found nothing is overdue.", late
    )

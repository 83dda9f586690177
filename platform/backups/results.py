"""What became of the last backups: kept in the database, asked by doctor and before an upgrade."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.utils import timezone

from backups.errors import BackupBusy
from backups.manifest import Manifest
from backups.models import BackupResult
from basics.errors import DomainError

KEPT = timedelta(days=90)
_MAX_URL = 500
_MAX_DETAIL = 1000
R = TypeVar("R")


def recorded(kind: str, url: str, work: Callable[[], R], told: Callable[[R], tuple[Manifest, str]]) -> R:
    """Do something and keep how it ended, whichever way.

    Args:
        kind: of ``BackupResult.Kind``.
        url: of the place.
        told: gives the backup that came of it and what is wrong with it, "" for nothing.
    """
    began = timezone.now()
    try:
        found = work()
    except BackupBusy:
        raise  # no attempt: the other one tells how it ended
    except Exception as error:
        words = _words(error)
        reason = getattr(error, "reason", "")
        _keep(kind, url, began, None, f"{words} {reason}".strip())
        raise
    manifest, problem = told(found)
    _keep(kind, url, began, manifest, problem)
    return found


def _words(error: Exception) -> str:
    """Return what went wrong, for the operator's page and for ``doctor``."""
    if isinstance(error, DomainError):
        return error.message
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    return f"{type(error).__name__}: {error}"


def _keep(kind: str, url: str, began: datetime, manifest: Manifest | None, problem: str) -> None:
    BackupResult.objects.create(
        kind=kind,
        url=url[:_MAX_URL],
        name=manifest.name if manifest else "",
        is_ok=manifest is not None and not problem,
        began_at=began,
        row_count=manifest.rows if manifest else 0,
        original_count=manifest.originals.count if manifest else 0,
        size=manifest.size if manifest else 0,
        detail=problem[:_MAX_DETAIL],
    )
    BackupResult.objects.filter(ended_at__lt=timezone.now() - KEPT).delete()


def verify_unfinished(url: str, began: datetime, reason: str) -> None:
    """Keep that a verification came to no result, for example because its process was killed.

    Args:
        url: of the place.
        reason: what is known of it, in words.
    """
    _keep(BackupResult.Kind.VERIFY, url, began, None, reason)


def last_result(kind: str, *, is_ok: bool | None = None) -> BackupResult | None:
    """Return the last result of a kind, or the last that ended well or badly."""
    found = BackupResult.objects.filter(kind=kind)
    if is_ok is not None:
        found = found.filter(is_ok=is_ok)
    return found.order_by("-ended_at", "-pk").first()


def is_verified(name: str) -> bool:
    """Tell whether the last verification of a backup found nothing wrong."""
    last = (
        BackupResult.objects.filter(kind=BackupResult.Kind.VERIFY, name=name)
        .order_by("-ended_at", "-pk")
        .first()
    )
    return last is not None and last.is_ok


def backup_problem(made: Manifest) -> str:
    """Return what is wrong with a backup that was written, "" for nothing."""
    if not made.originals.missing_count:
        return ""
    return (
        f"{made.originals.missing_count} originals that rows name were missing or damaged, for example "
        f"{made.originals.missing[0]}. Run: python manage.py ingestion_check"
    )

"""Write a backup every day where an address is set, and remove what retention no longer keeps: in a thread of the worker's own process."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.conf import settings
from django.utils import timezone

from backups.errors import BackupBusy
from backups.models import BackupResult
from backups.results import backup_problem, last_result, recorded
from backups.retention import backup_prune
from backups.services import backup_create
from tenancy.threads import begin_thread

log = structlog.get_logger(__name__)

EVERY = timedelta(days=1)
AGAIN = timedelta(hours=1)  # after one that failed
LOOK_S = 60.0


def backup_is_due() -> bool:
    """Tell whether the last backup that ended well was begun a day ago, and the last that failed an hour ago."""
    if not settings.BACKUP_URL:
        return False
    now, kind = timezone.now(), BackupResult.Kind.CREATE
    # One that lacks originals which are gone is finished all the same: another one would lack them too.
    good = BackupResult.objects.filter(kind=kind).exclude(name="").order_by("-began_at").first()
    bad = BackupResult.objects.filter(kind=kind, name="").order_by("-ended_at").first()
    return (good is None or good.began_at <= now - EVERY) and (bad is None or bad.ended_at <= now - AGAIN)


def backup_round() -> bool:
    """Write a backup if one is due and no other machine is at it; returns whether one was written.

    What fails is in the log and in the results, and tried again an hour later.
    """
    if not backup_is_due():
        return False
    url = settings.BACKUP_URL
    try:
        made = recorded(
            BackupResult.Kind.CREATE,
            url,
            lambda: backup_create(url),
            lambda made: (made, backup_problem(made)),
        )
    except BackupBusy:
        return False
    log.info("backup_written", name=made.name, rows=made.rows, size=made.size, originals=made.originals.count)
    pruned = backup_prune(url, keep=settings.BACKUP_KEEP)
    log.info("backup_pruned", backups=len(pruned.backups), originals=pruned.originals)
    return True


def verify_due() -> str:
    """Return the name of the backup that is to be verified now, "" for none.

    That is the newest one that was finished, once; an attempt that came to no result is made again an hour later. Where
    one is verified every several days, a newer one is taken at once after one that can't be relied on.
    """
    if not settings.BACKUP_URL or not settings.BACKUP_VERIFY_DAYS:
        return ""
    now = timezone.now()
    made = BackupResult.objects.filter(kind=BackupResult.Kind.CREATE).exclude(name="")
    tried = BackupResult.objects.filter(kind=BackupResult.Kind.VERIFY).order_by("-ended_at", "-pk")
    newest, last = made.order_by("-began_at").first(), tried.exclude(name="").first()
    if newest is None or tried.filter(name=newest.name).exists():
        return ""
    if tried.filter(name="", ended_at__gt=now - AGAIN).exists():
        return ""
    # Half a day of play: backups come every day, each somewhat later than the one before.
    soonest = timedelta(days=settings.BACKUP_VERIFY_DAYS) - timedelta(hours=12)
    if last is not None and last.is_ok and soonest > EVERY and last.ended_at > now - soonest:
        return ""
    return newest.name


def schedule_start() -> None:
    """Look in a thread of this process from now on, until it ends; never before the process forks."""
    begin_thread(backup_round, every_s=LOOK_S, name="backups")


def last_backup() -> BackupResult | None:
    """Return the newest backup that was finished and lacks nothing."""
    return last_result(BackupResult.Kind.CREATE, is_ok=True)

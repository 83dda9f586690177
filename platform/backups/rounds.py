"""Verify the newest backup by the worker's own schedule, in a process apart: it takes memory and works on another database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

import structlog
from django.conf import settings
from django.utils import timezone

from backups.models import BackupResult
from backups.results import verify_unfinished
from backups.schedule import LOOK_S, verify_due
from backups.scratch import SCRATCH_BUSY, is_scratch_free
from basics.processes import die_with_parent
from tenancy.threads import begin_thread

log = structlog.get_logger(__name__)
_TOLD: Final = 2000  # characters of the command's errors that are looked at


def verify_round() -> bool:
    """Verify the newest backup if one is due and no other machine is at it; returns whether one was verified.

    The command keeps its result itself. One that is killed, for memory for example, keeps none: that is kept here, so
    that it is told, and tried again an hour later rather than at once.
    """
    name = verify_due()
    if not name or not is_scratch_free():
        return False
    began = timezone.now()
    command = [sys.executable, str(settings.ROOT / "manage.py"), "backup", "verify", settings.BACKUP_URL]
    # What it does is not the worker's, and not counted with it.
    env = {key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"}
    ended = subprocess.run(
        [*command, "--name", name],
        cwd=settings.ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
    )
    if ended.returncode == SCRATCH_BUSY:
        return False
    kept = BackupResult.objects.filter(kind=BackupResult.Kind.VERIFY, ended_at__gte=began)
    if not kept.exists():
        words = ended.stderr.decode(errors="replace")[-_TOLD:].strip().splitlines()
        reason = words[-1] if words else "it was killed" if ended.returncode < 0 else "it gave no reason"
        verify_unfinished(
            settings.BACKUP_URL, began, f"The verification ended with {ended.returncode}: {reason}"
        )
    log.info("backup_verified", name=name, is_ok=ended.returncode == 0)
    return True


def verify_schedule_start() -> None:
    """Look in a thread of this process from now on, until it ends; never before the process forks."""
    begin_thread(verify_round, every_s=LOOK_S, name="backup-verify")

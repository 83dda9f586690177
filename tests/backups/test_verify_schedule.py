"""When a backup is verified by itself, that its result is kept whatever ends the process, and who tells it."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from backups.models import BackupResult
from backups.rounds import verify_round
from backups.schedule import verify_due
from backups.scratch import SCRATCH_BUSY
from config.doctor import check_backup
from tests.exposition import said_here


def result(kind: str, name: str, *, hours: float = 0, is_ok: bool = True, detail: str = "") -> BackupResult:
    at = timezone.now() - timedelta(hours=hours)
    made: BackupResult = BackupResult.objects.create(
        kind=kind, url="file:///b", name=name, is_ok=is_ok, began_at=at, ended_at=at, detail=detail
    )
    return made


@pytest.fixture(autouse=True)
def scheduled(settings: Any) -> None:
    settings.BACKUP_URL, settings.BACKUP_VERIFY_DAYS = "file:///b", 1


@pytest.mark.django_db
def test_each_backup_is_verified_once_and_a_failed_attempt_again_after_an_hour(settings: Any) -> None:
    assert verify_due() == ""
    result("create", "one", hours=25)
    assert verify_due() == "one"
    attempt = result("verify", "", hours=0.5, is_ok=False)
    assert verify_due() == "", "an attempt without a result waits an hour"
    BackupResult.objects.filter(pk=attempt.pk).update(ended_at=timezone.now() - timedelta(hours=2))
    assert verify_due() == "one"
    result("verify", "one", hours=23)
    assert verify_due() == ""
    result("create", "two", hours=1)
    assert verify_due() == "two"
    result("create", "", is_ok=False)
    assert verify_due() == "two", "what was never finished isn't verified"
    settings.BACKUP_VERIFY_DAYS = 0
    assert verify_due() == ""
    settings.BACKUP_VERIFY_DAYS, settings.BACKUP_URL = 1, ""
    assert verify_due() == ""


@pytest.mark.django_db
def test_one_a_week_but_at_once_after_one_that_cannot_be_relied_on(settings: Any) -> None:
    settings.BACKUP_VERIFY_DAYS = 7
    result("create", "one", hours=48)
    proof = result("verify", "one", hours=47)
    result("create", "two", hours=24)
    assert verify_due() == ""
    BackupResult.objects.filter(pk=proof.pk).update(ended_at=timezone.now() - timedelta(days=7))
    assert verify_due() == "two"
    BackupResult.objects.filter(pk=proof.pk).update(ended_at=timezone.now(), is_ok=False)
    assert verify_due() == "two"


@pytest.mark.django_db(transaction=True)
def test_the_result_is_kept_whatever_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    result("create", "one")
    asked: list[list[str]] = []

    def ends(code: int, stderr: bytes = b"") -> None:
        def run(command: list[str], **options: Any) -> Any:
            asked.append(command)
            assert "PROMETHEUS_MULTIPROC_DIR" not in options["env"]
            return subprocess.CompletedProcess(command, code, b"", stderr)

        monkeypatch.setattr("backups.rounds.subprocess.run", run)

    ends(SCRATCH_BUSY)
    assert not verify_round(), "another machine is at it: no attempt"
    assert not BackupResult.objects.filter(kind="verify").exists()
    ends(-9)
    assert verify_round()
    kept = BackupResult.objects.get(kind="verify")
    assert (kept.is_ok, kept.name) == (False, "")
    assert "-9" in kept.detail
    assert "killed" in kept.detail
    assert not verify_round(), "not again at once"
    kept.delete()
    ends(1, b"Traceback\nCommandError: No space left on device\n")
    assert verify_round()
    assert "No space left" in BackupResult.objects.get(kind="verify").detail
    assert asked[-1][2:] == ["backup", "verify", "file:///b", "--name", "one"]


@pytest.mark.django_db(transaction=True)
def test_doctor_and_metrics_tell_a_verification_that_failed() -> None:
    result("create", "one", hours=1)
    assert check_backup().ok
    assert said_here().value("groundwork_backup_verify_failed") == 0
    result("verify", "one", is_ok=False, detail="collections_chunk: 5 rows restored, 7 backed up.")
    assert not check_backup().ok
    assert "5 rows restored" in check_backup().detail
    assert said_here().value("groundwork_backup_verify_failed") == 1
    BackupResult.objects.all().delete()
    result("create", "old", hours=50)
    late = said_here().value("groundwork_backup_verify_overdue_seconds")
    assert 25 * 3600 < late < 27 * 3600

"""When a backup is due, what is kept of how it ended, and who tells it."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from backups import results, schedule
from backups.errors import BackupBusy, BackupRefused
from backups.models import BackupResult
from backups.places import Place
from backups.results import is_verified, last_result, recorded
from backups.schedule import backup_is_due, backup_round, last_backup
from backups.snapshot import alone
from config.doctor import check_backup
from config.upgrade import _check_backup
from tests.backups.conftest import Installation


def result(*, kind: str = "create", hours: float = 0, is_ok: bool = True, name: str = "n") -> BackupResult:
    """Keep a result that is some hours old."""
    at = timezone.now() - timedelta(hours=hours)
    made: BackupResult = BackupResult.objects.create(
        kind=kind, url="file:///b", name=name, is_ok=is_ok, began_at=at, ended_at=at, row_count=7
    )
    return made


@pytest.mark.django_db
def test_a_backup_is_due_every_day_and_an_hour_after_one_that_failed(settings: Any) -> None:
    settings.BACKUP_URL = ""
    assert not backup_is_due()
    settings.BACKUP_URL = "file:///b"
    assert backup_is_due()
    result(hours=25)
    assert backup_is_due()
    result(hours=0.5, is_ok=False, name="")
    assert not backup_is_due()
    BackupResult.objects.filter(is_ok=False).delete()
    result(hours=2, is_ok=False, name="")
    assert backup_is_due()
    result(hours=23)
    assert not backup_is_due()
    BackupResult.objects.all().delete()
    result(hours=1, is_ok=False, name="finished-but-an-original-is-lost")
    assert not backup_is_due(), "another one would lack it too"
    result(kind="verify")
    assert not backup_is_due()


@pytest.mark.django_db
def test_doctor_tells_the_last_backup(settings: Any) -> None:
    settings.BACKUP_URL = ""
    assert check_backup().ok
    assert "none yet; not scheduled" in check_backup().detail
    settings.BACKUP_URL = "file:///b"
    assert check_backup().ok
    old = result(hours=49, name="old")
    assert not check_backup().ok
    assert "the last one is from" in check_backup().detail
    old.delete()
    result(hours=3, name="new")
    assert check_backup().ok
    assert "new, 7 rows" in check_backup().detail
    assert "verified" not in check_backup().detail
    result(kind="verify", name="new")
    assert "verified" in check_backup().detail
    failed = result(is_ok=False, name="")
    failed.detail = "The bucket is gone."
    failed.save()
    assert not check_backup().ok
    assert "The bucket is gone." in check_backup().detail


@pytest.mark.django_db
def test_upgrade_check_tells_whether_there_is_a_fresh_verified_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _check_backup().detail == "none known"
    result(hours=30, name="old")
    assert "older than a day" in _check_backup().detail
    result(hours=1, name="new")
    assert "not verified" in _check_backup().detail
    result(kind="verify", name="old")
    assert "not verified" in _check_backup().detail
    result(kind="verify", name="new")
    assert "fresh and verified" in _check_backup().detail
    assert _check_backup().fix == ""
    result(kind="verify", name="new", is_ok=False)
    assert "not verified" in _check_backup().detail
    monkeypatch.setattr(BackupResult._meta, "db_table", "backups_before_it_was_made")
    assert "from before backups were recorded" in _check_backup().detail


@pytest.mark.django_db
def test_how_it_ended_is_kept_whichever_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: Exception) -> Any:
        raise error

    def keep(error: Exception) -> None:
        recorded("create", "file:///b", lambda: fail(error), lambda made: (made, ""))

    for error in (BackupRefused("Something is in the way."), OSError("no space left")):
        with pytest.raises(type(error)):
            keep(error)
    assert [r.detail for r in BackupResult.objects.order_by("pk")] == [
        "Something is in the way.",
        "OSError: no space left",
    ]
    with pytest.raises(BackupBusy):
        keep(BackupBusy())
    assert BackupResult.objects.count() == 2, "the one at work tells how it ended"
    monkeypatch.setattr(results, "KEPT", results.KEPT * 0)
    with pytest.raises(BackupRefused):
        keep(BackupRefused("Again."))
    assert BackupResult.objects.count() <= 1, "old ones are forgotten"


@pytest.mark.django_db(transaction=True)
def test_a_round_writes_one_and_prunes(installation: Installation, settings: Any) -> None:
    url = settings.BACKUP_URL = f"file://{installation.place}"
    settings.BACKUP_KEEP = 2
    for _ in range(2):
        call_command("backup", "create", url, stdout=StringIO())
    BackupResult.objects.update(began_at=timezone.now() - schedule.EVERY)
    before = Place(url).names()
    with alone():
        assert not backup_round(), "another machine is at it"
    assert backup_round()
    assert not backup_round(), "not before tomorrow"
    last = last_backup()
    assert last is not None
    assert Place(url).names() == [before[1], last.name]
    assert last.row_count > 100
    assert last.original_count == 3
    assert not is_verified(last.name)
    out = StringIO()
    call_command("backup", "list", stdout=out)
    assert out.getvalue().count("not encrypted") == 2
    settings.BACKUP_URL = "file:///dev/null/nowhere"
    BackupResult.objects.update(began_at=timezone.now() - schedule.EVERY)
    with pytest.raises(OSError, match="Not a directory"):
        backup_round()
    failed = last_result("create")
    assert failed is not None
    assert not failed.is_ok
    assert not backup_round(), "not before an hour has gone by"

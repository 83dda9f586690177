"""What imports put on disk for a while goes when they end: well, failed, cancelled or killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.imports import services
from apps.collections.imports.tasks import import_ended
from apps.collections.ingestion.sources.archives import archive_entries
from apps.collections.models import Collection, Import, ImportStatus
from basics.errors import Conflict
from blobs.stores import store
from jobs.context import JobCancelled
from jobs.models import Job, JobStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.imports.support import make_zip, run, start

pytestmark = pytest.mark.django_db
NESTED = make_zip({"inner.zip": make_zip({"lamps.md": b"# Lamps\n\nLamps are dutiable."})})


@pytest.fixture(autouse=True)
def scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def scratch(storage: Path, settings: Any) -> Path:
    return Path(settings.DATA_DIR) / "cache" / "imports"


@pytest.fixture
def seen(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what lies in the folder of an import while it runs."""
    found: list[str] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        for item in archive_entries(*args, **kwargs):
            found.extend(path.suffix for path in scratch.rglob("*") if path.is_file())
            yield item

    monkeypatch.setattr("apps.collections.imports.sources.archive_entries", watched)
    return found


def test_unpacked_archive_lies_in_the_imports_folder_and_goes_with_it(
    cast: Cast, collection: Collection, scratch: Path, seen: list[str]
) -> None:
    row = run(start(cast, collection, "archive", data=NESTED))
    assert row.status == "completed"
    assert ".zip" in seen
    assert list(scratch.iterdir()) == []


def test_cancelled_import_leaves_nothing_unpacked(
    cast: Cast, collection: Collection, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        assert len(list(scratch.iterdir())) == 1
        raise JobCancelled("stopped")

    monkeypatch.setattr("apps.collections.imports.job._Work.take", stop)
    row = run(start(cast, collection, "archive", data=NESTED))
    assert row.status == "cancelled"
    assert list(scratch.iterdir()) == []


def _killed(cast: Cast, collection: Collection, scratch: Path, status: str) -> tuple[Import, Path]:
    row = start(cast, collection, "archive", data=NESTED)
    Import.objects.filter(pk=row.pk).update(status=status)
    left = scratch / f"t{cast.tenant.pk}-{row.pk}-abc"
    left.mkdir(parents=True)
    (left / "half.zip").write_bytes(b"x")
    return row, left


def test_next_import_sweeps_what_killed_ones_left_but_not_what_is_in_use(
    cast: Cast, collection: Collection, scratch: Path
) -> None:
    _, running = _killed(cast, collection, scratch, ImportStatus.RUNNING)
    _, ended = _killed(cast, collection, scratch, ImportStatus.FAILED)
    foreign = scratch / f"t{cast.other_tenant.pk}-1-abc"
    foreign.mkdir()
    run(start(cast, collection, "archive", data=NESTED))
    assert sorted(os.listdir(scratch)) == sorted([running.name, foreign.name])
    assert not ended.exists()


def test_second_attempt_sweeps_what_the_first_left(cast: Cast, collection: Collection, scratch: Path) -> None:
    row, left = _killed(cast, collection, scratch, ImportStatus.QUEUED)
    run(row)
    assert not left.exists()


def test_end_of_a_killed_job_removes_what_it_left(
    cast: Cast, collection: Collection, scratch: Path, django_capture_on_commit_callbacks: Any
) -> None:
    row, left = _killed(cast, collection, scratch, ImportStatus.RUNNING)
    assert row.job_id is not None
    job = Job.objects.get(pk=row.job_id)
    job.status, job.error_code = JobStatus.FAILED, "worker_lost"
    with django_capture_on_commit_callbacks(execute=True):
        import_ended(job)
    assert not left.exists()


def test_archive_of_a_failed_import_waits_a_week_for_a_retry(
    cast: Cast, collection: Collection, django_capture_on_commit_callbacks: Any
) -> None:
    row = run(start(cast, collection, "archive", data=b"PK\x03\x04 cut", name="cut.zip"))
    key = row.file
    with django_capture_on_commit_callbacks(execute=True):
        start(cast, collection, "archive", data=NESTED)
    assert store().size(key)
    Import.objects.filter(pk=row.pk).update(finished_at=timezone.now() - timedelta(days=8))
    with django_capture_on_commit_callbacks(execute=True):
        start(cast, collection, "archive", data=NESTED)
    assert store().size(key) is None
    with pytest.raises(Conflict, match="7 days"):
        services.import_retry(tenant=cast.tenant, actor=cast.actor("member"), row=row)

"""An import ends with every entry a document or a listed problem, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any

import pytest

from apps.collections.documents import services as documents_services
from apps.collections.imports import services as imports_services
from apps.collections.imports import tally
from apps.collections.models import Collection, Document, FileBatch, Import, ImportStatus
from apps.collections.tree.store import files_stored
from basics.errors import Conflict, Denied, Invalid
from blobs import services as blobs
from blobs.stores import store
from jobs.models import Job, JobStatus
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.imports.support import ingest_all, make_tar, make_zip, paths, reasons, run, start

pytestmark = pytest.mark.django_db
FILES = {
    "guide/lamps.md": b"# Lamps\n\nLED lamps of heading 8539.50.00 are dutiable at two percent.",
    "guide/pumps.md": b"# Pumps\n\nPumps for liquids stand in heading 8413.70.20.",
    "guide/.secret": b"hidden",
    "node_modules/a/index.js": b"x",
    "node_modules/b/index.js": b"y",
    "logo.png": b"\x89PNG\r\n\x1a\n",
    "blob.txt": bytes(range(256)) * 10,
    "empty.md": b"",
}


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def test_files_without_text_are_kept_as_files_when_asked(cast: Cast, collection: Collection) -> None:
    data = make_zip({**FILES, "src/__init__.py": b"", "../up.bin": b"x"})
    plain = run(start(cast, collection, "archive", data=data, name="trade.zip"))
    assert plain.entries["files_kept"] == 0
    row = run(start(cast, collection, "archive", data=data, name="trade.zip", with_unsearchable=True))
    assert (row.status, row.error_code) == ("completed", "")
    documents = {"trade/guide/lamps.md", "trade/guide/pumps.md", "trade/logo.png"}
    only_files = {"trade/blob.txt", "trade/empty.md", "trade/src/__init__.py"}
    assert set(paths(collection)) == documents
    stored = files_stored(cast.actor("member"), collection.pk)
    assert set(stored) == documents | only_files
    assert stored["trade/blob.txt"].sha256 == hashlib.sha256(FILES["blob.txt"]).hexdigest()
    assert (row.entries["files_kept"], row.entries["unchanged"]) == (3, 2)
    assert reasons(row) == {"guide/.secret": "hidden", "node_modules/": "ignored", "../up.bin": "unsafe_path"}
    found = row.entries
    assert found["found"] == sum(
        found[n] for n in ("files_kept", "created", "unchanged", "skipped", "problems")
    )
    batches = FileBatch.objects.count()
    run(start(cast, collection, "archive", data=data, name="trade.zip", with_unsearchable=True))
    assert FileBatch.objects.count() == batches, "the same bytes are no change"


def test_read_only_collection_names_the_files_it_refuses(cast: Cast, collection: Collection) -> None:
    collection.file_rules = {"read_only": True}
    collection.save()
    row = run(start(cast, collection, "archive", data=make_zip(FILES), name="t.zip", with_unsearchable=True))
    assert row.status == "completed"
    assert {path for path, reason in reasons(row).items() if reason == "refused"} == {
        "t/blob.txt",
        "t/empty.md",
    }
    assert row.entries["files_kept"] == 0


def test_every_entry_is_a_document_or_listed(cast: Cast, collection: Collection) -> None:
    row = run(start(cast, collection, "archive", data=make_zip(FILES), name="trade.zip"))
    assert (row.status, row.error_code) == ("completed", "")
    assert paths(collection) == ["trade/guide/lamps.md", "trade/guide/pumps.md"]
    assert reasons(row) == {
        "guide/.secret": "hidden",
        "node_modules/": "ignored",
        "logo.png": "binary",
        "blob.txt": "unsupported_type",
        "empty.md": "empty",
    }
    found = row.entries
    assert found["found"] == len(FILES)
    assert found["created"] + found["skipped"] + found["problems"] == found["found"]
    assert found["by_reason"]["ignored"] == 2
    ready = ingest_all(collection)
    assert {d.status for d in ready} == {"ready"}
    assert {(d.source, d.batch_id) for d in ready} == {("archive", row.pk)}


def test_archive_is_not_kept_after_the_end_and_cannot_be_retried(
    cast: Cast, collection: Collection, django_capture_on_commit_callbacks: Any
) -> None:
    started = start(cast, collection, "archive", data=make_zip(FILES))
    key = started.file
    assert store().size(key)
    with django_capture_on_commit_callbacks(execute=True):
        row = run(started)
    assert store().size(key) is None
    with pytest.raises(Conflict, match="is deleted after"):
        imports_services.import_retry(tenant=cast.tenant, actor=cast.actor("member"), row=row)


def test_second_import_changes_only_what_changed_and_removes_what_is_gone(
    cast: Cast, collection: Collection
) -> None:
    run(start(cast, collection, "archive", data=make_zip(FILES), name="trade.zip"))
    ingest_all(collection)
    changed = {"guide/lamps.md": FILES["guide/lamps.md"], "guide/new.md": b"# New\n\nA new page."}
    row = run(start(cast, collection, "archive", data=make_zip(changed), name="trade.zip"))
    assert (row.entries["created"], row.entries["unchanged"], row.entries["removed"]) == (1, 1, 0)
    changed["guide/lamps.md"] = b"# Lamps\n\nLamps are free of duty now."
    row = run(start(cast, collection, "archive", data=make_zip(changed), name="trade.zip", sync=True))
    assert (row.entries["updated"], row.entries["unchanged"], row.entries["removed"]) == (1, 1, 1)
    assert paths(collection) == ["trade/guide/lamps.md", "trade/guide/lamps.md", "trade/guide/new.md"]


def test_sync_leaves_what_others_brought_and_what_is_merely_left_out(
    cast: Cast, collection: Collection
) -> None:
    run(start(cast, collection, "archive", data=make_zip(FILES), name="trade.zip"))
    run(start(cast, collection, "archive", data=make_zip({"x.md": b"# X\n\nOther."}), name="other.zip"))
    documents_services.document_upload(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        collection=collection,
        name="own.md",
        chunks=[b"# Own\n\nUploaded by hand."],
    )
    broken = {"guide/lamps.md": b"", "other.md": b"# Other\n\nText."}
    run(start(cast, collection, "archive", data=make_zip(broken), name="trade.zip", sync=True))
    # The empty file is a listed problem, not a file that is gone.
    assert paths(collection) == ["other/x.md", "own.md", "trade/guide/lamps.md", "trade/other.md"]


def test_killed_import_goes_on_and_counts_as_if_it_had_not_been(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start(cast, collection, "archive", data=make_zip(FILES), name="trade.zip")
    real, calls = documents_services.document_put, []

    def dying(**given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return real(**given)

    monkeypatch.setattr(documents_services, "document_put", dying)
    row = run(started)
    assert row.status == "running"
    assert len(paths(collection)) == 1
    row = run(row)
    assert (row.status, row.entries["created"], row.entries["unchanged"]) == ("completed", 2, 0)
    assert Document.objects.filter(collection=collection).count() == 2


def test_only_an_entry_that_became_a_document_sets_the_deaths_of_workers_back(
    cast: Cast, collection: Collection
) -> None:
    for data, left in ((make_zip({"logo.png": FILES["logo.png"]}), 2), (make_zip(FILES), 0)):
        row = start(cast, collection, "archive", data=data)
        job = Job.objects.filter(pk=row.job_id or 0)
        job.update(deaths=2)
        assert run(row).status == ImportStatus.COMPLETED
        assert job.get().deaths == left


def test_full_disk_fails_the_import_with_its_reason_and_retry_finishes_it(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start(cast, collection, "archive", data=make_zip(FILES))
    real = blobs.receive

    def full(*args: Any, **options: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(blobs, "receive", full)
    row = run(started)
    assert (row.status, row.error_code) == ("failed", "storage_full")
    assert "storage is full" in row.error_message
    monkeypatch.setattr(blobs, "receive", real)
    imports_services.import_retry(tenant=cast.tenant, actor=cast.actor("member"), row=row)
    assert run(row).status == "completed"
    assert len(paths(collection)) == 2


def test_cancelled_import_keeps_what_it_brought(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = start(cast, collection, "archive", data=make_zip(FILES))
    imports_services.import_cancel(tenant=cast.tenant, actor=cast.actor("member"), row=waiting)
    waiting.refresh_from_db()
    assert waiting.status == ImportStatus.CANCELLED
    assert Job.objects.get(pk=waiting.job_id or 0).status == JobStatus.CANCELLED
    with pytest.raises(Conflict):
        imports_services.import_cancel(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            row=run(start(cast, collection, "archive", data=make_zip(FILES))),
        )


def test_import_stops_when_its_person_has_lost_the_right(cast: Cast, collection: Collection) -> None:
    started = start(cast, collection, "archive", data=make_zip(FILES))
    Membership.objects.filter(tenant=cast.tenant, user=cast.user("member")).update(role="viewer")
    row = run(started)
    assert (row.status, row.error_code) == ("failed", "permission_denied")
    assert paths(collection) == []
    with pytest.raises(Denied):
        start(cast, collection, "archive", data=make_zip(FILES), role="viewer")


def test_truncated_tar_keeps_what_came_before_and_says_so(cast: Cast, collection: Collection) -> None:
    data = make_tar({f"{n}.md": b"# Page\n\n" + bytes(str(n), "ascii") * 3000 for n in range(9)}, "w")
    row = run(start(cast, collection, "archive", data=data[: len(data) // 2], name="cut.tar"))
    assert (row.status, row.error_code) == ("failed", "archive_damaged")
    assert 0 < len(paths(collection)) < 9


def test_archive_larger_than_allowed_ends_with_its_reason(
    cast: Cast, collection: Collection, settings: Any
) -> None:
    settings.IMPORT_MAX_FILES = 5
    row = run(start(cast, collection, "archive", data=make_zip(FILES)))
    assert (row.status, row.error_code) == ("failed", "too_many_entries")


def test_problems_are_counted_beyond_what_is_listed(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "MAX_LISTED", 10)
    many = {f"p{n}.png": b"x" for n in range(20)} | {f"../{n}.md": b"x" for n in range(12)}
    row = run(start(cast, collection, "archive", data=make_zip(many)))
    assert (row.entries["skipped"], row.entries["problems"]) == (20, 12)
    assert len(row.problems) == 10
    assert row.entries["unlisted"] == 22
    assert sum(not problem["is_skip"] for problem in row.problems) == 5


@pytest.mark.parametrize(
    ("source", "options", "field"),
    [
        ("upload", {}, "source"),
        ("url", {"urls": ()}, "urls"),
        ("url", {"urls": ("ftp://example.org/",)}, "urls"),
        ("url", {"urls": ("http://127.0.0.1/",)}, "urls"),
        ("archive", {}, "file"),
        ("folder", {"path": "relative"}, "path"),
        ("git", {"path": "/a\nb"}, "path"),
        ("folder", {"path": "/a", "exclude": ("x",) * 101}, "exclude"),
    ],
)
def test_import_is_refused_at_the_field_that_is_wrong(
    cast: Cast, collection: Collection, source: str, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        start(cast, collection, source, **options)
    assert field in refused.value.data["fields"]
    assert not Import.objects.exists()


def test_no_temporary_file_is_left(cast: Cast, collection: Collection, storage: Path) -> None:
    run(start(cast, collection, "archive", data=make_zip(FILES)))
    assert list((storage / "incoming").iterdir()) == []

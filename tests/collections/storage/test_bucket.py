"""The way of a file through a bucket: uploaded, read, shown, changed by tools, imported, exported, deleted without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.collections.collection import reconcile
from apps.collections.collection import services as collection_services
from apps.collections.documents import services as documents_services
from apps.collections.documents import versions
from apps.collections.documents.page_images import page_image
from apps.collections.files import services as files_services
from apps.collections.files import undo
from apps.collections.models import Collection, Document
from blobs import caches
from blobs import services as blobs
from blobs.errors import BlobMissing, StoreAway
from blobs.leases import blob_cache
from blobs.models import PendingBlob
from blobs.services import pending_sweep
from blobs.stores import store
from jobs.models import Job, JobStatus
from tenancy.scope import tenant_scope
from tests.bucket import Bucket, serving
from tests.cast import Cast
from tests.collections.conftest import LAMPS, attempt, ingest, job_of, make_due, upload
from tests.collections.imports.support import make_zip, run, start
from tests.collections.ingestion.files import make_pdf

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3: str, settings: Any, storage: Path, cast: Cast) -> Iterator[Bucket]:
    found = Bucket(s3)
    settings.FILES_URL = found.url
    with tenant_scope(cast.tenant.pk):
        yield found


@pytest.fixture
def commits(django_capture_on_commit_callbacks: Any) -> Any:
    return lambda: django_capture_on_commit_callbacks(execute=True)


def read_whole(response: Any) -> bytes:
    """Return what a streamed answer holds."""

    async def whole() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    assert response.status_code == 200
    return asyncio.run(whole())


def on_disk(folder: Path, needle: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_document_lives_and_dies_in_the_bucket(
    cast: Cast, collection: Collection, bucket: Bucket, storage: Path, commits: Any, client: Client
) -> None:
    needle = b"Quaggaboat 4711"
    with commits():
        document = ingest(cast, collection, "lamps.md", LAMPS + needle)
    assert document.status == "ready"
    assert bucket.keys() == {document.file}
    client.force_login(cast.user("member"))
    address = reverse("collections:document-download", args=[cast.tenant.slug, collection.pk, document.pk])
    assert read_whole(client.get(address)) == LAMPS + needle
    assert on_disk(storage.parent, needle), "a copy is cached"
    with commits():
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert bucket.keys() == set()
    assert on_disk(storage.parent, needle) == []
    assert reconcile.ingestion_check(tenant=cast.tenant, actor=cast.actor("owner")).findings == []


def test_other_machine_forgets_what_this_one_deletes(
    cast: Cast, collection: Collection, bucket: Bucket, settings: Any, tmp_path: Path, commits: Any
) -> None:
    pdf = make_pdf(tmp_path / "a.pdf", [["Quaggaboat 4711 is a boat of great fame, and so is its captain."]])
    with commits():
        document = ingest(cast, collection, "a.pdf", pdf.read_bytes())
    other = tmp_path / "machine-2"
    here = settings.DATA_DIR
    settings.DATA_DIR = other
    caches.caches_look()
    page_image(document, 1)
    assert len(list((other / "cache" / "pages").rglob("*.webp"))) == 1
    settings.DATA_DIR = here
    with commits():
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    settings.DATA_DIR = other
    caches.caches_look()
    assert [path for path in (other / "cache").rglob("*") if path.is_file()] == []


def test_store_that_is_away_makes_a_document_wait_and_not_fail(
    cast: Cast, collection: Collection, bucket: Bucket, settings: Any
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    there, settings.FILES_URL = settings.FILES_URL, "s3://b/p?endpoint=http://127.0.0.1:9&region=us-east-1"
    for _ in range(5):
        document = attempt(document)
        assert (document.status, job_of(document).status) == ("processing", JobStatus.QUEUED)
        make_due(document)
    with pytest.raises(StoreAway) as refused:
        upload(cast, collection, "pumps.md", LAMPS)
    assert (refused.value.status, refused.value.data) == (503, {"retry_after": 10})
    settings.FILES_URL = there
    document = attempt(document)
    assert document.status == "ready"
    assert job_of(document).attempts == 1, "waiting used up no attempt"


def test_store_that_stays_away_ends_the_job_with_its_reason(
    cast: Cast, collection: Collection, bucket: Bucket, settings: Any
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    settings.FILES_URL = "s3://b/p?endpoint=http://127.0.0.1:9&region=us-east-1"
    Job.objects.filter(pk=document.job_id or 0).update(waits_since="2000-01-01T00:00Z")
    document = attempt(document)
    assert (document.status, document.error_code) == ("failed", "file_store_away")


def test_files_changed_by_tools_reach_the_bucket_and_can_be_undone(
    cast: Cast, collection: Collection, bucket: Bucket, commits: Any
) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    with commits():
        upload(cast, collection, "a.md", b"first")
        files_services.file_write(**who, path="a.md", content="second")
        files_services.file_write(**who, path="b.md", content="other")
    current = Document.objects.filter(collection=collection)
    assert bucket.keys() == set(current.values_list("file", flat=True))
    assert len(bucket.keys()) == 3
    with commits():
        undo.batch_undo(**who)
        undo.batch_undo(**who)
    assert {d.path: d.sha256 for d in current.current().order_by("version")} == {
        "a.md": "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
    }
    assert reconcile.ingestion_check(tenant=cast.tenant, actor=cast.actor("owner")).findings == []


def test_file_of_a_tool_that_was_not_placed_yet_is_read_from_its_history(
    cast: Cast, collection: Collection, bucket: Bucket
) -> None:
    files_services.file_write(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        collection=collection,
        path="a.md",
        content="Lamps cost 2.",
    )
    document = Document.objects.get(path="a.md")
    assert bucket.keys() == set(), "no commit yet: nothing waited for the store"
    assert attempt(document).status == "ready"
    assert bucket.keys() == set(), "reading places nothing"
    PendingBlob.objects.filter(removed_at=None).update(due_at=timezone.now() - timedelta(seconds=5))
    assert pending_sweep() == 1
    assert bucket.keys() == {document.file}


def test_archive_is_imported_from_the_bucket_and_leaves_it(
    cast: Cast, collection: Collection, bucket: Bucket, commits: Any
) -> None:
    with commits():
        row = start(
            cast, collection, "archive", data=make_zip({"a.md": LAMPS, "b.md": b"Pumps pay nothing."})
        )
    assert bucket.keys() == {row.file}
    with commits():
        row = run(row)
    assert row.status == "completed"
    assert bucket.keys() == set(Document.objects.filter(collection=collection).values_list("file", flat=True))
    assert row.file == ""


def test_deleted_collection_leaves_nothing(
    cast: Cast, collection: Collection, bucket: Bucket, storage: Path, commits: Any
) -> None:
    with commits():
        ingest(cast, collection, "a.md", LAMPS)
        ingest(cast, collection, "b.md", LAMPS + b"more")
    with commits():
        collection_services.collection_delete(
            tenant=cast.tenant, actor=cast.actor("admin"), collection=collection
        )
    assert bucket.keys() == set()
    assert on_disk(storage.parent, b"LED lamps") == []


def test_version_of_a_lost_original_is_refused(
    cast: Cast, collection: Collection, bucket: Bucket, commits: Any
) -> None:
    with commits():
        document = ingest(cast, collection, "a.md", LAMPS)
    store().remove(document.file)
    with pytest.raises(BlobMissing):
        versions.document_reindex(tenant=cast.tenant, actor=cast.actor("member"), document=document)


def test_orphans_of_both_ways_are_found_and_repaired(
    cast: Cast,
    collection: Collection,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: Any,
) -> None:
    monkeypatch.setattr(reconcile, "GRACE_S", -60)
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    with commits():
        document = ingest(cast, collection, "a.md", LAMPS)
    store().remove(document.file)
    (tmp_path / "stray").write_bytes(b"stray")
    stray = f"t{cast.tenant.pk}/{collection.pk}/aa/{'aa' * 32}"
    store().put(stray, tmp_path / "stray")
    with commits():
        findings = reconcile.ingestion_check(**who, repair=True).findings
    assert {(finding.code, finding.is_repaired) for finding in findings} == {
        ("original_missing", False),
        ("original_orphaned", True),
    }
    assert bucket.keys() == set()


def test_sweep_finishes_what_a_killed_upload_left(cast: Cast, collection: Collection, bucket: Bucket) -> None:
    received = blobs.receive([LAMPS], max_bytes=10_000)
    documents_services.original_keep(cast.tenant, collection, received)
    PendingBlob.objects.update(due_at=timezone.now() - timedelta(seconds=9))
    assert len(bucket.keys()) == 1
    pending_sweep()
    assert bucket.keys() == set()
    assert list(blob_cache().rglob("*")) == []

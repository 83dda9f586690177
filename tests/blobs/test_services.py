"""Bytes first, then the row; whatever is interrupted ends with neither lost bytes nor orphans."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from basics.errors import Conflict, Invalid
from blobs import leases, references, remote, stores
from blobs import services as blobs
from blobs.errors import BlobMissing, StoreAway
from blobs.leases import blob_read, lease
from blobs.models import PendingBlob
from blobs.stores import store
from tenancy.database.waiting import WaitsWithConnection
from tenancy.scope import tenant_scope
from tests.bucket import Bucket
from tests.cast import Cast, make_cast
from tests.servers import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The keys that rows name."""
    keys: set[str] = set()
    monkeypatch.setattr(references, "_asked", [lambda tenant, asked: keys & set(asked)])
    return keys


@pytest.fixture(params=["folder", "bucket"])
def somewhere(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("home" if request.param == "folder" else "in_bucket")


def receive(content: bytes = b"bytes") -> tuple[blobs.ReceivedFile, str]:
    received = blobs.receive([content], max_bytes=1000)
    return received, f"t1/2/{received.sha256[:2]}/{received.sha256}"


def keep(cast: Cast, content: bytes = b"bytes") -> tuple[blobs.ReceivedFile, str]:
    received, key = receive(content)
    blobs.keep(cast.tenant.pk, key, received)
    return received, key


def pending() -> list[str]:
    return list(PendingBlob.objects.filter(removed_at=None).values_list("key", flat=True))


@pytest.mark.usefixtures("somewhere")
def test_named_bytes_stay(cast: Cast, named: set[str], django_capture_on_commit_callbacks: Any) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        assert pending() == [key]
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            named.add(key)
            blobs.name(received, key)
        received.discard()
        assert pending() == []
        assert blob_read(key) == b"bytes"
        assert not received.path.exists()


@pytest.mark.usefixtures("somewhere")
def test_bytes_that_no_row_came_to_name_go(cast: Cast, named: set[str]) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        with transaction.atomic():
            blobs.name(received, key)
            transaction.set_rollback(True)
        received.discard()
        assert store().size(key) is None
        assert pending() == []


@pytest.mark.usefixtures("somewhere")
def test_killed_upload_is_taken_back_after_a_day_and_not_before(cast: Cast, named: set[str]) -> None:
    with tenant_scope(cast.tenant.pk):
        _, key = keep(cast)
    assert blobs.pending_sweep() == 0
    assert store().size(key) == 5
    with tenant_scope(cast.tenant.pk):
        PendingBlob.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    assert blobs.pending_sweep() == 1
    assert store().size(key) is None


@pytest.mark.usefixtures("somewhere")
def test_upload_that_took_too_long_is_refused_not_lost(cast: Cast, named: set[str]) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        PendingBlob.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    blobs.pending_sweep()
    with tenant_scope(cast.tenant.pk), pytest.raises(Conflict), transaction.atomic():
        blobs.name(received, key)


@pytest.mark.usefixtures("somewhere")
def test_dropped_bytes_go_unless_a_row_names_them(
    cast: Cast, named: set[str], django_capture_on_commit_callbacks: Any
) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        named.add(key)
        blobs.name(received, key)
        with django_capture_on_commit_callbacks(execute=True):
            blobs.drop(cast.tenant.pk, key)
        assert store().size(key) == 5, "still named"
        named.clear()
        with django_capture_on_commit_callbacks(execute=True):
            blobs.drop(cast.tenant.pk, key)
        assert store().size(key) is None
        assert pending() == []


@pytest.mark.usefixtures("somewhere")
def test_dropped_bytes_stay_while_somebody_places_the_same(
    cast: Cast, named: set[str], django_capture_on_commit_callbacks: Any
) -> None:
    with tenant_scope(cast.tenant.pk):
        other, key = keep(cast)
        with django_capture_on_commit_callbacks(execute=True):
            blobs.drop(cast.tenant.pk, key)
        assert blob_read(key) == b"bytes"
        other.discard()
        assert store().size(key) is None


@pytest.mark.usefixtures("somewhere")
def test_commit_without_its_callbacks_is_finished_by_the_sweep(cast: Cast, named: set[str]) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        named.add(key)
        blobs.name(received, key)
        named.clear()
        blobs.drop(cast.tenant.pk, key)  # the process dies before its callbacks run
        assert blobs.pending_sweep() == 0, "the process has a moment to do it by itself"
        PendingBlob.objects.filter(removed_at=None).update(due_at=timezone.now() - timedelta(seconds=5))
    assert blobs.pending_sweep() == 1
    assert store().size(key) is None


@pytest.mark.usefixtures("somewhere")
def test_prefix_of_a_deleted_collection_goes_whole(
    cast: Cast, named: set[str], django_capture_on_commit_callbacks: Any
) -> None:
    with tenant_scope(cast.tenant.pk):
        for content in (b"one", b"two"):
            received, key = keep(cast, content)
            blobs.name(received, key)
        with django_capture_on_commit_callbacks(execute=True):
            blobs.drop(cast.tenant.pk, "t1/2/")
        assert list(store().below("t1/")) == []


def test_store_that_is_away_delays_and_loses_nothing(
    cast: Cast, named: set[str], settings: Any, in_bucket: Bucket, django_capture_on_commit_callbacks: Any
) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        blobs.name(received, key)
        there = settings.FILES_URL
        settings.FILES_URL = "s3://b/p?endpoint=http://127.0.0.1:9&region=us-east-1"
        other, other_key = receive(b"other")
        with pytest.raises(StoreAway):
            blobs.keep(cast.tenant.pk, other_key, other)
        other.discard()
        with django_capture_on_commit_callbacks(execute=True):
            blobs.drop(cast.tenant.pk, key)
        assert sorted(pending()) == sorted([key, other_key])
        PendingBlob.objects.update(due_at=timezone.now() - timedelta(seconds=5))
    assert blobs.pending_sweep() == 0
    with tenant_scope(cast.tenant.pk):
        assert not PendingBlob.objects.filter(due_at__lte=timezone.now()).exists(), "tried again later"
        settings.FILES_URL = there
        PendingBlob.objects.update(due_at=timezone.now() - timedelta(seconds=5))
    assert blobs.pending_sweep() == 2
    assert in_bucket.keys() == set()


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, method: str, *, is_before: bool) -> Iterator[None]:
    """Let the store's method end as a killed process does, before or after it has done its work."""
    real = getattr(remote.S3Store, method)

    def die(*args: Any) -> None:
        if not is_before:
            real(*args)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(remote.S3Store, method, die)
        yield


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("method", ["put", "remove"])
def test_death_at_the_store_leaves_no_orphan(
    cast: Cast,
    named: set[str],
    in_bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
    method: str,
    is_before: bool,
) -> None:
    with tenant_scope(cast.tenant.pk):
        if method == "put":
            with dying(monkeypatch, "put", is_before=is_before), pytest.raises(SystemExit):
                keep(cast)
        else:
            received, key = keep(cast)
            blobs.name(received, key)
            with (
                dying(monkeypatch, "remove", is_before=is_before),
                pytest.raises(SystemExit),
                django_capture_on_commit_callbacks(execute=True),
            ):
                blobs.drop(cast.tenant.pk, key)
        PendingBlob.objects.filter(removed_at=None).update(due_at=timezone.now() - timedelta(seconds=5))
    blobs.pending_sweep()
    assert in_bucket.keys() == set()
    with tenant_scope(cast.tenant.pk):
        assert pending() == []


def test_nothing_is_placed_inside_a_transaction(cast: Cast, home: Any) -> None:
    with tenant_scope(cast.tenant.pk), transaction.atomic(), pytest.raises(WaitsWithConnection):
        keep(cast)


def test_more_than_the_limit_is_refused_and_leaves_nothing(home: Any) -> None:
    with pytest.raises(Invalid, match="limit"):
        blobs.receive([b"x" * 600, b"x" * 600], max_bytes=1000)
    assert list((home / "files" / "incoming").iterdir()) == []


@pytest.mark.parametrize("url", ["", "file://{}/shared%20files"])
def test_what_killed_processes_had_begun_to_place_is_swept_where_it_lies(
    home: Path, tmp_path: Path, settings: Any, url: str
) -> None:
    settings.FILES_URL = url.format(tmp_path)
    folders = {
        home / "files" / "incoming",
        tmp_path / "shared files" / "incoming" if url else home / "files" / "incoming",
    }
    for folder in folders:
        folder.mkdir(parents=True)
        for name, age in (("upload-old", 90_000), ("upload-running", 60), ("not-ours", 90_000)):
            (folder / name).touch()
            os.utime(folder / name, (time.time() - age,) * 2)
    received, _ = receive()
    received.discard()
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == {"upload-running", "not-ours"}


def test_old_file_on_its_way_to_its_place_is_not_swept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"bytes")
    os.utime(source, (time.time() - 90_000,) * 2)
    replace = Path.replace

    def swept_before(self: Path, target: Path) -> Path:
        receive()[0].discard()  # which sweeps
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", swept_before)
        store().put("t1/2/export-3", source)
    assert store().size("t1/2/export-3") == 5


def test_another_workspace_sees_no_pending_key(cast: Cast, home: Any, named: set[str]) -> None:
    with tenant_scope(cast.tenant.pk):
        keep(cast)
    with tenant_scope(cast.other_tenant.pk):
        assert not PendingBlob.objects.exists()


def test_missing_key_is_said(home: Any) -> None:
    for key in ("", "t1/2/ab/" + "ab" * 32):
        with pytest.raises(BlobMissing), lease(key):
            pass


@pytest.fixture
def in_rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What rows hold of keys; they go on holding it after the key was removed, as the history of files does."""
    content: dict[str, bytes] = {}
    monkeypatch.setattr(leases, "_sources", [content.get])
    return content


@pytest.mark.usefixtures("somewhere")
def test_reader_that_was_too_late_brings_nothing_back(
    cast: Cast,
    named: set[str],
    in_rows: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    with tenant_scope(cast.tenant.pk):
        received, key = keep(cast)
        in_rows[key] = b"bytes"
        named.add(key)
        blobs.name(received, key)
        store().remove(key)  # lost, so that the reader asks the rows

        def removed_meanwhile(asked: str) -> bytes:
            named.clear()
            with django_capture_on_commit_callbacks(execute=True):
                blobs.drop(cast.tenant.pk, asked)
            return b"bytes"

        monkeypatch.setattr(leases, "_sources", [removed_meanwhile])
        assert blob_read(key) == b"bytes", "the one reader that had begun before still has its bytes"
        assert list(store().below("t1/")) == []
        assert pending() == []


@pytest.mark.usefixtures("somewhere")
def test_read_in_a_transaction_that_is_rolled_back_leaves_nothing(
    cast: Cast, named: set[str], in_rows: dict[str, bytes]
) -> None:
    received, key = receive()
    received.discard()
    in_rows[key] = b"bytes"
    with tenant_scope(cast.tenant.pk):
        with transaction.atomic():
            named.add(key)
            blobs.place_later(cast.tenant.pk, key)
            if store().is_local:  # others must be read before
                assert blob_read(key) == b"bytes"
            transaction.set_rollback(True)
        named.clear()
        assert list(store().below("t1/")) == []


@pytest.mark.usefixtures("somewhere")
def test_lost_bytes_are_placed_again_from_rows_for_a_named_key_alone(
    cast: Cast, named: set[str], in_rows: dict[str, bytes]
) -> None:
    received, key = receive()
    received.discard()
    with tenant_scope(cast.tenant.pk):
        in_rows[key] = b"bytes"
        assert not blobs.place_from_rows(cast.tenant.pk, key)
        assert store().size(key) is None
        named.add(key)
        assert blobs.place_from_rows(cast.tenant.pk, key)
        assert store().size(key) == 5
        in_rows.clear()
        assert blobs.place_from_rows(cast.tenant.pk, key), "they are there"
        store().remove(key)
        assert not blobs.place_from_rows(cast.tenant.pk, key)


@pytest.mark.django_db(transaction=True)
def test_removal_waits_for_who_places_the_same_key_from_rows(
    home: Any, named: set[str], in_rows: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cast = make_cast()
    received, key = receive()
    received.discard()
    in_rows[key] = b"bytes"
    named.add(key)
    removing: list[threading.Thread] = []
    put = stores.FolderStore.put

    def remove() -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                blobs.drop(cast.tenant.pk, key)
        finally:
            connection.close()

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return bool(cursor.fetchone()[0])

    def put_meanwhile(self: stores.FolderStore, asked: str, source: Path) -> None:
        named.clear()  # the last row goes between the look for it and the bytes
        removing.append(threading.Thread(target=remove))
        removing[0].start()
        wait_for(waits, "the removal at the key's lock")
        put(self, asked, source)

    monkeypatch.setattr(stores.FolderStore, "put", put_meanwhile)
    assert blobs.place_from_rows(cast.tenant.pk, key)
    removing[0].join(60)
    assert not removing[0].is_alive()
    assert store().size(key) is None

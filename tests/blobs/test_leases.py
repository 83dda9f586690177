"""Copies of what a bucket keeps: whole or not there, held while they are read, bounded, and gone with their key."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from blobs import caches, leases, references, remote
from blobs.caches import caches_drop, caches_look
from blobs.errors import BlobDamaged, BlobMissing
from blobs.leases import blob_cache, blob_open, blob_read, lease
from blobs.models import PendingBlob
from blobs.stores import store
from tenancy.scope import tenant_scope
from tests.bucket import Bucket
from tests.cast import Cast


def placed(content: bytes, folder: Path) -> str:
    source = folder / uuid4().hex
    source.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    key = f"t1/2/{sha256[:2]}/{sha256}"
    store().put(key, source)
    return key


def copies() -> list[Path]:
    return [path for path in blob_cache().rglob("*") if path.is_file()]


def test_copy_is_fetched_once(in_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = placed(b"content", tmp_path)
    assert blob_read(key) == b"content"
    monkeypatch.setattr(remote.S3Store, "fetch", None)  # a second fetch would fail
    assert blob_read(key) == b"content"


def test_copy_that_is_not_the_bytes_is_refused(in_bucket: Bucket, tmp_path: Path) -> None:
    key = placed(b"content", tmp_path)
    in_bucket.damage(key)
    with pytest.raises(BlobDamaged):
        blob_read(key)
    assert copies() == []


def test_file_of_a_name_of_ours_is_not_cached(in_bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"rows")
    store().put("datasets/t1/2/export-3", tmp_path / "source")
    with lease("datasets/t1/2/export-3") as path:
        assert path.read_bytes() == b"rows"
    assert copies() == []


def test_full_cache_gives_up_what_nobody_reads(in_bucket: Bucket, tmp_path: Path, settings: Any) -> None:
    settings.FILES_CACHE_BYTES = 2500
    keys = [placed(bytes([number]) * 1000, tmp_path) for number in range(4)]
    with lease(keys[0]) as held:
        for key in keys[1:]:
            blob_read(key)
        assert held.read_bytes() == b"\0" * 1000, "held copies stay"
        assert sum(path.stat().st_size for path in copies()) <= 2500
        assert held in copies()
    assert [blob_read(key)[0] for key in keys] == [0, 1, 2, 3], "what was given up comes again"


@pytest.mark.django_db
def test_opened_bytes_outlive_their_key(in_bucket: Bucket, tmp_path: Path) -> None:
    key = placed(b"content", tmp_path)
    with blob_open(key) as file:
        store().remove(key)
        caches_drop(1, [key], is_at_once=False)
        assert file.read() == b"content"
    with pytest.raises(BlobMissing):
        blob_read(key)


def test_rows_give_back_what_the_store_lost(
    in_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = placed(b"content", tmp_path)
    store().remove(key)
    monkeypatch.setattr(leases, "_sources", [lambda wanted: b"content" if wanted == key else None])
    assert blob_read(key) == b"content"
    assert in_bucket.keys() == set(), "reading places nothing"


@pytest.mark.django_db
def test_copy_of_a_key_that_no_row_names_goes_at_the_next_whole_look(
    in_bucket: Bucket, tmp_path: Path, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = placed(b"content", tmp_path), placed(b"other", tmp_path)
    blob_read(key)
    blob_read(other)
    monkeypatch.setattr(references, "_asked", [lambda tenant, asked: {other} & set(asked)])
    monkeypatch.setattr(caches, "_next_whole", 0.0)
    caches_look()
    assert [path.name for path in copies()] == [other.rpartition("/")[2]]


@pytest.mark.django_db
def test_what_another_machine_removed_leaves_this_one(
    in_bucket: Bucket, tmp_path: Path, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "_asked", [lambda tenant, asked: set(asked)])
    caches_look()
    key, other = placed(b"content", tmp_path), placed(b"other", tmp_path)
    blob_read(key)
    blob_read(other)
    with tenant_scope(cast.tenant.pk):
        now = timezone.now()
        PendingBlob.objects.create(tenant=cast.tenant, key=key, due_at=now, removed_at=now)
    assert caches_look() == 1
    assert [path.name for path in copies()] == [other.rpartition("/")[2]]
    assert caches_look() == 0, "once"

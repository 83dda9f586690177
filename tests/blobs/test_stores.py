"""What every kind of store promises."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from blobs.errors import BlobMissing, StoreAway
from blobs.stores import FolderStore, Store, store_open
from tests.bucket import KEYS, Bucket

KEY = "t1/2/ab/" + "ab" * 32


def put(store: Store, tmp_path: Path, key: str, content: bytes) -> None:
    source = tmp_path / uuid4().hex
    source.write_bytes(content)
    store.put(key, source)
    assert source.read_bytes() == content, "the caller's file is the caller's"


def test_bytes_come_back(any_store: Store, tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000
    assert any_store.size(KEY) is None
    put(any_store, tmp_path, KEY, content)
    assert any_store.size(KEY) == len(content)
    any_store.fetch(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_second_put_replaces(any_store: Store, tmp_path: Path) -> None:
    put(any_store, tmp_path, "datasets/t1/2/export-3", b"one")
    if any_store.is_local or type(any_store).__name__ == "S3Store":
        put(any_store, tmp_path, "datasets/t1/2/export-3", b"other")
        any_store.fetch("datasets/t1/2/export-3", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"other"
    assert [kept.key for kept in any_store.below("datasets/")] == ["datasets/t1/2/export-3"]


def test_missing_bytes_are_said(any_store: Store, tmp_path: Path) -> None:
    with pytest.raises(BlobMissing):
        any_store.fetch(KEY, tmp_path / "back")
    any_store.remove(KEY)  # twice does no harm


def test_prefix_takes_what_is_below_it_and_nothing_beside(any_store: Store, tmp_path: Path) -> None:
    for key in ("t1/2/aa/x", "t1/2/bb/y", "t1/20/aa/z", "t1/3/aa/x"):
        put(any_store, tmp_path, key, key.encode())
    assert {kept.key: kept.size for kept in any_store.below("t1/2/")} == {"t1/2/aa/x": 9, "t1/2/bb/y": 9}
    any_store.remove_below("t1/2/")
    assert {kept.key for kept in any_store.below("")} == {"t1/20/aa/z", "t1/3/aa/x"}
    any_store.remove("t1/3/aa/x")
    assert {kept.key for kept in any_store.below("t1/")} == {"t1/20/aa/z"}


@pytest.mark.parametrize(
    "key", ["../x", "t1/../x", "/etc/passwd", "t1//x", "", ".hidden", "t1/.x", "a b", "t1/x\n"]
)
def test_key_that_leads_elsewhere_is_refused(any_store: Store, tmp_path: Path, key: str) -> None:
    (tmp_path / "source").write_bytes(b"x")
    for act in (
        lambda: any_store.put(key, tmp_path / "source"),
        lambda: any_store.fetch(key, tmp_path / "back"),
        lambda: any_store.size(key),
        lambda: any_store.remove(key),
    ):
        with pytest.raises(ValueError, match="key of a file"):
            act()


def test_store_that_is_away_says_so(bucket: Bucket, s3: str, tmp_path: Path) -> None:
    nowhere = store_open("s3://b/p?endpoint=http://127.0.0.1:9&region=us-east-1")
    no_bucket = store_open(f"s3://there-is-none?endpoint={s3}&region=us-east-1&style=path")
    (tmp_path / "source").write_bytes(b"x")
    for store in (nowhere, no_bucket):
        for act in (
            lambda store=store: store.put(KEY, tmp_path / "source"),
            lambda store=store: list(store.below("t1/")),
            lambda store=store: store.remove_below("t1/"),
        ):
            with pytest.raises(StoreAway) as refused:
                act()
            assert refused.value.status == 503
            assert "127.0.0.1" not in refused.value.message, "the public message names no host"
    with pytest.raises(StoreAway):
        nowhere.size(KEY)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://host/x", "isn't a kind of file store"),
        ("s3:///x", "Write the bucket"),
        ("s3://user:secret@bucket/x", "no credentials"),
        ("s3://bucket?endpiont=http://x", "“endpiont” isn't an option"),
        ("gs://bucket/x", "django-storages\\[google\\]"),
        ("azure://container/x", "django-storages\\[azure\\]"),
        ("file://host/x", "absolute"),
    ],
)
def test_address_that_cannot_be_used_says_why(url: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        store_open(url)


def test_folder_by_its_address(tmp_path: Path) -> None:
    store = store_open(f"file://{tmp_path}/kept")
    assert isinstance(store, FolderStore)
    put(store, tmp_path, KEY, b"x")
    assert (tmp_path / "kept" / KEY).read_bytes() == b"x"
    assert (tmp_path / "kept" / KEY).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("style", "start"),
    [
        ("", "https://s3.example.org/bucket/pre/fix/"),
        ("&style=path", "https://s3.example.org/bucket/pre/fix/"),
        ("&style=virtual", "https://bucket.s3.example.org/pre/fix/"),
    ],
)
def test_bucket_is_where_the_address_of_the_store_says(
    style: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url = f"s3://bucket/pre/fix?endpoint=https://s3.example.org&region=eu-1{style}"
    address = store_open(url).signed(KEY, disposition="attachment", seconds=60)
    assert address.startswith(start + KEY)
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256&" in address


def test_only_a_bucket_of_s3_signs(any_store: Store) -> None:
    signed = any_store.signed(KEY, disposition="attachment", seconds=60)
    assert bool(signed) == (type(any_store).__name__ == "S3Store")

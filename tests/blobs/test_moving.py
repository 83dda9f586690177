"""Move an installation from its folder into a bucket and back, whatever interrupts it."""

from __future__ import annotations

import hashlib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from blobs import remote
from blobs.errors import StoreAway
from blobs.stores import store, store_open
from tests.bucket import Bucket


def place(content: bytes, folder: Path, *, key: str = "") -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    source = folder / f"source-{sha256}"
    source.write_bytes(content)
    key = key or f"t1/2/{sha256[:2]}/{sha256}"
    store().put(key, source)
    return key


def copy(to: str, *more: str) -> str:
    out = StringIO()
    call_command("blobs", "copy", "--to", to, *more, stdout=out, stderr=out)
    return out.getvalue()


def test_folder_to_bucket_and_back(home: Path, bucket: Bucket, tmp_path: Path, settings: Any) -> None:
    keys = {place(bytes([number]) * 500, tmp_path) for number in range(3)}
    keys.add(place(b"rows", tmp_path, key="datasets/t1/2/export-3"))
    (home / "files" / "incoming").mkdir(exist_ok=True)
    (home / "files" / "incoming" / "upload-x").write_bytes(b"on its way")
    assert "4 copied" in copy(bucket.url)
    assert bucket.keys() == keys
    assert "0 copied (0.0 MB), 4 already there" in copy(bucket.url)
    settings.FILES_URL = bucket.url
    back = f"file://{tmp_path}/back"
    assert "4 copied" in copy(back)
    assert {kept.key for kept in store_open(back).below("")} == keys
    assert (tmp_path / "back" / "datasets/t1/2/export-3").read_bytes() == b"rows"
    settings.FILES_URL = back
    assert "4 already there" in copy(bucket.url, "--verify"), "each is what it was"


def test_interrupted_copy_goes_on(
    home: Path, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {place(bytes([number]) * 500, tmp_path) for number in range(5)}
    real, left = remote.S3Store.put, [2]

    def failing(self: Any, key: str, source: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StoreAway("it went away")
        real(self, key, source)

    with monkeypatch.context() as patch:
        patch.setattr(remote.S3Store, "put", failing)
        with pytest.raises(CommandError, match="it went away Run this again"):
            copy(bucket.url)
    assert len(bucket.keys()) == 2
    assert "3 copied" in copy(bucket.url)
    assert bucket.keys() == keys


def test_what_differs_there_is_found_by_verify(home: Path, bucket: Bucket, tmp_path: Path) -> None:
    key = place(b"right bytes", tmp_path)
    copy(bucket.url)
    bucket.damage(key)  # as many bytes
    assert "0 copied" in copy(bucket.url)
    assert "1 replaced" in copy(bucket.url, "--verify")
    assert b"right bytes" in bucket.content()


def test_damaged_file_is_named_and_not_copied(home: Path, bucket: Bucket, tmp_path: Path) -> None:
    key = place(b"right bytes", tmp_path)
    (home / "files" / key).write_bytes(b"wrong")
    out = StringIO()
    with pytest.raises(CommandError, match="1 files aren't what their names say"):
        call_command("blobs", "copy", "--to", bucket.url, stdout=out, stderr=out)
    assert f"damaged here, not copied: {key}" in out.getvalue()
    assert bucket.keys() == set()


def test_address_that_cannot_be_used_is_refused(home: Path) -> None:
    with pytest.raises(CommandError, match="isn't a kind of file store"):
        copy("ftp://x")

"""The kinds of store, each a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage

from blobs import stores
from blobs.remote import RemoteStore
from blobs.stores import Store, store_open
from tests.bucket import Bucket, serving


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3: str) -> Bucket:
    return Bucket(s3)


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    """A data directory of this test's own."""
    settings.DATA_DIR = tmp_path / "data"
    settings.MEDIA_ROOT = tmp_path / "data" / "files"
    return tmp_path / "data"


@pytest.fixture
def in_bucket(settings: Any, home: Path, bucket: Bucket) -> Bucket:
    """Files of this installation are kept in a bucket."""
    settings.FILES_URL = bucket.url
    return bucket


@pytest.fixture(params=["folder", "s3", "storage"])
def any_store(request: pytest.FixtureRequest, home: Path, bucket: Bucket, tmp_path: Path) -> Store:
    if request.param == "folder":
        return store_open("")
    if request.param == "s3":
        return store_open(bucket.url)
    # What a class of django-storages without listing of its own does, with Django's own class in its place.
    return RemoteStore(FileSystemStorage(location=str(tmp_path / "other")), (ConnectionError,))


@pytest.fixture
def kept(home: Path) -> Store:
    return stores.store()

"""The two kinds of place that keep files: a folder, and anything that ``django-storages`` speaks to.

A key is a relative path of letters, digits and ``/ - _ .`` that we make ourselves; no person's text is in it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import File
from django.core.files.storage import Storage

from basics.metrics import STORE_ERRORS
from blobs.errors import BlobMissing, StoreAway

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK})
_CONNECT_S, _READ_S, _ATTEMPTS = 5, 60, 3


@dataclass(frozen=True, slots=True)
class Kept:
    """A file in a store.

    Attributes:
        size: in bytes.
        changed_at: when it was placed.
    """

    key: str
    size: int
    changed_at: datetime


class Store(Protocol):
    """What a place for files can do. All but a folder raise StoreAway when they do not answer."""

    is_local: bool

    def put(self, key: str, source: Path) -> None:
        """Make the bytes of a local file those of the key, whole or not at all.

        The file stays for whoever made it, who may delete it and must not write to it: a folder shares its bytes.
        """

    def here(self, key: str) -> Path | None:
        """Return where a key's bytes are or would be on this machine, None for a store elsewhere."""

    def fetch(self, key: str, target: Path) -> None:
        """Write a key's bytes to a local file. Raises BlobMissing."""

    def size(self, key: str) -> int | None:
        """Return a key's bytes, counted; None when it has none."""

    def remove(self, key: str) -> None:
        """Delete a key's bytes, if there are any."""

    def remove_below(self, prefix: str) -> None:
        """Delete all keys that begin so; the prefix ends with a slash."""

    def below(self, prefix: str) -> Iterator[Kept]:
        """Yield what is kept under keys that begin so; "" for everything."""


class FolderStore:
    """Files below one folder, which machines may share by a network file system."""

    is_local = True

    def __init__(self, root: Path) -> None:
        self._root = root

    def here(self, key: str) -> Path:
        """See Store."""
        return self._root / _checked(key)

    def put(self, key: str, source: Path) -> None:
        """See Store."""
        target = self.here(key)
        # Where what a killed process left is swept away.
        beside = self._root / "incoming" / f"upload-{uuid4().hex}"
        try:
            for folder in (target.parent, beside.parent):
                folder.mkdir(parents=True, exist_ok=True)
            source.chmod(0o600)
            try:
                beside.hardlink_to(source)  # nothing is copied where it need not be
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                shutil.copyfile(source, beside)
                beside.chmod(0o600)
            beside.replace(target)
        except OSError:  # full, read-only, gone
            STORE_ERRORS.add()
            raise
        finally:
            with suppress(NotADirectoryError):  # then it was never made
                beside.unlink(missing_ok=True)

    def fetch(self, key: str, target: Path) -> None:
        """See Store."""
        try:
            shutil.copyfile(self.here(key), target)
        except FileNotFoundError:
            raise BlobMissing from None

    def size(self, key: str) -> int | None:
        """See Store."""
        path = self.here(key)
        return path.stat().st_size if path.is_file() else None

    def remove(self, key: str) -> None:
        """See Store."""
        self.here(key).unlink(missing_ok=True)

    def remove_below(self, prefix: str) -> None:
        """See Store."""
        folder = self.here(prefix.rstrip("/"))
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                raise StoreAway(f"{folder} could not be deleted whole")

    def below(self, prefix: str) -> Iterator[Kept]:
        """See Store."""
        root = self._root / prefix
        for folder, _, names in os.walk(root):
            for name in sorted(names):
                path = Path(folder) / name
                key = path.relative_to(self._root).as_posix()
                if key.startswith("incoming/") or not path.is_file():
                    continue
                stat = path.stat()
                yield Kept(key, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


class RemoteStore:
    """Files in a bucket or container, through a storage class of ``django-storages``."""

    is_local = False

    def __init__(self, storage: Storage, away: tuple[type[BaseException], ...]) -> None:
        """Make a store.

        Args:
            away: what its client raises when the server is out of reach or refuses.
        """
        self._storage = storage
        self._away = away

    def here(self, key: str) -> None:
        """See Store."""

    def put(self, key: str, source: Path) -> None:
        """See Store."""
        with source.open("rb") as stream, self._reaching():
            self._storage.save(_checked(key), File(stream))

    def fetch(self, key: str, target: Path) -> None:
        """See Store."""
        with self._reaching(), self._storage.open(_checked(key)) as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)

    def size(self, key: str) -> int | None:
        """See Store."""
        with self._reaching():
            try:
                return int(self._storage.size(_checked(key)))
            except FileNotFoundError:
                return None

    def remove(self, key: str) -> None:
        """See Store."""
        with self._reaching():
            self._storage.delete(_checked(key))

    def remove_below(self, prefix: str) -> None:
        """See Store."""
        for kept in list(self.below(prefix)):
            self.remove(kept.key)

    def below(self, prefix: str) -> Iterator[Kept]:
        """See Store."""
        with self._reaching():
            yield from self._below(prefix.rstrip("/"))

    def _below(self, folder: str) -> Iterator[Kept]:
        try:
            folders, names = self._storage.listdir(folder)
        except FileNotFoundError:
            return
        start = f"{folder}/" if folder else ""
        for name in names:
            key = start + name
            yield Kept(key, int(self._storage.size(key)), self._storage.get_modified_time(key))
        for name in folders:
            yield from self._below(start + name)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BlobMissing from None
        except self._away as error:
            if _says_missing(error):
                raise BlobMissing from None
            raise StoreAway(f"{type(error).__name__}: {error}"[:300]) from error


class S3Store(RemoteStore):
    """A bucket of anything that speaks S3: lists and deletes a thousand keys in one request."""

    _is_there = False

    def fetch(self, key: str, target: Path) -> None:
        """See Store."""
        with self._reaching():
            body = self._bucket.Object(self._full(_checked(key))).get()["Body"]
            with closing(body), target.open("wb") as out:
                shutil.copyfileobj(body, out, 1 << 20)

    def size(self, key: str) -> int | None:
        """See Store. Once a process it makes sure that what lacks the key is the key and not the bucket."""
        found = super().size(key)
        if found is None and not self._is_there:
            with self._reaching():
                list(self._bucket.objects.limit(1))
        self._is_there = True
        return found

    def remove_below(self, prefix: str) -> None:
        """See Store."""
        with self._reaching():
            answers = self._bucket.objects.filter(Prefix=self._full(prefix)).delete()
        for answer in answers:
            for problem in answer.get("Errors", ()):  # the request itself is answered with success
                raise StoreAway(f"{problem.get('Code')} while deleting {problem.get('Key')}")

    def below(self, prefix: str) -> Iterator[Kept]:
        """See Store."""
        start = len(self._full(""))
        with self._reaching():
            for one in self._bucket.objects.filter(Prefix=self._full(prefix)):
                yield Kept(one.key[start:], one.size, one.last_modified)

    @property
    def _bucket(self) -> Any:
        storage: Any = self._storage
        return storage.bucket

    def _full(self, key: str) -> str:
        storage: Any = self._storage
        return f"{storage.location}/{key}" if storage.location else key


def _says_missing(error: BaseException) -> bool:
    """Tell whether an S3 client error says that there is no such key (a missing bucket is the operator's matter)."""
    told = getattr(error, "response", None)
    return isinstance(told, dict) and str(told.get("Error", {}).get("Code", "")) in ("404", "NoSuchKey")


def is_key(text: str) -> bool:
    """Tell whether a text can be the key of a file."""
    return _KEY.fullmatch(text) is not None


def _checked(key: str) -> str:
    if not is_key(key):
        raise ValueError(f"{key!r} is no key of a file")
    return key


def store_open(url: str) -> Store:
    """Return the store at an address.

    Args:
        url: "" for the data directory, ``file:///folder``, ``s3://bucket/prefix?endpoint=https://...&region=...``,
            ``gs://bucket/prefix`` or ``azure://container/prefix?account=...``. Credentials of S3 come from the
            environment as boto3 reads them, those of the others as their libraries do.

    Raises:
        ValueError: the address cannot be used; the message says why.
    """
    if not url:
        return FolderStore(Path(settings.MEDIA_ROOT))
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    prefix = unquote(parts.path).strip("/")
    if parts.scheme == "file":
        if not parts.path.startswith("/") or parts.netloc or options:
            raise ValueError("A folder is written file:///absolute/path.")
        return FolderStore(Path(unquote(parts.path)))
    maker = _MAKERS.get(parts.scheme)
    if maker is None:
        raise ValueError(f"“{parts.scheme}” isn't a kind of file store. Use s3, gs, azure or file.")
    if not parts.netloc or parts.username or parts.password or parts.fragment:
        raise ValueError("Write the bucket after the two slashes, and no credentials: s3://bucket/prefix.")
    store = maker(parts.netloc, prefix, options)
    if options:
        raise ValueError(f"“{next(iter(options))}” isn't an option of {parts.scheme} addresses.")
    return store


def _s3(bucket: str, prefix: str, options: dict[str, str]) -> Store:
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from storages.backends.s3 import S3Storage

    storage = S3Storage(
        bucket_name=bucket,
        location=prefix,
        endpoint_url=options.pop("endpoint", None),
        region_name=options.pop("region", None),
        file_overwrite=True,
        default_acl=None,
        addressing_style=options.pop("style", None),
        # Threads of its own would not live through the worker's fork.
        transfer_config=TransferConfig(use_threads=False),
        client_config=Config(
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            # Checksums in trailers, boto3's default since 1.36, are refused by many servers that are not AWS.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    from boto3.exceptions import Boto3Error

    return S3Store(storage, (BotoCoreError, ClientError, Boto3Error))


def _gs(bucket: str, prefix: str, options: dict[str, str]) -> Store:
    made = _storage("gcloud", "GoogleCloudStorage", "google", bucket_name=bucket, location=prefix)
    away = import_module("google.api_core.exceptions").GoogleAPIError
    return RemoteStore(made, (away, ConnectionError))


def _azure(container: str, prefix: str, options: dict[str, str]) -> Store:
    made = _storage(
        "azure_storage",
        "AzureStorage",
        "azure",
        azure_container=container,
        location=prefix,
        account_name=options.pop("account", None),
        overwrite_files=True,
    )
    away = import_module("azure.core.exceptions").AzureError
    return RemoteStore(made, (away,))


def _storage(module: str, name: str, extra: str, **options: Any) -> Storage:
    try:
        made: Callable[..., Storage] = getattr(import_module(f"storages.backends.{module}"), name)
    except (ImportError, ImproperlyConfigured):
        raise ValueError(f"Install django-storages[{extra}] for this kind of file store.") from None
    return made(**options)


_MAKERS: dict[str, Callable[[str, str, dict[str, str]], Store]] = {"s3": _s3, "gs": _gs, "azure": _azure}


def store() -> Store:
    """Return the store of this installation, as ``GROUNDWORK_FILES_URL`` names it."""
    return _of_process(os.getpid(), settings.FILES_URL, str(settings.MEDIA_ROOT))


@cache
def _of_process(process: int, url: str, root: str) -> Store:
    """Open a store once for each process: a connection must not be shared over a fork."""
    return store_open(url)

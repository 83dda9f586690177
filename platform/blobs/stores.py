"""Where files are kept: a folder, or a store elsewhere (``blobs.remote``)."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

from django.conf import settings

from basics.metrics import STORE_ERRORS
from blobs.errors import BlobMissing, StoreAway
from blobs.keys import Kept, key_checked
from blobs.remote import MAKERS

_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK})


class Store(Protocol):
    """What a place for files can do. All but a folder raise StoreAway when they do not answer.

    Attributes:
        is_local: its files are files of this machine.
    """

    is_local: bool

    @property
    def incoming(self) -> Path | None:
        """Return the folder in which files are put together, as ``upload-...``; None where nothing half done is left."""

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

    def signed(self, key: str, *, disposition: str, seconds: int) -> str:
        """Return an address at which anybody may fetch a key's bytes for a while; "" where the store has none to give.

        Args:
            disposition: the Content-Disposition they are sent with (RFC 6266). Their type is ``application/octet-stream``.
            seconds: how long it holds.
        """


class FolderStore:
    """Files below one folder, which machines may share by a network file system."""

    is_local = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self.incoming = root / "incoming"

    def here(self, key: str) -> Path:
        """See Store."""
        return self._root / key_checked(key)

    def put(self, key: str, source: Path) -> None:
        """See Store."""
        target = self.here(key)
        beside = self.incoming / f"upload-{uuid4().hex}"  # where what a killed process left is swept away
        try:
            for folder in (target.parent, beside.parent):
                folder.mkdir(parents=True, exist_ok=True)
            source.chmod(0o600)
            os.utime(source)  # a link has its age: an old one would be swept away before it is in its place
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

    def signed(self, key: str, *, disposition: str, seconds: int) -> str:
        """See Store."""
        return ""

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
    maker = MAKERS.get(parts.scheme)
    if maker is None:
        raise ValueError(f"“{parts.scheme}” isn't a kind of file store. Use s3, gs, azure or file.")
    if not parts.netloc or parts.username or parts.password or parts.fragment:
        raise ValueError("Write the bucket after the two slashes, and no credentials: s3://bucket/prefix.")
    store = maker(parts.netloc, prefix, options)
    if options:
        raise ValueError(f"“{next(iter(options))}” isn't an option of {parts.scheme} addresses.")
    return store


def store() -> Store:
    """Return the store of this installation, as ``GROUNDWORK_FILES_URL`` names it."""
    return _of_process(os.getpid(), settings.FILES_URL, str(settings.MEDIA_ROOT))


@cache
def _of_process(process: int, url: str, root: str) -> Store:
    """Open a store once for each process: a connection must not be shared over a fork."""
    return store_open(url)

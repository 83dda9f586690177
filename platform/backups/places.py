"""Where backups lie: a folder or a bucket, its keys, and files that are on disk before anything counts on them.

::

    backups/<name>/manifest.gwm      written last: without it there is no backup
    backups/<name>/rows/<n>-<m>.gwp  rows of a table, in pieces
    backups/<name>/originals.gwp     which originals belong to it
    backups/<name>/keys.gwp          the keys of credentials, only in sealed backups
    originals/<2 digits>/<64>.gwp    the originals, shared by all backups of the place
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

from backups.errors import BackupDamaged, BackupRefused
from blobs.errors import BlobMissing
from blobs.keys import is_key
from blobs.stores import Store, store_open

MANIFEST = "manifest.gwm"
NAME = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{6}")
"""When it was begun (UTC), to the microsecond so that names are in the order of time, and six random digits."""
_ABANDONED_S = 24 * 3600  # what a killed process left; a part takes nobody a day


class Place:
    """A folder or bucket with backups.

    Attributes:
        url: its address, as ``blobs.stores.store_open`` takes it; it holds no credentials.
    """

    def __init__(self, url: str) -> None:
        """Open a place.

        Raises:
            BackupRefused: the address can't be used.
        """
        self.url = place_url(url)
        try:
            self.store: Store = store_open(self.url)
        except ValueError as error:
            raise BackupRefused(f"The address {url} can't be used. {error}") from error

    def put(self, key: str, source: Path) -> None:
        """Place a local file; when this returns, it is on disk there. Raises StoreAway."""
        self._no_links(key)
        _sync(source)
        self.store.put(key, source)
        here = self.store.here(key)
        if here is not None:
            _sync(here)
            for folder in (here.parent, here.parent.parent):
                _sync(folder)

    def fetch(self, key: str, target: Path) -> None:
        """Bring a file of the place.

        Raises:
            BackupDamaged: it isn't there, or is no file.
            StoreAway: the place doesn't answer.
        """
        self._no_links(key)
        try:
            self.store.fetch(key, target)
        except (BlobMissing, IsADirectoryError):
            raise BackupDamaged(key, "it is missing") from None

    def names(self) -> list[str]:
        """Return the names of the backups that were finished, the oldest first. Raises StoreAway."""
        found = (kept.key.split("/") for kept in self.store.below("backups/"))
        return sorted({k[1] for k in found if len(k) == 3 and k[2] == MANIFEST and NAME.fullmatch(k[1])})

    def _no_links(self, key: str) -> None:
        """Refuse symbolic links on the way from the folder to a file: they lead where this place isn't."""
        if not is_key(key):
            raise BackupDamaged(key[:100], "it isn't a name of a file in a backup")
        here = self.store.here(key)
        if here is None:
            return
        for path in [here, *list(here.parents)[: key.count("/")]]:
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(mode) or (path == here and not stat.S_ISREG(mode)):
                raise BackupDamaged(key, "it is a link or no file, which a backup never has")


def place_url(address: str) -> str:
    """Return the address of a place as stores take it; a path of a folder becomes ``file:///path``.

    Raises:
        BackupRefused: there is none, or backups would lie among the files that they are of.
    """
    if not address.strip():
        raise BackupRefused("No address for backups. Name a folder or bucket, or set GROUNDWORK_BACKUP_URL.")
    url = address.strip()
    if "://" not in url:
        url = "file://" + quote(str(Path(url).absolute()))
    if _is_within(url, settings.FILES_URL or "file://" + quote(str(Path(settings.MEDIA_ROOT).absolute()))):
        raise BackupRefused(
            f"{address} lies among the files that are backed up. Choose a folder or bucket of its own."
        )
    return url


def _is_within(one: str, other: str) -> bool:
    """Tell whether one of two addresses lies in the other."""
    a, b = urlsplit(one), urlsplit(other)
    if (a.scheme, a.netloc) != (b.scheme, b.netloc):
        return False
    paths = [unquote(parts.path).strip("/") for parts in (a, b)]
    if a.scheme == "file":
        paths = [os.path.realpath("/" + path) for path in paths]
    first, second = (f"{path}/" if path else "" for path in paths)
    return first.startswith(second) or second.startswith(first)


def manifest_key(name: str) -> str:
    """Return the key of a backup's manifest."""
    return f"backups/{name}/{MANIFEST}"


def original_key(name: str) -> str:
    """Return the key of an original by the 64 hex digits that name its content."""
    return f"originals/{name[:2]}/{name}.gwp"


@contextmanager
def workroom() -> Iterator[Path]:
    """Give the block a folder on this machine for one part at a time; it is gone afterwards."""
    root = Path(settings.DATA_DIR) / "cache"
    root.mkdir(parents=True, exist_ok=True)
    for abandoned in root.glob("backup-*"):
        with suppress(FileNotFoundError):  # another process was first
            if time.time() - abandoned.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="backup-", dir=root) as folder:
        yield Path(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

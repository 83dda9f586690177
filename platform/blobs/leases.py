"""Local files of what the store keeps: the store's own where it is a folder, else a copy in a bounded cache.

A copy is named by its key, which holds the SHA-256 of its bytes, so it can never be out of date; whoever reads it holds a
shared lock on it, and the cache gives up only what nobody holds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import structlog
from django.conf import settings

from blobs.errors import BlobDamaged, BlobMissing
from blobs.stores import store
from tenancy.database.waiting import connections_let_go

log = structlog.get_logger(__name__)

_BY_CONTENT = re.compile(r"(?:.*/)?([0-9a-f]{64})")
_ROOM = 0.8  # of the limit that is left in use when the cache was full
_PARTIAL = ".part-"
_PARTIAL_S = 24 * 3600
_sources: list[Callable[[str], bytes | None]] = []
_fetched = 0  # bytes since this process last looked how full the cache is


@contextmanager
def lease(key: str) -> Iterator[Path]:
    """Give the block a local file with a key's bytes, to read and nothing else.

    The path may be handed to child processes for as long as the block lasts. Bytes that the store lacks and rows hold come
    from the rows. Reading never places them: their key may have been removed since the reader heard of it, and nobody
    would remove it again (``blobs.services.place_from_rows`` does, under the key's lock).

    Raises:
        BlobMissing: the key has no bytes.
        BlobDamaged: a store elsewhere has others than the key names.
        StoreAway: the store does not answer.
    """
    if not key:
        raise BlobMissing
    here = store().here(key)
    if here is not None:
        if here.is_file():
            yield here
        else:
            with copied_from_rows(key) as copy:
                yield copy
    elif not (sha256 := content_of(key)):
        copy = _fetch(key, "")
        try:
            yield copy
        finally:
            copy.unlink(missing_ok=True)
    else:
        target = blob_cache() / key
        held = _hold(target)
        while held is None:
            copy = _fetch(key, sha256)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy.replace(target)
            held = _hold(target)
        try:
            yield target
        finally:
            os.close(held)
        _make_room()


def blob_read(key: str) -> bytes:
    """Return a key's bytes. Raises as ``lease`` does."""
    with lease(key) as path:
        return path.read_bytes()


def blob_open(key: str) -> BinaryIO:
    """Open a key's bytes; they stay readable whatever happens to the key.

    Raises:
        BlobMissing, BlobDamaged, StoreAway: as for ``lease``.
    """
    with lease(key) as path:
        return path.open("rb")


def content_of(key: str) -> str:
    """Return the SHA-256 that a key names, "" for one that names none."""
    found = _BY_CONTENT.fullmatch(key)
    return found[1] if found else ""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def rows_hold(bytes_of: Callable[[str], bytes | None]) -> None:
    """Have it asked for the bytes of a key that the store lacks; at start-up, by an app whose rows hold some."""
    if bytes_of not in _sources:
        _sources.append(bytes_of)


@contextmanager
def copied_from_rows(key: str) -> Iterator[Path]:
    """Give the block a local file with the bytes that rows hold of a key. Raises BlobMissing where none do."""
    content = _held_by_rows(key)
    if content is None:
        raise BlobMissing
    folder = blob_cache()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=_PARTIAL, delete=False) as file:
        path = Path(file.name)
        try:
            file.write(content)
            file.flush()
            yield path
        finally:
            path.unlink(missing_ok=True)


def _held_by_rows(key: str) -> bytes | None:
    return next((content for bytes_of in _sources if (content := bytes_of(key)) is not None), None)


def is_kept(key: str) -> bool:
    """Tell whether a key has bytes, here, in the store or in rows; outside of any transaction. Raises StoreAway."""
    if not store().is_local:
        connections_let_go()
    return store().size(key) is not None or _held_by_rows(key) is not None


def warm(key: str) -> None:
    """Bring a key's bytes to this machine, before a transaction that reads them; missing ones are its matter."""
    if not store().is_local:
        with suppress(BlobMissing), lease(key):
            return


def blob_cache() -> Path:
    """Return the folder of this machine's copies."""
    return Path(settings.DATA_DIR) / "cache" / "blobs"


def _hold(target: Path) -> int | None:
    """Return a descriptor with a shared lock on a copy, None when there is no copy."""
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        is_there = os.fstat(descriptor).st_nlink > 0  # or it was given up between the two calls
        if is_there:
            os.utime(descriptor)  # the cache gives up what was not read for longest
    except BaseException:
        os.close(descriptor)
        raise
    if is_there:
        return descriptor
    os.close(descriptor)
    return None


def _fetch(key: str, sha256: str) -> Path:
    """Bring a key's bytes to a file of their own; one that is not what it should be counts as not fetched."""
    global _fetched
    connections_let_go()
    folder = blob_cache()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=_PARTIAL)
    os.close(descriptor)
    path = Path(name)
    try:
        _fetch_into(key, path)
        if sha256 and file_digest(path) != sha256:
            _fetch_into(key, path)  # cut short or mixed up on the way, perhaps
            if file_digest(path) != sha256:
                raise BlobDamaged
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    _fetched += path.stat().st_size
    return path


def _fetch_into(key: str, path: Path) -> None:
    try:
        store().fetch(key, path)
    except BlobMissing:
        content = _held_by_rows(key)
        if content is None:
            raise
        path.write_bytes(content)


def _make_room() -> None:
    """Give up the copies that were not read for longest, when the cache is over its limit; looks only now and then."""
    global _fetched
    limit = settings.FILES_CACHE_BYTES
    if _fetched * 20 < limit:
        return
    _fetched = 0
    found = []
    for path in blob_copies(blob_cache()):
        with suppress(FileNotFoundError):  # given up by another process
            stat = path.stat()
            found.append((stat.st_mtime, path, stat.st_size))
    found.sort()
    total = sum(size for _, _, size in found)
    if total <= limit:
        return
    for _, path, size in found:
        if total <= limit * _ROOM:
            return
        if _give_up(path):
            total -= size


def blob_copies(root: Path) -> Iterator[Path]:
    """Yield this machine's copies below a folder of the cache; those that are being fetched are none yet."""
    for folder, _, names in os.walk(root):
        yield from (Path(folder) / name for name in names if not name.startswith(_PARTIAL))


def _give_up(path: Path) -> bool:
    """Delete a copy unless somebody reads it; returns whether it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def partials_drop() -> None:
    """Delete what killed processes had begun to fetch."""
    for path in blob_cache().glob(f"{_PARTIAL}*"):
        with suppress(FileNotFoundError):  # another process was first
            if time.time() - path.stat().st_mtime > _PARTIAL_S:
                path.unlink()

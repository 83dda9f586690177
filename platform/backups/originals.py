"""Originals of a backup: each content once in a place, whichever backups name it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from backups.errors import BackupDamaged
from backups.manifest import Manifest, Originals, Part
from backups.parts import CHUNK, BackupKey, part_read, part_write
from backups.places import Place, original_key, workroom
from blobs.errors import BlobMissing
from blobs.keys import is_key
from blobs.leases import content_of, copied_from_rows, file_digest
from blobs.stores import Store, store


@dataclass(frozen=True, slots=True)
class Original:
    """One original of a backup.

    Attributes:
        key: in the store of files.
        sha256, size: of its bytes.
        name: 64 hex digits that name its content in the place.
        stored_size: of its file in the place.
    """

    key: str
    sha256: str
    size: int
    name: str
    stored_size: int


@dataclass(slots=True)
class _Sent:
    count: int = 0
    size: int = 0
    sent: int = 0
    sent_size: int = 0
    missing: list[str] = field(default_factory=list)
    missing_count: int = 0


class OriginalsWriter:
    """Brings to a place what it lacks of the originals."""

    def __init__(
        self, place: Place, key: BackupKey | None, folder: Path, *, known: dict[str, int], is_checked: bool
    ) -> None:
        """Make a writer.

        Args:
            key: seals them.
            folder: for one at a time.
            known: names of contents that an earlier backup has, with the sizes of their files in the place.
            is_checked: read again what is there already, and replace what was damaged.
        """
        self._place, self._key, self._folder = place, key, folder
        self._known, self._is_checked = known, is_checked
        # One listing for all: asking for each would be a request for each.
        self._there = {
            kept.key.rpartition("/")[2].removesuffix(".gwp"): kept.size
            for kept in place.store.below("originals/")
        }

    def write(self, keys: list[str], backup: str, on_each: Callable[[], None]) -> Originals:
        """Bring all contents that are lacking, then the list of all.

        Args:
            keys: in the store of files.
            backup: name of the backup that they belong to.
            on_each: called after each one.

        Raises:
            StoreAway: the store or the place doesn't answer.
        """
        done = _Sent()
        path = self._folder / "originals"
        where = f"backups/{backup}/originals.gwp"

        def lines() -> Iterator[bytes]:
            for key in keys:
                found = self._one(key, done)
                on_each()
                if found is not None:
                    listed = [found.key, found.sha256, found.size, found.name, found.stored_size]
                    yield json.dumps(listed).encode() + b"\n"

        written = part_write(path, where, self._key, lines())
        self._place.put(where, path)
        part = Part("originals.gwp", written.size, written.sha256)
        return Originals(
            done.count, done.size, done.sent, done.sent_size, done.missing_count, done.missing, part
        )

    def _one(self, key: str, done: _Sent) -> Original | None:
        sha256 = content_of(key)
        if sha256:
            name = self._name(sha256)
            size = store().size(key)
            if size is not None and self._is_there(name, sha256):
                return self._counted(Original(key, sha256, size, name, self._there[name]), done)
        with _local(key, self._folder / "source") as source:
            digest = file_digest(source) if source else ""
            if source is None or sha256 not in ("", digest):
                done.missing_count += 1
                if len(done.missing) < 100:
                    done.missing.append(key)
                return None
            name, size = self._name(digest), source.stat().st_size
            if not self._is_there(name, digest):
                self._send(source, name, digest, done)
        return self._counted(Original(key, digest, size, name, self._there[name]), done)

    def _counted(self, found: Original, done: _Sent) -> Original:
        done.count += 1
        done.size += found.size
        return found

    def _name(self, sha256: str) -> str:
        return self._key.hidden(sha256) if self._key else sha256

    def _is_there(self, name: str, sha256: str) -> bool:
        size = self._there.get(name)
        if size is None or self._known.get(name, size) != size:
            return False
        if self._is_checked:
            target = self._folder / "check"
            try:
                original_open(self._place, name, sha256, [self._key] if self._key else [], target)
            except BackupDamaged:
                return False
            finally:
                target.unlink(missing_ok=True)
        return True

    def _send(self, source: Path, name: str, sha256: str, done: _Sent) -> None:
        path = self._folder / "original"
        path.unlink(missing_ok=True)  # a place that took it may share its bytes
        with source.open("rb") as stream:
            pieces = iter(lambda: stream.read(CHUNK), b"")
            written = part_write(path, f"originals/{name}", self._key, pieces)
        if written.content_sha256 != sha256:
            raise BackupDamaged(source.name, "it changed while it was read")
        self._place.put(original_key(name), path)
        self._there[name] = self._known[name] = written.size
        done.sent += 1
        done.sent_size += written.size


def originals_read(place: Place, manifest: Manifest, keys: list[BackupKey]) -> Iterator[Original]:
    """Yield the originals that a backup lists.

    Raises:
        BackupDamaged: the list isn't what was written.
    """
    where = f"backups/{manifest.name}/originals.gwp"
    with _fetched(place, where) as path:
        if file_digest(path) != manifest.originals.part.sha256:
            raise BackupDamaged(where, "it isn't the file that the manifest names")
        with path.open("rb") as stream:
            rest = b""
            for piece in part_read(stream, where, keys):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (_original(line, where) for line in lines)
            if rest:
                raise BackupDamaged(where, "its last line has no end")


def original_open(place: Place, name: str, sha256: str, keys: list[BackupKey], target: Path) -> int:
    """Write an original of a place to a local file; returns its bytes, counted.

    Raises:
        BackupDamaged: it isn't there, or isn't what was backed up.
        StoreAway: the place doesn't answer.
    """
    where = original_key(name)
    with _fetched(place, where) as path, path.open("rb") as stream, target.open("wb") as out:
        for piece in part_read(stream, f"originals/{name}", keys):
            out.write(piece)
        size = out.tell()
    if file_digest(target) != sha256:
        raise BackupDamaged(where, "its content isn't what its name says")
    return size


def original_restore(place: Place, one: Original, keys: list[BackupKey], target: Store, folder: Path) -> bool:
    """Place an original where files are kept, unless it is there, which is told by its hash.

    Returns:
        Whether it had to be brought.

    Raises:
        BackupDamaged: it can't be had from the backup.
        StoreAway: a place doesn't answer.
    """
    path = folder / "restored"
    path.unlink(missing_ok=True)
    if target.size(one.key) == one.size:
        target.fetch(one.key, path)
        if file_digest(path) == one.sha256:
            return False
        path.unlink()
    original_open(place, one.name, one.sha256, keys, path)
    target.put(one.key, path)
    return True


def _original(line: bytes, where: str) -> Original:
    try:
        key, sha256, size, name, stored_size = json.loads(line)
        found = Original(str(key), str(sha256), int(size), str(name), int(stored_size))
    except (ValueError, TypeError) as error:
        raise BackupDamaged(where, "a line of it can't be read") from error
    if not is_key(found.key) or any(len(h) != 64 or not is_key(h) for h in (found.sha256, found.name)):
        raise BackupDamaged(where, f"{found.key[:80]!r} isn't the key of a file")
    return found


@contextmanager
def _fetched(place: Place, key: str) -> Iterator[Path]:
    with workroom() as folder:
        place.fetch(key, folder / "fetched")
        yield folder / "fetched"


@contextmanager
def _local(key: str, target: Path) -> Iterator[Path | None]:
    """Give the block the bytes of a key as a local file, None when neither the store nor rows have them."""
    here = store().here(key)
    with ExitStack() as until_read:
        until_read.callback(target.unlink, missing_ok=True)
        found = None
        with suppress(BlobMissing):
            if here is None:
                store().fetch(key, target)
                found = target
            elif here.is_file():
                found = here
        with suppress(BlobMissing):
            found = found or until_read.enter_context(copied_from_rows(key))
        yield found

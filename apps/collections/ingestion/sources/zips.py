"""ZIP archives, entry by entry, against everything such an archive can be made to do."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from apps.collections.ingestion.detect import ZIP_ERRORS
from apps.collections.ingestion.sources.base import (
    BLOCK,
    Budget,
    EntryFailure,
    Problem,
    Reason,
    SourceFailure,
    shown,
)
from basics.texts import gettext as _

_END = b"PK\x05\x06"
_END_SIZE = 22
_LOCATOR_SIZE = 20
_MAX_COMMENT = 65535
_RECORD = b"PK\x01\x02"
_RECORD_SIZE = 46
_UTF8_FLAG, _ENCRYPTED_FLAG = 0x800, 0x41
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SMALL = 4096  # bzip2 and lzma unpack whole input blocks at once: hand them little at a time


class ZipMembers:
    """The files of a ZIP archive.

    Args:
        path: of the archive.
        budget: what is left of the limits.

    Raises:
        SourceFailure: it is no ZIP archive, or has too many entries.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        self._budget = budget
        _directory_check(path, budget.limits.max_entries)
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise _damaged() from error

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()

    def members(self) -> Iterator[tuple[str, zipfile.ZipInfo] | Problem]:
        """Yield name and header of each file; a problem in place of one that must not be read."""
        overlapping = _overlapping(self._zip.infolist())
        for info in self._zip.infolist():
            if info.is_dir():
                continue
            name = _name(info)
            problem = _problem(name, info, overlapping)
            yield problem if problem is not None else (name, info)

    def read(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield the bytes of a file. Raises EntryFailure and SourceFailure."""
        step = BLOCK if info.compress_type in _PLAIN else _SMALL
        done = 0
        try:
            with self._zip.open(info) as stream:
                while block := stream.read(step):
                    done += len(block)
                    self._budget.take(len(block), done, info.compress_size)
                    yield block
        except ZIP_ERRORS as error:
            raise _unreadable(error) from error


def _unreadable(error: Exception) -> EntryFailure:
    if isinstance(error, NotImplementedError):
        return EntryFailure(Reason.UNSUPPORTED, _("It uses a compression method that can't be read here."))
    if isinstance(error, RuntimeError) and "encrypt" in str(error):
        return EntryFailure(Reason.ENCRYPTED, _("It is protected by a password."))
    return EntryFailure(
        Reason.DAMAGED, _("It is damaged in the archive (cut off, or its checksum is wrong).")
    )


def _problem(name: str, info: zipfile.ZipInfo, overlapping: set[int]) -> Problem | None:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return Problem(
            shown(name), Reason.LINK, _("It is a symbolic link; only what links point to is imported.")
        )
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Problem(shown(name), Reason.SPECIAL, _("It isn't a regular file (a device, pipe or socket)."))
    if info.flag_bits & _ENCRYPTED_FLAG:
        return Problem(
            shown(name), Reason.ENCRYPTED, _("It is protected by a password. Pack it again without one.")
        )
    if info.header_offset in overlapping:
        return Problem(
            shown(name),
            Reason.OVERLAP,
            _("It shares its bytes with other entries, as in malicious archives."),
        )
    if "\x00" in (info.orig_filename or ""):
        return Problem(shown(info.orig_filename), Reason.BAD_NAME, _("Its name contains a zero byte."))
    return None


def _overlapping(infos: list[zipfile.ZipInfo]) -> set[int]:
    """Return the header offsets of entries whose bytes other entries claim too."""
    found: set[int] = set()
    last: zipfile.ZipInfo | None = None
    end = 0
    for info in sorted(infos, key=lambda one: one.header_offset):
        if info.header_offset < end and last is not None:
            found |= {info.header_offset, last.header_offset}
        # The local header is at least this long; its own name and extra field may be longer.
        here = info.header_offset + 30 + info.compress_size
        if here >= end:
            end, last = here, info
    return found


def _name(info: zipfile.ZipInfo) -> str:
    """Return an entry's name: UTF-8 when it says so or is so, else the old code page of the format."""
    name = info.orig_filename or info.filename
    if info.flag_bits & _UTF8_FLAG:
        return name
    try:
        return name.encode("cp437").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return name


def _directory_check(path: Path, max_entries: int) -> None:
    """Count the records of the directory before zipfile makes an object of each."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        where = max(0, size - _END_SIZE - _MAX_COMMENT - _LOCATOR_SIZE - 56)
        stream.seek(where)
        tail = stream.read()
        at = tail.rfind(_END)
        if at < 0 or len(tail) - at < _END_SIZE:
            raise _damaged()
        length = int.from_bytes(tail[at + 12 : at + 16], "little")
        end = where + at
        locator = tail.rfind(b"PK\x06\x06", 0, at)
        if locator >= 0 and len(tail) - locator >= 56:  # ZIP64 says it in a record of its own
            length = max(length, int.from_bytes(tail[locator + 40 : locator + 48], "little"))
            end = where + locator
        elif length == 0xFFFFFFFF:
            raise _damaged()
        if length > end:
            raise _damaged()
        stream.seek(end - length)
        if _records(stream, length, max_entries) > max_entries:
            raise SourceFailure(
                "too_many_entries",
                _(
                    "The archive has more than %(max_entries)s entries. Pack fewer, or ask the operator to "
                    "raise GROUNDWORK_IMPORT_MAX_FILES."
                )
                % {"max_entries": max_entries},
            )


def _records(stream: IO[bytes], length: int, stop_at: int) -> int:
    count = used = 0
    while used + _RECORD_SIZE <= length and count <= stop_at:
        head = stream.read(_RECORD_SIZE)
        if len(head) < _RECORD_SIZE or head[:4] != _RECORD:
            raise _damaged()
        rest = sum(int.from_bytes(head[place : place + 2], "little") for place in (28, 30, 32))
        stream.seek(rest, 1)
        used += _RECORD_SIZE + rest
        count += 1
    return count


def _damaged() -> SourceFailure:
    return SourceFailure(
        "archive_damaged",
        _(
            "This ZIP archive is incomplete; it may have been cut off. Create it again and import "
            "the new one."
        ),
    )

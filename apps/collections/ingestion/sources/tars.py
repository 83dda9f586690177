"""TAR archives, plain or packed, read as a stream in one pass.

The headers are parsed here, on ``tarfile.TarInfo.frombuf``: the library's own reader takes a header's word for how much
memory the names that follow may need.
"""

from __future__ import annotations

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from apps.collections.ingestion.sources.base import BLOCK, Budget, Problem, Reason, SourceFailure, shown
from basics.texts import gettext as _

_HEADER = 512
_MAX_EXTENDED = 64 * 1024  # bytes of long names and extended headers
_XZ_MEMORY = 256 * 1024 * 1024
_LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE)
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


class _Zlib:
    """zlib's object in the form of those of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(0, max_length))


_PACKINGS: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", _Zlib),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
)


class _Stream:
    """The unpacked bytes of a file, at most as many as are asked for at a time."""

    def __init__(self, source: IO[bytes], budget: Budget) -> None:
        self._source, self._budget = source, budget
        head = source.read(6)
        source.seek(0)
        self._make = next((make for magic, make in _PACKINGS if head.startswith(magic)), None)
        self._unpacker: Any = self._make() if self._make else None
        self._held = b""
        self.packed = self.unpacked = 0

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes, fewer only at the end. Raises SourceFailure."""
        pieces: list[bytes] = []
        while size > 0:
            piece = self._some(min(size, BLOCK))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            self.unpacked += len(piece)
            self._judge()
        return b"".join(pieces)

    def _some(self, size: int) -> bytes:
        if self._unpacker is None:
            plain = self._source.read(size)
            self.packed += len(plain)
            return plain
        is_over = False
        while True:
            if self._unpacker.eof:
                self._held = self._unpacker.unused_data or self._more()
                if not self._held.strip(b"\x00"):
                    return b""
                self._unpacker = self._make() if self._make else None
            elif self._unpacker.needs_input and not self._held:
                self._held = self._more()
                is_over = not self._held
            try:
                piece: bytes = self._unpacker.decompress(self._held, size)
            except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
                raise _damaged(str(error)) from error
            self._held = b""
            if piece:
                return piece
            if is_over and not self._unpacker.eof:
                raise _damaged("it ends too early")

    def _more(self) -> bytes:
        data = self._source.read(_HEADER * 8)
        self.packed += len(data)
        return data

    def _judge(self) -> None:
        limits = self._budget.limits
        if self._unpacker is None:
            return
        if self.unpacked > max(20_000_000, limits.max_ratio * self.packed):
            raise SourceFailure(
                "archive_bomb",
                _(
                    "The archive unpacks to more than %(max_ratio)s times its size, as malicious archives "
                    "do. The rest was not read; what was imported so far is kept."
                )
                % {"max_ratio": limits.max_ratio},
            )
        if self.unpacked > 2 * limits.max_bytes:
            raise SourceFailure(
                "too_large",
                _("Unpacked, the archive has more than %(max_bytes)s MB. What was imported so far is kept.")
                % {"max_bytes": limits.max_bytes // 1000000},
                status=413,
            )


class TarMembers:
    """The files of a TAR archive, in their order.

    Args:
        path: of the archive; gzip, bzip2 and xz are recognised by their first bytes.
        budget: what is left of the limits.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        self._file = path.open("rb")
        self._budget = budget
        self._stream = _Stream(self._file, budget)
        self._left = self._padding = 0

    def close(self) -> None:
        """Close the archive."""
        self._file.close()

    def members(self) -> Iterator[tuple[str, tarfile.TarInfo] | Problem]:
        """Yield name and header of each file; a problem in place of one that must not be read.

        Raises:
            SourceFailure: the archive is damaged from here on, or a bomb.
        """
        said: dict[str, str] = {}
        is_first = True
        while (info := self._header(is_first=is_first)) is not None:
            is_first = False
            if info.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
                records = _pax(self._extended(info))
                if info.type != tarfile.XGLTYPE:
                    said |= records
                continue
            if info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
                text = _decoded(self._extended(info).split(b"\x00", 1)[0])
                said["path" if info.type == tarfile.GNUTYPE_LONGNAME else "linkpath"] = text
                continue
            name = said.get("path", _renamed(info.name))
            if said.get("size", "").isdecimal():
                info.size = int(said["size"])
            is_sparse = info.type == tarfile.GNUTYPE_SPARSE or any("GNU.sparse" in k for k in said)
            said = {}
            has_body = info.type in _REGULAR or info.type not in tarfile.SUPPORTED_TYPES or is_sparse
            self._left = info.size if has_body else 0
            self._padding = -self._left % _HEADER
            if info.type != tarfile.DIRTYPE and not (info.type in _REGULAR and name.endswith("/")):
                problem = _problem(name, info, is_sparse=is_sparse)
                yield problem if problem is not None else (name, info)
            self._skip()

    def read(self, info: tarfile.TarInfo) -> Iterator[bytes]:
        """Yield the bytes of the file that came last. Raises EntryFailure and SourceFailure."""
        done = 0
        while self._left:
            block = self._stream.read(min(BLOCK, self._left))
            if not block:
                raise _damaged("it ends inside a file")
            self._left -= len(block)
            done += len(block)
            self._budget.take(len(block), done)
            yield block

    def _skip(self) -> None:
        rest = self._left + self._padding
        self._left = self._padding = 0
        while rest:
            block = self._stream.read(min(BLOCK, rest))
            if not block:
                raise _damaged("it ends inside a file")
            rest -= len(block)

    def _header(self, *, is_first: bool) -> tarfile.TarInfo | None:
        block = self._stream.read(_HEADER)
        if not block.strip(b"\x00"):
            if is_first and len(block) < _HEADER:
                raise _damaged("it is empty")
            if len(block) < _HEADER and block:
                raise _damaged("it ends inside a header")
            return None
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise _damaged(str(error)) from error
        if info.size < 0:
            raise _damaged("a file of negative size")
        return info

    def _extended(self, info: tarfile.TarInfo) -> bytes:
        if info.size > _MAX_EXTENDED:
            raise _damaged("a name or extended header of unreasonable size")
        data = self._stream.read(info.size + -info.size % _HEADER)
        if len(data) < info.size:
            raise _damaged("it ends inside a header")
        return data[: info.size]


def _problem(name: str, info: tarfile.TarInfo, *, is_sparse: bool) -> Problem | None:
    if info.type in _LINKS:
        return Problem(shown(name), Reason.LINK, _("It is a link; only what links point to is imported."))
    if is_sparse:
        return Problem(shown(name), Reason.SPECIAL, _("It is a sparse file, which is not read."))
    if info.type not in _REGULAR:
        return Problem(shown(name), Reason.SPECIAL, _("It isn't a regular file (a device, pipe or socket)."))
    return None


def _pax(data: bytes) -> dict[str, str]:
    """Read the records of an extended header, "<length> <key>=<value>\\n" (POSIX.1-2001)."""
    records: dict[str, str] = {}
    position = 0
    while position < len(data):
        digits, _, _ = data[position : position + 12].partition(b" ")
        if not digits.isdigit() or int(digits) <= len(digits) + 1:
            raise _damaged("an extended header makes no sense")
        record = data[position + len(digits) + 1 : position + int(digits)]
        key, equals, value = record.rstrip(b"\n").partition(b"=")
        if not equals:
            raise _damaged("an extended header makes no sense")
        records[_decoded(key)] = _decoded(value)
        position += int(digits)
    return records


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _renamed(name: str) -> str:
    """Read a name anew that was not UTF-8."""
    return _decoded(name.encode("utf-8", "surrogateescape"))


def _damaged(how: str) -> SourceFailure:
    return SourceFailure(
        "archive_damaged",
        _(
            "The archive is damaged (%(how)s) and the rest could not be read. What was imported so "
            "far is kept. Pack it again and import the new one; files that are already here aren't "
            "duplicated."
        )
        % {"how": shown(how)[:100]},
    )

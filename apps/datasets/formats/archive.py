"""ZIP archives of several files: written as a stream, read without trust in what they claim. Pure."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from apps.datasets.formats.parquet import Sink
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

MAX_MEMBER = 1 << 31
MAX_MEMBERS = 1_000
# No export has a date inside: equal rows give equal bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveWriter:
    """A ZIP archive that is passed on while it is written."""

    def __init__(self) -> None:
        self._sink = Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED)

    def member(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Add a file, yielding the archive's bytes as they come."""
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(info, "w", force_zip64=True) as handle:
            for piece in pieces:
                handle.write(piece)
                if done := self._sink.take():
                    yield done
        yield self._sink.take()

    def close(self) -> bytes:
        """Return the end of the archive."""
        self._zip.close()
        return self._sink.take()


@contextmanager
def archive_open(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive to read. Raises Invalid for a file that is none, or has too many files."""
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise Invalid(
                    "archive_too_large",
                    _("An archive has at most %(max_members)s files.") % {"max_members": MAX_MEMBERS},
                )
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise Invalid(
            "file_unreadable",
            _("The file isn't a ZIP archive, or is damaged or encrypted: %(error)s. Choose another file.")
            % {"error": error},
        ) from error


def members(archive: zipfile.ZipFile, suffix: str) -> list[str]:
    """Return the names of the files that end so, sorted."""
    return sorted(name for name in archive.namelist() if name.lower().endswith(suffix))


@contextmanager
def member_open(archive: zipfile.ZipFile, name: str) -> Iterator[BinaryIO]:
    """Open a file of an archive, unpacked to a temporary file that can be sought in.

    Raises:
        Invalid: it unpacks to more than ``MAX_MEMBER`` bytes, whatever it claims.
    """
    with tempfile.TemporaryFile() as copy, archive.open(name) as packed:
        left = MAX_MEMBER
        while block := packed.read(min(1 << 20, left + 1)):
            left -= len(block)
            if left < 0:
                raise Invalid(
                    "archive_too_large",
                    _("“%(name)s” unpacks to more than %(max_member)s bytes.")
                    % {"name": name[:80], "max_member": number_told(MAX_MEMBER)},
                )
            copy.write(block)
        copy.seek(0)
        yield cast("BinaryIO", copy)

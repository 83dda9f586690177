"""OpenDocument texts, through kreuzberg."""

from __future__ import annotations

from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading
from apps.collections.ingestion.readers.office import read_with_kreuzberg
from apps.collections.ingestion.readers.package import Package
from apps.collections.ingestion.types import ReaderLimits
from basics.texts import gettext_noop

_NOUN = gettext_noop("OpenDocument text")
_LEFT_OUT = frozenset({"tracked-changes", "annotation", "forms", "sequence-decls"})
_BREAKS = frozenset(
    [("start", "tab"), ("start", "line-break")]
    + [("end", name) for name in ("p", "h", "table-cell", "list-item")]
)


class OdtReader:
    """Read an ODT file as Markdown with headings and tables."""

    media_types = (media_types.ODT,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        return read_with_kreuzberg(path, media_types.ODT, _NOUN, limits, lambda: odt_source_text(path))


def odt_source_text(path: Path) -> str:
    """Read the visible text of the content part, by the XML alone.

    Raises:
        ReadFailure: ``corrupt_file`` or ``too_large``.
    """
    pieces: list[str] = []
    hidden = 0
    is_body = False
    with Package(path, _NOUN) as package:
        for kind, name, given in package.events("content.xml"):
            if name in _LEFT_OUT and kind != "text":
                hidden += 1 if kind == "start" else -1
            elif name == "body" and kind != "text":
                is_body = kind == "start"
            elif hidden or not is_body:
                continue
            elif kind == "text":
                pieces.append(name)
            elif kind == "start" and name == "s":
                count = given.get("c", "1")
                pieces.append(" " * min(int(count) if count.isdecimal() else 1, 100))
            elif (kind, name) in _BREAKS:
                pieces.append("\n")
    return "".join(pieces)

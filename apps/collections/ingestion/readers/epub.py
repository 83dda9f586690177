"""EPUB books, through kreuzberg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, clean_text, decode_bytes
from apps.collections.ingestion.readers.html import html_source_text
from apps.collections.ingestion.readers.office import read_with_kreuzberg
from apps.collections.ingestion.readers.package import Package
from apps.collections.ingestion.types import ReaderLimits
from basics.texts import gettext_noop

_NOUN = gettext_noop("EPUB book")
_CONTAINER = "META-INF/container.xml"
_PAGES = ("application/xhtml+xml", "text/html")


class EpubReader:
    """Read an EPUB book as Markdown, chapter after chapter."""

    media_types = (media_types.EPUB,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        return read_with_kreuzberg(path, media_types.EPUB, _NOUN, limits, lambda: epub_source_text(path))


def epub_source_text(path: Path) -> str:
    """Read the words of all chapters in reading order, by the markup alone.

    Raises:
        ReadFailure: ``corrupt_file`` or ``too_large``.
    """
    with Package(path, _NOUN) as package:
        return "\n".join(
            html_source_text(clean_text(decode_bytes(package.read(part)))) for part in _chapters(package)
        )


def _chapters(package: Package) -> Iterator[str]:
    if _CONTAINER not in package.names:
        raise package.damaged()
    roots = [
        event.attributes.get("full-path", "")
        for event in package.events(_CONTAINER)
        if event.kind == "start" and event.name == "rootfile"
    ]
    if not roots or roots[0] not in package.names:
        raise package.damaged()
    items: dict[str, str] = {}
    for event in package.events(roots[0]):
        given = event.attributes
        if event.kind != "start":
            continue
        if event.name == "item" and given.get("media-type") in _PAGES:
            items[given.get("id", "")] = package.resolve(roots[0], given.get("href", ""))
        elif event.name == "itemref":
            # Once each: a spine may name a chapter again, and a hostile one does so without end.
            part = items.pop(given.get("idref", ""), "")
            if part in package.names:
                yield part

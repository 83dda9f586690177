"""HTML pages, through kreuzberg."""

from __future__ import annotations

import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, clean_text, decode_bytes
from apps.collections.ingestion.readers.office import raised, read_with_kreuzberg
from apps.collections.ingestion.types import ReaderLimits

_HIDDEN = frozenset({"script", "style", "noscript", "template", "head", "nav", "svg", "math"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_INLINE = frozenset(
    """
        a abbr b bdi cite code em font i kbd mark s samp small span strong sub sup tt u var wbr
    """.split()
)

# The number of a note, or a power: as a plain number it would become part of the word before it, or of the sentence behind.
_RAISED = re.compile(r"<sup>\s*(\d{1,3})\s*</sup>", re.IGNORECASE | re.ASCII)


class HtmlReader:
    """Read an HTML page as Markdown, without scripts, styles and link targets."""

    media_types = (media_types.HTML,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        source = _RAISED.sub(lambda found: raised(found[1]), clean_text(decode_bytes(path.read_bytes())))
        # kreuzberg reads UTF-8 only: give it the decoded page, whatever the file's own encoding was.
        with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as copy:
            copy.write(source)
            copy.flush()
            return read_with_kreuzberg(
                Path(copy.name), media_types.HTML, "HTML page", limits, lambda: html_source_text(source)
            )


def html_source_text(source: str) -> str:
    """Collect the visible text of a page, by the markup alone."""
    collector = _TextCollector()
    collector.feed(source)
    collector.close()
    return "".join(collector.pieces)


class _TextCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN and tag not in _VOID:
            self._hidden.append(tag)
        elif tag not in _INLINE:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag == self._hidden[-1]:
            self._hidden.pop()
        elif tag not in _INLINE:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)

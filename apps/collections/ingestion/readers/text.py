"""Plain text: the text itself, with numbered or shouted lines left as they are."""

from __future__ import annotations

from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading, read_text, split_parts
from apps.collections.ingestion.types import ReaderLimits


class TextReader:
    """Read plain text in any of the usual encodings."""

    media_types = (media_types.TEXT,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file; its text is the file's, cleaned of what a database cannot hold."""
        text = read_text(path, limits).replace("\f", "\n\n")
        parts = list(split_parts(text, [], []))
        return Reading(len(parts), iter(parts), is_paged=False)

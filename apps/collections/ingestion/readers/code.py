"""Source code: the file's own text as one page with its structure; as plain text where that cannot be had."""

from __future__ import annotations

from pathlib import Path

from apps.collections.ingestion.code.isolation import ParseEnded, structure_isolated
from apps.collections.ingestion.code.programming_languages import BY_MEDIA_TYPE, CodeLanguage
from apps.collections.ingestion.code.types import CodeStructure
from apps.collections.ingestion.readers.base import Reading, read_text, split_parts
from apps.collections.ingestion.types import PageText, ReaderLimits
from basics.texts import gettext as _
from basics.texts import number_told

MAX_CODE_CHARS = 10_000_000
_MINIFIED_FROM = 20_000  # characters; shorter files cost nothing, however they look
_MINIFIED_LINE = 1_000  # mean characters of a line; written code has 30 to 40
_PARSE_MEMORY_SHARE = 2  # of the child's memory: the text and its answer are in the other half


class CodeReader:
    """Read a source file of one language."""

    def __init__(self, language: CodeLanguage) -> None:
        self._language = language
        self.media_types = (language.media_type,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file and parse it; what cannot be parsed is read as plain text with a warning.

        Raises:
            ReadFailure: ``no_text`` or ``too_large``.
        """
        text = read_text(path, limits)
        try:
            structure = self._structure(text, limits)
        except ParseEnded as reason:
            reading = _plain(text)
            reading.warnings.append(
                _("This file was read as plain text, without functions and classes: %(reason)s.")
                % {"reason": reason.args[0]}
            )
            return reading
        reading = Reading(1, iter([PageText(number=1, text=text, code=structure)]), is_paged=False)
        reading.metadata = {
            "language": structure.language,
            "lines": text.count("\n") + 1,
            "symbols": len(structure.symbols),
        }
        if structure.has_errors:
            reading.warnings.append(
                _("Parts of this file aren't valid %(label)s; they are kept as text.")
                % {"label": self._language.label}
            )
        return reading

    def _structure(self, text: str, limits: ReaderLimits) -> CodeStructure:
        if len(text) > MAX_CODE_CHARS:
            raise ParseEnded(
                _("it has %(text)s characters, and %(max_code_chars)s are allowed for code")
                % {"text": number_told(len(text)), "max_code_chars": number_told(MAX_CODE_CHARS)}
            )
        if len(text) > _MINIFIED_FROM and len(text) > _MINIFIED_LINE * (text.count("\n") + 1):
            raise ParseEnded(_("it looks like minified or generated code"))
        return structure_isolated(
            text, self._language.name, memory_bytes=limits.memory_bytes // _PARSE_MEMORY_SHARE
        )


def _plain(text: str) -> Reading:
    parts = list(split_parts(text, [], []))
    return Reading(len(parts), iter(parts), is_paged=False)


def reader_of(media_type: str) -> CodeReader:
    """Make the reader of a language's media type."""
    return CodeReader(BY_MEDIA_TYPE[media_type])

"""Which reader reads which media type.

To add one, write its class in a module of this folder and name it in ``_READERS``; ``docs/checklists.md`` lists the other places.
"""

from __future__ import annotations

from importlib import import_module

from apps.collections.ingestion import media_types
from apps.collections.ingestion.code.programming_languages import BY_MEDIA_TYPE
from apps.collections.ingestion.readers.base import Reader
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _

# Modules are imported on demand: a child that reads a text file must not pay for PDFium or kreuzberg.
_READERS: dict[str, tuple[str, str]] = {
    media_types.PDF: ("pdf", "PdfReader"),
    media_types.MARKDOWN: ("markdown", "MarkdownReader"),
    media_types.TEXT: ("text", "TextReader"),
    media_types.HTML: ("html", "HtmlReader"),
    media_types.DOCX: ("docx", "DocxReader"),
    media_types.CSV: ("csv", "CsvReader"),
    media_types.PPTX: ("pptx", "PptxReader"),
    media_types.XLSX: ("xlsx", "XlsxReader"),
    media_types.ODT: ("odt", "OdtReader"),
    media_types.EPUB: ("epub", "EpubReader"),
    media_types.JSON: ("json", "JsonReader"),
    media_types.JSON_LINES: ("json", "JsonLinesReader"),
    media_types.EML: ("eml", "EmlReader"),
    media_types.SRT: ("subtitles", "SubtitlesReader"),
    media_types.VTT: ("subtitles", "SubtitlesReader"),
    **dict.fromkeys(sorted(media_types.IMAGES), ("image", "ImageReader")),
}


def reader_for(media_type: str) -> Reader:
    """Make the reader of a media type.

    Raises:
        ReadFailure: ``unsupported_type``.
    """
    if media_type in BY_MEDIA_TYPE:
        of_language: Reader = import_module(f"{__package__}.code").reader_of(media_type)
        return of_language
    entry = _READERS.get(media_type)
    if entry is None:
        raise ReadFailure(
            FailureCode.UNSUPPORTED_TYPE,
            _("Files of type %(media_type)s cannot be read yet.") % {"media_type": media_type},
        )
    module = import_module(f"{__package__}.{entry[0]}")
    if media_type in media_types.IMAGES:
        of_image: Reader = module.ImageReader(media_type)
        return of_image
    reader: Reader = getattr(module, entry[1])()
    return reader

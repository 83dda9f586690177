"""Which reader reads which media type.

To add one, write its class in a module of this folder and name it in ``_READERS``; ``docs/checklists.md`` lists the other places.
"""

from __future__ import annotations

from importlib import import_module

from apps.collections.ingestion import detect
from apps.collections.ingestion.code.programming_languages import BY_MEDIA_TYPE
from apps.collections.ingestion.readers.base import Reader
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _

# Modules are imported on demand: a child that reads a text file must not pay for PDFium or kreuzberg.
_READERS: dict[str, tuple[str, str]] = {
    detect.PDF: ("pdf", "PdfReader"),
    detect.MARKDOWN: ("markdown", "MarkdownReader"),
    detect.TEXT: ("text", "TextReader"),
    detect.HTML: ("html", "HtmlReader"),
    detect.DOCX: ("docx", "DocxReader"),
    detect.CSV: ("csv", "CsvReader"),
    detect.PPTX: ("pptx", "PptxReader"),
    detect.XLSX: ("xlsx", "XlsxReader"),
    detect.ODT: ("odt", "OdtReader"),
    detect.EPUB: ("epub", "EpubReader"),
    detect.JSON: ("json", "JsonReader"),
    detect.JSON_LINES: ("json", "JsonLinesReader"),
    detect.EML: ("eml", "EmlReader"),
    detect.SRT: ("subtitles", "SubtitlesReader"),
    detect.VTT: ("subtitles", "SubtitlesReader"),
    **dict.fromkeys(sorted(detect.IMAGES), ("image", "ImageReader")),
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
    if media_type in detect.IMAGES:
        of_image: Reader = module.ImageReader(media_type)
        return of_image
    reader: Reader = getattr(module, entry[1])()
    return reader

"""The media types that can be read: their names for people, and the file names that they go by."""

from __future__ import annotations

from apps.collections.ingestion.code.programming_languages import BY_MEDIA_TYPE, BY_SUFFIX
from basics.texts import gettext_noop

PDF = "application/pdf"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
HTML = "text/html"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
CSV = "text/csv"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
JSON = "application/json"
JSON_LINES = "application/jsonl"
EML = "message/rfc822"
SRT = "application/x-subrip"
VTT = "text/vtt"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"
BMP = "image/bmp"
GIF = "image/gif"
HEIC = "image/heic"
IMAGES = frozenset({PNG, JPEG, TIFF, WEBP, BMP, GIF, HEIC})
"""Read by text recognition alone."""

SUPPORTED: dict[str, str] = {
    PDF: gettext_noop("PDF document"),
    MARKDOWN: gettext_noop("Markdown text"),
    TEXT: gettext_noop("plain text"),
    HTML: gettext_noop("HTML page"),
    DOCX: gettext_noop("Word document (DOCX)"),
    CSV: gettext_noop("CSV table"),
    PPTX: gettext_noop("PowerPoint presentation (PPTX)"),
    XLSX: gettext_noop("Excel workbook (XLSX)"),
    ODT: gettext_noop("OpenDocument text (ODT)"),
    EPUB: gettext_noop("EPUB book"),
    JSON: gettext_noop("JSON data"),
    JSON_LINES: gettext_noop("JSON Lines data"),
    EML: gettext_noop("email message (EML)"),
    SRT: gettext_noop("SubRip subtitles (SRT)"),
    VTT: gettext_noop("WebVTT subtitles (VTT)"),
    PNG: gettext_noop("PNG image"),
    JPEG: gettext_noop("JPEG image"),
    TIFF: gettext_noop("TIFF image"),
    WEBP: gettext_noop("WebP image"),
    BMP: gettext_noop("BMP image"),
    GIF: gettext_noop("GIF image"),
    HEIC: gettext_noop("HEIC image"),
    **{media_type: f"{language.label} source" for media_type, language in BY_MEDIA_TYPE.items()},
}

BY_NAME = {
    ".pdf": PDF,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": TEXT,
    ".text": TEXT,
    ".log": TEXT,
    ".rst": TEXT,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".docx": DOCX,
    ".csv": CSV,
    ".tsv": CSV,
    ".pptx": PPTX,
    ".xlsx": XLSX,
    ".odt": ODT,
    ".epub": EPUB,
    ".json": JSON,
    ".geojson": JSON,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".eml": EML,
    ".srt": SRT,
    ".vtt": VTT,
    ".png": PNG,
    ".jpg": JPEG,
    ".jpeg": JPEG,
    ".jpe": JPEG,
    ".tif": TIFF,
    ".tiff": TIFF,
    ".webp": WEBP,
    ".bmp": BMP,
    ".gif": GIF,
    ".heic": HEIC,
    ".heif": HEIC,
}

SUPPORTED_SUFFIXES = frozenset(BY_NAME) | frozenset(BY_SUFFIX)

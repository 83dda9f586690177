"""Find out what a file is: from its content first, from its name only where content cannot tell."""

from __future__ import annotations

import codecs
import json
import re
import struct
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from apps.collections.ingestion.code.programming_languages import language_of
from apps.collections.ingestion.media_types import (
    BMP,
    BY_NAME,
    DOCX,
    EML,
    EPUB,
    GIF,
    HEIC,
    HTML,
    IMAGES,
    JPEG,
    JSON,
    ODT,
    PDF,
    PNG,
    PPTX,
    SRT,
    SUPPORTED,
    TEXT,
    TIFF,
    VTT,
    WEBP,
    XLSX,
)
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _
from basics.texts import gettext_noop, number_told

ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
)
"""What reading a damaged, encrypted or oddly packed ZIP archive raises; the module has no error of its own for them."""

_PACKAGES = frozenset({PDF, DOCX, PPTX, XLSX, ODT, EPUB, *IMAGES})  # told by their content alone

# Content we can name but not read; the message says the name so that the owner knows what to convert.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", gettext_noop("old Office file (DOC, XLS or PPT)")),
    (b"{\\rtf", gettext_noop("RTF document")),
    (b"%!PS", gettext_noop("PostScript document")),
    (b"\x1f\x8b", gettext_noop("gzip archive")),
    (b"BZh", gettext_noop("bzip2 archive")),
    (b"\xfd7zXZ\x00", gettext_noop("xz archive")),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", gettext_noop("RAR archive")),
    (b"\x7fELF", gettext_noop("executable program")),
    (b"MZ", gettext_noop("Windows program")),
    (b"SQLite format 3\x00", gettext_noop("SQLite database")),
    (b"ID3", gettext_noop("MP3 audio")),
    (b"OggS", gettext_noop("Ogg audio")),
    (b"RIFF", gettext_noop("audio or video")),
    (b"\x00\x00\x00\x18ftyp", gettext_noop("MP4 video")),
    (b"\x00\x00\x00\x20ftyp", gettext_noop("MP4 video")),
)
_BINARY_ONLY = {"Windows program", "MP3 audio"}  # magic so short that plain text may begin with it

_IMAGE_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
)
_WEBP = re.compile(rb"RIFF....WEBP", re.DOTALL)
_BMP = re.compile(rb"BM.{4}\x00\x00\x00\x00.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00", re.DOTALL)
# The brands of HEIF files, in the first box of the file (ISO/IEC 23008-12).
_HEIF = re.compile(rb".{4}ftyp(?:hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL)

_ZIP_MEMBERS: tuple[tuple[str, str], ...] = (
    ("word/document.xml", DOCX),
    ("xl/workbook.xml", XLSX),
    ("ppt/presentation.xml", PPTX),
)
_OTHER_ZIPS: tuple[tuple[str, str], ...] = (
    ("xl/workbook.bin", gettext_noop("binary Excel workbook (XLSB)")),
    ("META-INF/MANIFEST.MF", gettext_noop("Java archive")),
)
_MIMETYPES: dict[str, str] = {ODT: ODT, f"{ODT}-template": ODT, EPUB: EPUB}
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."

_HTML_START = re.compile(
    rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_MAIL_HEADER = re.compile(rb"^([A-Za-z][A-Za-z0-9-]{1,60}):(?:[ \t]|\r?\n)", re.MULTILINE)
_MAIL_NAMES = frozenset(
    {b"from", b"to", b"date", b"subject", b"received", b"message-id", b"mime-version", b"return-path"}
)
_MAIL_ONLY = frozenset({b"received", b"message-id", b"mime-version", b"return-path"})
_CUE = re.compile(rb"\d+[ \t]*\r?\n\d{1,2}:\d\d:\d\d[,.]\d{1,3} --> \d")
_HEAD = 64 * 1024
# docs/guide/documents.md tells users the same.
_HELP = gettext_noop(
    "Supported are PDF, DOCX, PPTX, XLSX, ODT, EPUB, HTML, Markdown, CSV, JSON, JSON Lines, EML, subtitles (SRT, VTT), images, source code and plain text."
)


@dataclass(frozen=True, slots=True)
class Detection:
    """What a file is.

    Attributes:
        media_type: one of ``SUPPORTED``.
        warning: set when the name promised something else, else "".
    """

    media_type: str
    warning: str = ""


def detect(path: Path, name: str, *, max_bytes: int) -> Detection:
    """Tell the media type of a file.

    Args:
        path: where the bytes are.
        name: the name its owner gave it; decides between text formats and shows up in messages.
        max_bytes: refuse larger files.

    Raises:
        ReadFailure: ``empty_file``, ``too_large``, ``corrupt_file`` or ``unsupported_type``.
    """
    size = path.stat().st_size
    if size == 0:
        raise ReadFailure(
            FailureCode.EMPTY_FILE, _("The file is empty (0 bytes). Check it and upload it again.")
        )
    if size > max_bytes:
        raise ReadFailure(
            FailureCode.TOO_LARGE,
            _("The file has %(size)s MB; the limit is %(max_bytes)s MB. Split it or raise the limit.")
            % {"size": number_told(size / 1e6), "max_bytes": number_told(max_bytes / 1e6)},
            data={"bytes": size, "max_bytes": max_bytes},
        )
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    language = language_of(name, head)
    by_name = language.media_type if language else BY_NAME.get(Path(name).suffix.lower())
    media_type = _from_content(path, name, head, size, by_name)
    warning = ""
    if by_name is not None and by_name != media_type:
        warning = _(
            "The name “%(name)s” suggests %(supposed)s, but the content is %(found)s; it was read as that."
        ) % {
            "name": Path(name).name,
            "supposed": _(SUPPORTED[by_name]),
            "found": _(SUPPORTED[media_type]),
        }
    return Detection(media_type, warning)


def _from_content(path: Path, name: str, head: bytes, size: int, by_name: str | None) -> str:
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _from_zip(path, name)
    image = _image_type(head)
    if image is not None:
        return image
    binary = _is_binary(head)
    for magic, kind in _MAGIC:
        if head.startswith(magic) and (binary or kind not in _BINARY_ONLY):
            raise _unsupported(name, kind)
    if binary:
        if by_name in _PACKAGES:
            raise ReadFailure(
                FailureCode.CORRUPT_FILE,
                _(
                    "The file is named like a %(supported)s, but its content isn't one; it seems damaged. "
                    "Export it again and upload the new file."
                )
                % {"supported": _(SUPPORTED[by_name])},
            )
        raise _unsupported(name, gettext_noop("unknown binary data"))
    if not head.strip(b"\x00\xef\xbb\xbf\xfe\xff \t\r\n\f") and size <= _HEAD:
        raise ReadFailure(
            FailureCode.EMPTY_FILE, _("The file contains only blanks. Check it and upload it again.")
        )
    if _HTML_START.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    if by_name in _PACKAGES or by_name is None:
        return _from_text(head, size)
    return by_name


def _image_type(head: bytes) -> str | None:
    for magic, media_type in _IMAGE_MAGIC:
        if head.startswith(magic):
            return media_type
    for pattern, media_type in ((_WEBP, WEBP), (_BMP, BMP), (_HEIF, HEIC)):
        if pattern.match(head):
            return media_type
    return None


def _from_text(head: bytes, size: int) -> str:
    """Tell text formats by their first lines, where the name does not."""
    if _is_mail(head):
        return EML
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb"WEBVTT(?:\s|\Z)", start):
        return VTT
    if _CUE.match(start):
        return SRT
    if size <= _HEAD and start[:1] in (b"{", b"["):
        try:
            json.loads(head)
        except (ValueError, RecursionError):
            return TEXT
        return JSON
    return TEXT


def _is_mail(head: bytes) -> bool:
    """Recognise a message by its block of headers: three usual ones, of which one stands in messages only."""
    block = re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0]
    first = block.split(b"\n", 1)[0]
    if _MAIL_HEADER.match(first + b"\n") is None:
        return False
    names = {m.group(1).lower() for m in _MAIL_HEADER.finditer(block)}
    return len(names & _MAIL_NAMES) >= 3 and bool(names & _MAIL_ONLY)


def _from_zip(path: Path, name: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            members = frozenset(archive.namelist())
            declared = b""
            if "mimetype" in members:
                with archive.open("mimetype") as stream:
                    declared = stream.read(200)
    except ZIP_ERRORS as error:
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _(
                "The file is a damaged archive (an office document is one inside); it may be cut off. "
                "Upload it again."
            ),
        ) from error
    kind = declared.decode("ascii", errors="replace").strip()
    if kind in _MIMETYPES:
        return _MIMETYPES[kind]
    for member, media_type in _ZIP_MEMBERS:
        if member in members:
            return media_type
    if "META-INF/container.xml" in members:
        return EPUB
    if kind.startswith(_OPEN_DOCUMENT):
        raise _unsupported(name, f"OpenDocument {kind.removeprefix(_OPEN_DOCUMENT)[:40]}")
    for member, other in _OTHER_ZIPS:
        if member in members:
            raise _unsupported(name, other)
    raise ReadFailure(
        FailureCode.UNSUPPORTED_TYPE,
        _(
            "This is a ZIP archive. Import it (“Import many files” in the collection): each file in it becomes a document."
        ),
        data={"kind": "ZIP archive"},
    )


def _is_binary(head: bytes) -> bool:
    """Judge by control bytes; UTF-16 and UTF-32 text is recognised by its mark or its regular zeros."""
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return not _is_wide_text(head[4:], "utf-32-le" if head[0] else "utf-32-be")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return not _is_wide_text(head[2:], "utf-16-le" if head[0] == 0xFF else "utf-16-be")
    sample = head[:8192]
    zeros = sample.count(0)
    if zeros and _looks_utf16(sample):
        little = sample[1::2].count(0) > sample[::2].count(0)
        return not _is_wide_text(sample, "utf-16-le" if little else "utf-16-be")
    control = sum(1 for byte in sample if byte < 9 or 13 < byte < 32) - zeros
    is_utf8 = _is_utf8(sample, is_whole=len(head) == len(sample))
    if zeros > len(sample) * 0.05:
        # Old systems pad the fields of their exports with zeros; nothing else in those is odd.
        return not is_utf8 or control > 0 or zeros > len(sample) * 0.3
    # Logs hold the escapes of terminal colours; noise and packed data have a tenth of control bytes and are no UTF-8.
    return control > len(sample) * (0.1 if is_utf8 else 0.05)


_ODD_CATEGORIES = frozenset({"Cc", "Cn", "Co", "Cs"})
_ODD_SHARE = 0.02
_ASCII_SHARE = 0.95


def _is_wide_text(data: bytes, encoding: str) -> bool:
    """Tell whether bytes that look like UTF-16 or UTF-32 are text: any two bytes are some letter, mostly a Chinese one."""
    data = data[:8192]
    data = data[: len(data) - len(data) % 4]
    if len(data) < 4:
        return True  # a mark and next to nothing: an empty file, for who reads it
    printable = sum(1 for byte in data if 31 < byte < 127 or byte in b"\t\r\n")
    if printable > len(data) * _ASCII_SHARE:
        return False  # one byte for each letter: read in pairs they only look Chinese
    text = data.decode(encoding, errors="replace")
    odd = sum(
        1
        for ch in text
        if ch not in "\t\r\n\f\x1b" and (ch == "\ufffd" or unicodedata.category(ch) in _ODD_CATEGORIES)
    )
    return odd <= max(1, len(text) * _ODD_SHARE)


def _is_utf8(sample: bytes, *, is_whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=is_whole)
    except UnicodeDecodeError:
        return False
    return True


def _looks_utf16(sample: bytes) -> bool:
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = max(1, len(sample) // 2)
    return max(even, odd) > half * 0.4 and min(even, odd) < half * 0.05


def _unsupported(name: str, kind: str) -> ReadFailure:
    suffix = Path(name).suffix.lower()
    if BY_NAME.get(suffix):
        message = _("%(kind)s (its name says %(suffix)s): this kind of file can't be read yet. %(help)s")
    else:
        message = _("%(kind)s: this kind of file can't be read yet. %(help)s")
    return ReadFailure(
        FailureCode.UNSUPPORTED_TYPE,
        message % {"kind": _(kind), "suffix": suffix, "help": _(_HELP)},
        data={"kind": kind},
    )

"""What a file is, by its bytes and never by its name: the kinds that some provider takes beside a message. Pure."""

from __future__ import annotations

import io
from typing import Final, Literal

Kind = Literal["image", "pdf", "audio", "office", "text"]

PDF: Final = "application/pdf"
IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
AUDIO: Final = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}
"""Sound, with the word that chat completions and file names have for it."""
_OPEN_XML: Final = "application/vnd.openxmlformats-officedocument."
OFFICE: Final = {
    f"{_OPEN_XML}wordprocessingml.document": "docx",
    f"{_OPEN_XML}spreadsheetml.sheet": "xlsx",
    f"{_OPEN_XML}presentationml.presentation": "pptx",
}
TEXTS: Final = {"text/plain": "txt", "text/csv": "csv", "text/markdown": "md", "text/html": "html"}
"""Text in UTF-8. Which of these it is cannot be seen: it is what it is said to be, else plain."""
KINDS: Final[dict[str, Kind]] = {
    PDF: "pdf",
    **dict.fromkeys(IMAGES, "image"),
    **dict.fromkeys(AUDIO, "audio"),
    **dict.fromkeys(OFFICE, "office"),
    **dict.fromkeys(TEXTS, "text"),
}
NAMES: Final[dict[Kind, str]] = {
    "image": "images",
    "pdf": "PDF files",
    "audio": "audio",
    "office": "office files",
    "text": "text files",
}
"""Each kind in the plural, for messages."""
_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "application/csv": "text/csv",
    "text/x-markdown": "text/markdown",
}
_MAIN_PARTS: Final = {
    "word/document.xml": f"{_OPEN_XML}wordprocessingml.document",
    "xl/workbook.xml": f"{_OPEN_XML}spreadsheetml.sheet",
    "ppt/presentation.xml": f"{_OPEN_XML}presentationml.presentation",
}
_OGG_CODECS: Final = (b"OpusHead", b"\x01vorbis", b"\x7fFLAC", b"Speex   ")
_ENTRIES: Final = 20_000


def type_said(media_type: str) -> str:
    """Return a media type as it is compared here: lower case, without parameters, one word for each thing."""
    said = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(said, said)


def media_type_of(content: bytes) -> str:
    """Return the media type that a file's first bytes (48 do) show, "" for none; office files and text need ``whole_type``."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(content[8:12], "")
    if content.startswith(b"%PDF-"):
        return PDF
    return _audio_type(content)


def whole_type(content: bytes, said: str = "") -> str:
    """Return the media type of a file's whole bytes, "" for none that could be sent.

    Args:
        said: tells CSV, Markdown and HTML from plain text, which no bytes do; nothing else.
    """
    found = media_type_of(content)
    if found:
        return found
    if content.startswith(b"PK\x03\x04"):
        return _office_type(content)
    if b"\x00" in content:
        return ""
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return said if said in TEXTS else "text/plain"


def is_start_of(media_type: str, start: bytes) -> bool:
    """Tell whether a file of this type can begin with these bytes (48 or more, or all there are)."""
    kind = KINDS.get(media_type)
    if kind == "office":
        return start.startswith(b"PK\x03\x04")
    if kind == "text":
        return b"\x00" not in start and not media_type_of(start) and not start.startswith(b"PK\x03")
    return media_type_of(start) == media_type


def file_name(name: str, media_type: str) -> str:
    """Return the name to show for a file: with the ending that its type has, where providers go by endings."""
    ending = OFFICE.get(media_type) or TEXTS.get(media_type) or AUDIO.get(media_type, "pdf")
    if not name:
        return f"document.{ending}"
    return f"{name}.{ending}" if media_type in OFFICE and not name.lower().endswith(f".{ending}") else name


def _audio_type(content: bytes) -> str:
    if content.startswith(b"ID3") or _is_mp3_frame(content[:3]):
        return "audio/mpeg"
    if content.startswith(b"fLaC"):
        return "audio/flac"
    if content.startswith(b"OggS"):
        # The first packet says what the stream holds: Ogg has video too.
        return "audio/ogg" if content[28:48].startswith(_OGG_CODECS) else ""
    if content[4:8] == b"ftyp":
        return "audio/mp4" if content[8:12] in (b"M4A ", b"M4B ") else ""
    is_webm = content.startswith(b"\x1aE\xdf\xa3") and b"webm" in content[:48]
    return "audio/webm" if is_webm else ""


def _is_mp3_frame(start: bytes) -> bool:
    """Tell whether bytes begin a frame of MPEG layer III: sync, version, layer, a bit rate and a sample rate that exist."""
    if len(start) < 3 or start[0] != 0xFF or start[1] & 0xE6 != 0xE2:
        return False
    return (start[1] >> 3) & 3 != 1 and 0 < start[2] >> 4 < 15 and (start[2] >> 2) & 3 != 3


def _office_type(content: bytes) -> str:
    """Return which office file a ZIP archive is, by the main part in its directory; nothing is unpacked."""
    import zipfile  # with the ten modules it needs, only where there is an archive

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return ""
    if "[Content_Types].xml" not in names or len(names) > _ENTRIES:
        return ""
    return next((found for part, found in _MAIN_PARTS.items() if part in names), "")

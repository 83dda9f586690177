"""Images, PDF files, sound and other files that go along with a message.

The bytes are kept as base64 text, the form in which JSON stores them and every provider takes them, so that a long
conversation does not encode the same picture before each model turn.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from toolloop.errors import MediaRefused
from toolloop.media_types import IMAGES, KINDS, PDF, Kind, is_start_of, media_type_of, type_said, whole_type

__all__ = ["MAX_MEDIA_BYTES", "Media", "media_type_of"]

MAX_MEDIA_BYTES: Final = 50 * 1024 * 1024
"""Bytes of one file; the largest that any provider takes. Adapters refuse what is too large for theirs."""

# What an image costs at the resolution to which providers scale large ones down, and a PDF page as text and picture.
_IMAGE_TOKENS: Final = 1_600
_PAGE_TOKENS: Final = 2_000
_PAGE_BYTES: Final = 50_000
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
# Gemini's own figure, and the bytes that a second has about, few rather than many: an estimate shall not be too low.
_SECOND_TOKENS: Final = 32
_SECOND_BYTES: Final = {"audio/ogg": 4_000, "audio/webm": 4_000, "audio/flac": 40_000}
_OTHER_SECOND_BYTES: Final = 8_000
_TEXT_BYTES: Final = 3  # a token of text has, about
_KNOWN: Final = (
    ", ".join((*IMAGES, PDF)) + ", audio (WAV, MP3, OGG, FLAC, M4A, WebM), DOCX, XLSX, PPTX or UTF-8 text"
)


@dataclass(frozen=True, slots=True)
class Media:
    """One file: bytes that we hold, or a URL that the provider fetches. Make it with one of the ``from_``.

    Attributes:
        media_type: one of ``toolloop.media_types.KINDS``: images, PDF, sound, office files, text.
        data: the bytes in base64, "" with a URL.
        url: https, "" with bytes. Not every provider fetches; those that do not refuse the request.
        name: file name to show the model, "" for none.
        tokens: estimate of what it costs as input.
    """

    media_type: str
    data: str = field(default="", repr=False)  # Megabytes have no place in a log line.
    url: str = ""
    name: str = ""
    tokens: int = _IMAGE_TOKENS

    def __post_init__(self) -> None:
        if self.media_type not in KINDS:
            raise MediaRefused(f"A file of type {self.media_type!r} cannot be sent; use {_KNOWN}.")
        if bool(self.data) == bool(self.url):
            raise MediaRefused("A file needs either its bytes or a URL.")
        if len(self.data) > _encoded(MAX_MEDIA_BYTES):
            raise MediaRefused(f"The file {self.name!r} is larger than {MAX_MEDIA_BYTES // 2**20} MB.")

    @property
    def kind(self) -> Kind:
        """Tell what it is."""
        return KINDS[self.media_type]

    @property
    def text(self) -> str:
        """Return the words of a text file whose bytes we hold, "" for any other."""
        return base64.b64decode(self.data).decode("utf-8-sig") if self.kind == "text" else ""

    @property
    def data_url(self) -> str:
        """Return the bytes as a ``data:`` URL, or the URL itself."""
        return self.url or f"data:{self.media_type};base64,{self.data}"

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str = "", name: str = "") -> Media:
        """Take a file's bytes.

        Args:
            content: the whole file, at most ``MAX_MEDIA_BYTES``.
            media_type: what it is said to be; recognised from the bytes when "". Only of text it tells more than these.
            name: file name to show the model.

        Raises:
            MediaRefused: for what is empty, too large, no supported type, or not what it is said to be.
        """
        if not content:
            raise MediaRefused(f"The file {name!r} is empty.")
        if len(content) > MAX_MEDIA_BYTES:
            raise MediaRefused(f"The file {name!r} is larger than {MAX_MEDIA_BYTES // 2**20} MB.")
        said = type_said(media_type)
        found = whole_type(content, said)
        if not found:
            raise MediaRefused(f"The file {name!r} isn't one of {_KNOWN}.")
        if said and said != found:
            raise MediaRefused(f"The file {name!r} is said to be {said} but holds {found}.")
        encoded = base64.b64encode(content).decode("ascii")
        return cls(found, encoded, "", name, _tokens(content, found))

    @classmethod
    def from_url(cls, url: str, media_type: str, name: str = "") -> Media:
        """Name a file that the provider shall fetch.

        Args:
            url: https, with a host and without a password.
            media_type: what it is.
            name: file name to show the model.

        Raises:
            MediaRefused: for another kind of URL or type.
        """
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError:
            host, parts = None, urlsplit("")
        if parts.scheme != "https" or not host or parts.username or parts.password:
            raise MediaRefused("The URL of a file must begin with https:// and can't contain a password.")
        return cls(media_type, "", url, name, _PAGE_TOKENS if media_type == PDF else _IMAGE_TOKENS)

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` takes."""
        return {
            "media_type": self.media_type,
            "data": self.data,
            "url": self.url,
            "name": self.name,
            "tokens": self.tokens,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Media:
        """Rebuild what ``to_json`` wrote; raises MediaRefused for anything that could not have been."""
        if data.get("url"):
            return cls.from_url(data["url"], data["media_type"], data.get("name", ""))
        encoded = data.get("data", "")
        try:
            start = base64.b64decode(encoded[:64], validate=True)
        except (binascii.Error, ValueError):
            start = b""
        damaged = MediaRefused(f"The stored file {data.get('name', '')!r} is damaged.")
        if not is_start_of(data["media_type"], start):
            raise damaged
        tokens = int(data.get("tokens", _IMAGE_TOKENS))
        made = cls(data["media_type"], encoded, "", data.get("name", ""), tokens)
        try:
            _ = made.text
        except ValueError:
            raise damaged from None
        return made


def _tokens(content: bytes, media_type: str) -> int:
    kind = KINDS[media_type]
    if kind == "pdf":
        return _pages(content) * _PAGE_TOKENS
    if kind == "audio":
        return max(1, _seconds(content, media_type)) * _SECOND_TOKENS
    return _IMAGE_TOKENS if kind == "image" else len(content) // _TEXT_BYTES + 1


def _seconds(content: bytes, media_type: str) -> int:
    rate = _SECOND_BYTES.get(media_type, _OTHER_SECOND_BYTES)
    if media_type == "audio/wav":  # it says how many bytes a second has
        rate = int.from_bytes(content[28:32], "little") or rate
    return len(content) // rate


def _pages(content: bytes) -> int:
    # Newer files keep their page objects compressed, where they cannot be counted without reading the file.
    return max(1, len(_PAGE.findall(content)) or len(content) // _PAGE_BYTES)


def _encoded(size: int) -> int:
    return (size + 2) // 3 * 4

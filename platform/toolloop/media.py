"""Images and PDF files that go along with a message.

The bytes are kept as base64 text, the form in which JSON stores them and every provider takes them, so that a long
conversation does not encode the same picture before each model turn.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from toolloop.errors import MediaRefused

MAX_MEDIA_BYTES: Final = 50 * 1024 * 1024
"""Bytes of one file; the largest that any provider takes. Adapters refuse what is too large for theirs."""

# What an image costs at the resolution to which providers scale large ones down, and a PDF page as text and picture.
_IMAGE_TOKENS: Final = 1_600
_PAGE_TOKENS: Final = 2_000
_PAGE_BYTES: Final = 50_000
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PDF: Final = "application/pdf"
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class Media:
    """One image or PDF: bytes that we hold, or a URL that the provider fetches. Make it with one of the ``from_``.

    Attributes:
        media_type: ``image/png``, ``image/jpeg``, ``image/webp``, ``image/gif`` or ``application/pdf``.
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
        if self.media_type not in (*_IMAGES, _PDF):
            kinds = ", ".join((*_IMAGES, _PDF))
            raise MediaRefused(f"A file of type {self.media_type!r} cannot be sent; use {kinds}.")
        if bool(self.data) == bool(self.url):
            raise MediaRefused("A file needs either its bytes or a URL.")
        if len(self.data) > _encoded(MAX_MEDIA_BYTES):
            raise MediaRefused(
                f"The file {self.name!r} is larger than {MAX_MEDIA_BYTES // 2**20} MB."
            )

    @property
    def kind(self) -> Literal["image", "pdf"]:
        """Tell what it is."""
        return "pdf" if self.media_type == _PDF else "image"

    @property
    def data_url(self) -> str:
        """Return the bytes as a ``data:`` URL, or the URL itself."""
        return self.url or f"data:{self.media_type};base64,{self.data}"

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str = "", name: str = "") -> Media:
        """Take a file's bytes.

        Args:
            content: the whole file, at most ``MAX_MEDIA_BYTES``.
            media_type: what it is said to be; recognised from the bytes when "".
            name: file name to show the model.

        Raises:
            MediaRefused: for what is empty, too large, no supported type, or not what it is said to be.
        """
        if not content:
            raise MediaRefused(f"The file {name!r} is empty.")
        if len(content) > MAX_MEDIA_BYTES:
            raise MediaRefused(f"The file {name!r} is larger than {MAX_MEDIA_BYTES // 2**20} MB.")
        found = media_type_of(content)
        said = media_type.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")
        if not found:
            kinds = ", ".join((*_IMAGES, _PDF))
            raise MediaRefused(f"The file {name!r} is none of {kinds}.")
        if said and said != found:
            raise MediaRefused(f"The file {name!r} is said to be {said} but holds {found}.")
        tokens = _pages(content) * _PAGE_TOKENS if found == _PDF else _IMAGE_TOKENS
        return cls(found, base64.b64encode(content).decode("ascii"), "", name, tokens)

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
            raise MediaRefused("The URL of a file must begin with https:// and hold no password.")
        return cls(media_type, "", url, name, _PAGE_TOKENS if media_type == _PDF else _IMAGE_TOKENS)

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
        if media_type_of(start) != data["media_type"]:
            raise MediaRefused(f"The stored file {data.get('name', '')!r} is damaged.")
        tokens = int(data.get("tokens", _IMAGE_TOKENS))
        return cls(data["media_type"], encoded, "", data.get("name", ""), tokens)


def media_type_of(content: bytes) -> str:
    """Return the media type that a file's first bytes show, "" for none that can be sent."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return _PDF if content.startswith(b"%PDF-") else ""


def _pages(content: bytes) -> int:
    # Newer files keep their page objects compressed, where they cannot be counted without reading the file.
    return max(1, len(_PAGE.findall(content)) or len(content) // _PAGE_BYTES)


def _encoded(size: int) -> int:
    return (size + 2) // 3 * 4

"""The pages of the guide, docs/guide, rendered for /help/.

They are our own text, but it is rendered and cleaned as an answer's is (``basics.markdown``). Unlike an answer's, the links lead to
other pages here, the pictures are ours, and a dollar sign is one.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from markdown_it.token import Token

from basics.markdown.render import Renderer, Use

INDEX = "README"
SMALL = 720
"""Pixels: width of the pictures for windows with one pixel a point. A guide page with a whole one was over 150 KB."""
_FOLDER = Path(settings.ROOT) / "docs" / "guide"
_PICTURES = Path(settings.ROOT) / "docs" / "screenshots"
_KINDS = {".png": "image/png", ".webp": "image/webp"}
_RENDERER = Renderer(Use(pictures=True))


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of the guide.

    Attributes:
        title: its heading.
        html: the whole of it, the heading as well, clean.
    """

    title: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the guide.

    Attributes:
        body: the file, a PNG of the whole size or a WebP ``SMALL`` pixels wide.
        media_type: which of them it is.
        digest: the hash that its address ends with.
    """

    body: bytes
    media_type: str
    digest: str


@cache
def guide_names() -> Mapping[str, Path]:
    """Return the file of each page by its name: whatever else an address names has no page."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.md"))}


@cache
def picture_names() -> Mapping[str, Path]:
    """Return the file of each picture by its name."""
    return {path.name: path for kind in _KINDS for path in sorted(_PICTURES.glob(f"*{kind}"))}


def guide_page(name: str) -> GuidePage:
    """Return a page of the guide, rendered once a process and language; KeyError for a name that isn't in ``guide_names``.

    Args:
        name: the stem of its file; ``INDEX`` is the list of pages.
    """
    return _guide_page(name, get_language())


@cache
def _guide_page(name: str, language: str | None) -> GuidePage:
    """Render a page; its buttons speak the language that is active."""
    tokens = _RENDERER.parse(guide_names()[name].read_text(encoding="utf-8"))
    for token in tokens:
        for child in token.children or []:
            _readdress(child)
    title = next(token.content for token in tokens if token.type == "inline")
    return GuidePage(title, mark_safe(_RENDERER.render(tokens)))  # noqa: S308 - cleaned


@cache
def guide_picture(name: str) -> Picture:
    """Return a picture; KeyError for a name that isn't in ``picture_names``."""
    path = picture_names()[name]
    body = path.read_bytes()
    return Picture(body, _KINDS[path.suffix], hashlib.sha256(body).hexdigest()[:12])


def _readdress(token: Token) -> None:
    """Let a link to a file of the guide lead to its page, and a picture come from here with its size."""
    if token.type == "link_open":
        stem, dot, _ = str(token.attrGet("href")).partition(".md")
        if dot and stem in guide_names():
            token.attrSet(
                "href", reverse("web:help") if stem == INDEX else reverse("web:help-page", args=[stem])
            )
    elif token.type == "image":
        name = str(token.attrGet("src")).rpartition("/")[2]
        width, height = struct.unpack(">II", guide_picture(name).body[16:24])  # where every PNG has its size
        small = _address(f"{Path(name).stem}.webp")
        token.attrSet("src", _address(name))
        token.attrSet("srcset", f"{small} {SMALL}w, {_address(name)} {width}w")
        token.attrSet("sizes", "(max-width: 45rem) 100vw, 42rem")
        token.attrSet("width", str(width))
        token.attrSet("height", str(height))
        token.attrSet("loading", "lazy")


def _address(picture: str) -> str:
    return f"{reverse('web:help-picture', args=[picture])}?v={guide_picture(picture).digest}"

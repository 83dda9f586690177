"""Which pages of a PDF hold text that only their picture shows: scans, and pages whose text layer is garbage."""

from __future__ import annotations

import re
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

_MUCH_TEXT = 3000  # letters; such a page says in text what it has to say
_LITTLE_TEXT = 200
_WHOLE, _PART = 0.35, 0.2  # of the page that pictures cover; half a page without its margins is .4
_SPECK = 0.004
_LETTERS_IN_PICTURE = 12
_GARBLED = 0.3
_OBJECTS = 4000
_WORDS = re.compile(r"[^\W_]+")
_MEANINGLESS = re.compile("[\ufffd\ue000-\uf8ff]")


def is_scanned(page: Any, textpage: Any, text: str) -> bool:
    """Tell whether a page's picture must be read.

    Args:
        page, textpage: PDFium's.
        text: the page's cleaned text.
    """
    letters = _letters(text)
    if letters >= _MUCH_TEXT:
        return is_garbled(text)
    if letters and is_garbled(text):
        return True
    if not letters:
        return int(pdfium_c.FPDFPage_CountObjects(page.raw)) > 0
    covered = _picture_share(page, textpage)
    return covered >= _WHOLE or (covered >= _PART and letters < _LITTLE_TEXT)


def is_garbled(text: str) -> bool:
    """Tell whether a text layer says nothing: its font does not tell which letters its shapes are."""
    bad = len(_MEANINGLESS.findall(text))
    return bad > 0 and bad > sum(map(len, text.split())) * _GARBLED


def _letters(text: str) -> int:
    """Count letters and digits."""
    return sum(map(len, _WORDS.findall(text)))


def _picture_share(page: Any, textpage: Any) -> float:
    """Return the part of the page under pictures in which no letters of the text layer stand."""
    # Of the page as its objects count, before it is rotated for show.
    page_left, page_bottom, page_right, page_top = page.get_bbox()
    size = (page_right - page_left) * (page_top - page_bottom)
    if size <= 0:
        return 0.0
    share = 0.0
    found = page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=1)
    for count, picture in enumerate(found):
        if count > _OBJECTS:
            break
        try:
            left, bottom, right, top = picture.get_bounds()
        except pypdfium2.PdfiumError:
            continue  # without a place it covers nothing
        left, right = max(page_left, left), min(page_right, right)
        bottom, top = max(page_bottom, bottom), min(page_top, top)
        area = max(0.0, right - left) * max(0.0, top - bottom) / size
        if area < _SPECK:
            continue
        inside = textpage.get_text_bounded(left, bottom, right, top, errors="ignore")
        if _letters(inside) < _LETTERS_IN_PICTURE * max(1.0, area * 10):
            share += area
    return min(share, 1.0)

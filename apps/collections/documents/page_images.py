"""What the viewer shows of a page: its image, kept on disk, and where a passage stands on it."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

from apps.collections.ingestion.media_types import IMAGES, PDF
from apps.collections.ingestion.ocr.types import ScanWord, scan_from_json
from apps.collections.ingestion.page_images import Rect, page_text_boxes, render_page_image
from apps.collections.ingestion.types import ReadFailure
from apps.collections.models import Document, Page
from apps.collections.storage.originals import cache_write, page_cache
from blobs.leases import lease

SCALE = 2.0
FORMAT_VERSION = 2  # raise it when images or boxes change, so that kept ones are made anew


def has_images(document: Document) -> bool:
    """Tell whether pages of this document can be drawn."""
    return document.is_paged and (document.media_type == PDF or document.media_type in IMAGES)


def page_image(document: Document, number: int) -> Path:
    """Return the image of a page as a WebP file, drawn at its first use in the limited child process.

    Raises:
        ReadFailure: the page cannot be drawn.
        DomainError: ``file_missing``.
    """
    target = _cached(document, f"{number}.v{FORMAT_VERSION}.webp")
    if not target.is_file():
        with lease(document.file) as path:
            image = render_page_image(path, number, SCALE, media_type=document.media_type)
        cache_write(target, image.data)
    return target


def passage_stretches(page: Page, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of a passage that stand on a page, its running header and footer left out.

    Args:
        start: where the passage begins in the document's text.
        end: just past its end.

    Returns:
        Offsets into the page's text, in order.
    """
    at, high = max(0, start - page.char_start), min(len(page.text), end - page.char_start)
    found: list[tuple[int, int]] = []
    if high <= at:
        return found
    for kind, low, over, *_ in page.layout.get("regions", ()):
        if kind == "furniture" and low < high and at < over:
            found.append((at, low))
            at = over
    found.append((at, high))
    return [(a, b) for a, b in found if page.text[a:b].strip()]


def passage_boxes(document: Document, page: Page, start: int, end: int) -> list[Rect]:
    """Return where a passage stands on a page's image, a rectangle per line; empty where it cannot be told.

    Args:
        start: where the passage begins in the document's text.
        end: just past its end.
    """
    return [
        box
        for low, high in passage_stretches(page, start, end)
        for box in _stretch_boxes(document, page, low, high)
    ]


def _stretch_boxes(document: Document, page: Page, start: int, end: int) -> list[Rect]:
    if scan := page.layout.get("scan"):
        read = scan_from_json(scan)
        marks = _word_marks([w for w in read.words if w.char_start < end and start < w.char_end])
        end = min(end, read.layer_chars)
        return [*_text_boxes(document, page, start, end), *marks] if start < end else marks
    return _text_boxes(document, page, start, end)


def _text_boxes(document: Document, page: Page, start: int, end: int) -> list[Rect]:
    """Find a stretch of a PDF page's own text; kept for the next viewer."""
    if document.media_type != PDF:
        return []
    target = _cached(document, f"{page.number}.{start}-{end}.v{FORMAT_VERSION}.json")
    if target.is_file():
        return [Rect(*box) for box in json.loads(target.read_text())]
    try:
        with lease(document.file) as path:
            boxes = page_text_boxes(path, page.number, start, end)
    except ReadFailure:
        return []  # the page is shown without marks; its text beside it has them
    cache_write(target, json.dumps([astuple(box) for box in boxes]).encode())
    return boxes


def _word_marks(words: list[ScanWord]) -> list[Rect]:
    """Join the boxes of recognised words that follow each other on one line."""
    marks: list[Rect] = []
    for word in words:
        if marks:
            last = marks[-1]
            bottom = min(last.top + last.height, word.top + word.height)
            shared = bottom - max(last.top, word.top)
            gap = word.left - (last.left + last.width)
            least = min(last.height, word.height)
            if shared > least * 0.5 and -0.01 <= gap <= 2 * max(last.height, word.height):
                left, top = min(last.left, word.left), min(last.top, word.top)
                right = max(last.left + last.width, word.left + word.width)
                low = max(last.top + last.height, word.top + word.height)
                marks[-1] = Rect(left, top, right - left, low - top)
                continue
        marks.append(Rect(word.left, word.top, word.width, word.height))
    return marks


def _cached(document: Document, name: str) -> Path:
    return page_cache(document.tenant_id, document.sha256) / name

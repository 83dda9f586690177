"""A PDF page as an image, and where a passage stands on it; both computed in the limited child."""

from __future__ import annotations

import ctypes
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from apps.collections.ingestion.media_types import IMAGES, PDF
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.texts import gettext as _

PAGE_LIMITS = ReaderLimits(wall_seconds=30.0, cpu_seconds=20, memory_bytes=512 * 1024 * 1024)
MIN_SCALE, MAX_SCALE = 0.25, 4.0
MAX_PIXELS = 16_000_000
_LINE_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class PageImage:
    """A drawn page.

    Attributes:
        data: the encoded image.
        media_type: ``image/webp`` or ``image/png``.
        width: in pixels.
        height: in pixels.
    """

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle as fractions of the drawn page, origin at the top left."""

    left: float
    top: float
    width: float
    height: float


def render_page_image(
    path: Path,
    page_number: int,
    scale: float = 2.0,
    *,
    media_type: str = PDF,
    image_format: Literal["webp", "png"] = "webp",
    limits: ReaderLimits = PAGE_LIMITS,
) -> PageImage:
    """Draw a page of a PDF or of an image file.

    Args:
        path: the file.
        page_number: from 1.
        scale: pixels per point (1.0 is 72 dpi), from 0.25 to 4; lowered for pages that would pass 16 megapixels.
        media_type: of the file.
        image_format: of the result.
        limits: of the child process.

    Raises:
        ReadFailure: the file or the page cannot be drawn.
    """
    request = {
        "action": "render",
        "path": str(path.resolve()),
        "media_type": media_type,
        "page_number": page_number,
        "scale": min(max(scale, MIN_SCALE), MAX_SCALE),
        "image_format": image_format,
    }
    for header, blob in run_child(request, limits):
        size = header["result"]
        return PageImage(blob, f"image/{image_format}", int(size["width"]), int(size["height"]))
    raise ReadFailure(FailureCode.CRASHED, _("The page could not be drawn. Try again."))


def page_text_boxes(
    path: Path, page_number: int, char_start: int, char_end: int, *, limits: ReaderLimits = PAGE_LIMITS
) -> list[Rect]:
    """Find where a passage stands on its page, one rectangle per line.

    Args:
        path: the PDF.
        page_number: from 1.
        char_start: offset into the page's stored text (``PageText.text``).
        char_end: just past the last character; beyond the page's text it is cut.
        limits: of the child process.

    Raises:
        ReadFailure: the file or the page cannot be read.
    """
    request = {
        "action": "boxes",
        "path": str(path.resolve()),
        "page_number": page_number,
        "char_start": char_start,
        "char_end": char_end,
    }
    for header, _blob in run_child(request, limits):
        return [Rect(*box) for box in header["result"]["boxes"]]
    raise ReadFailure(FailureCode.CRASHED, _("The passage could not be found on the page. Try again."))


def draw_page(
    path: Path, media_type: str, page_number: int, scale: float, image_format: str
) -> tuple[bytes, tuple[int, int]]:
    """Draw a page in this process (the child's part of ``render_page_image``)."""
    if media_type in IMAGES:
        from apps.collections.ingestion.ocr.pictures import picture_frame, picture_open

        with picture_open(path, media_type) as picture:
            image = picture_frame(picture, page_number)
    else:
        document, page = open_page(path, page_number)
        width, height = page.get_size()
        pixels = width * height * scale * scale
        if pixels > MAX_PIXELS:
            scale *= (MAX_PIXELS / pixels) ** 0.5
        image = page.render(scale=scale).to_pil().convert("RGB")
        document.close()
    buffer = BytesIO()
    if image_format == "png":
        image.save(buffer, "PNG", optimize=False, compress_level=6)
    else:
        image.save(buffer, "WEBP", quality=80, method=2)
    return buffer.getvalue(), (image.width, image.height)


def find_boxes(path: Path, page_number: int, char_start: int, char_end: int) -> list[list[float]]:
    """Find a passage's lines in this process (the child's part of ``page_text_boxes``).

    Returns:
        ``[left, top, width, height]`` per line, as fractions of the page.
    """
    import pypdfium2.raw as pdfium_c

    from apps.collections.ingestion.readers.pdf import clean_textpage, raw_page_text
    from apps.collections.ingestion.readers.pdf_fields import page_written

    document, page = open_page(path, page_number)
    textpage = page.get_textpage()
    raw = raw_page_text(textpage)
    clean = clean_textpage(textpage, raw)
    units = _utf16_units(raw)
    rects: list[tuple[float, float, float, float]] = []
    rect = pdfium_c.FS_RECTF()
    for offset in range(max(0, char_start), min(char_end, len(clean.text))):
        if clean.text[offset].isspace():
            continue
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage.raw, units(clean.raw_offset(offset)))
        if index < 0 or not pdfium_c.FPDFText_GetLooseCharBox(textpage.raw, index, rect):
            continue
        corners = to_view(pdfium_c, page, rect)
        if corners is not None:
            rects.append(corners)
    position = len(clean.text)
    for one in page_written(document, page):  # as the reader puts them behind the page's text
        begin, position = position + 1, position + 1 + len(one.text)
        if begin < char_end and char_start < position:
            rect.left, rect.bottom, rect.right, rect.top = one.rect
            corners = to_view(pdfium_c, page, rect)
            if corners is not None:
                rects.append(corners)
    document.close()
    return [
        [round(v, 5) for v in (left, top, right - left, bottom - top)]
        for left, top, right, bottom in _merge(rects, is_turned=_is_turned(clean.text[char_start:char_end]))
    ]


_VIEW = 100_000  # page coordinates are asked for on a grid this fine; the answer is divided by it


def to_view(pdfium_c: Any, page: Any, rect: Any) -> tuple[float, float, float, float] | None:
    """Map a box of page space to fractions of the page as drawn: crop box, rotation and a flipped axis included."""
    x, y = ctypes.c_int(), ctypes.c_int()
    points = []
    for px, py in ((rect.left, rect.top), (rect.right, rect.bottom)):
        if not pdfium_c.FPDF_PageToDevice(page.raw, 0, 0, _VIEW, _VIEW, 0, px, py, x, y):
            return None
        points.append((x.value / _VIEW, y.value / _VIEW))
    (x1, y1), (x2, y2) = points
    left, right = sorted((min(max(x1, 0.0), 1.0), min(max(x2, 0.0), 1.0)))
    top, bottom = sorted((min(max(y1, 0.0), 1.0), min(max(y2, 0.0), 1.0)))
    return (left, top, right, bottom) if right > left and bottom > top else None


def _is_turned(text: str) -> bool:
    """Tell whether a text has letters that run from right to left."""
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def _merge(
    rects: list[tuple[float, float, float, float]], *, is_turned: bool
) -> list[tuple[float, float, float, float]]:
    """Join character boxes that stand on one line and follow each other.

    Args:
        is_turned: they may also follow each other to the left, and figures in between to the right.
    """
    lines: list[tuple[float, float, float, float]] = []
    for left, top, right, bottom in rects:
        if lines:
            l0, t0, r0, b0 = lines[-1]
            shared = min(b0, bottom) - max(t0, top)
            height = min(b0 - t0, bottom - top)
            # A jump back to the left or far to the right is a new line or another column.
            near = 3 * height + 0.02
            follows = -0.01 <= left - r0 <= near
            if is_turned and not follows:
                is_inside = left >= l0 - 0.01 and right <= r0 + 0.01
                # A figure begins on its far side: its width lies between.
                follows = is_inside or -0.01 <= l0 - right <= near
            if shared > height * _LINE_OVERLAP and follows:
                lines[-1] = (min(l0, left), min(t0, top), max(r0, right), max(b0, bottom))
                continue
        lines.append((left, top, right, bottom))
    return lines


def open_page(path: Path, page_number: int) -> tuple[Any, Any]:
    """Open a page of a PDF; the document is the caller's to close. Raises ReadFailure."""
    import pypdfium2

    from apps.collections.ingestion.readers.pdf import open_pdf

    document = open_pdf(path)
    if not 1 <= page_number <= len(document):
        count = len(document)
        document.close()
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("Page %(page_number)s does not exist; the PDF has %(count)s.")
            % {"page_number": page_number, "count": count},
        )
    try:
        return document, document[page_number - 1]
    except pypdfium2.PdfiumError as error:
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("Page %(page_number)s of the PDF is damaged and cannot be shown.")
            % {"page_number": page_number},
        ) from error


def _utf16_units(raw: str) -> Callable[[int], int]:
    """Give a function from an offset in characters to one in UTF-16 units, which PDFium counts in."""
    wide = [i for i, ch in enumerate(raw) if ch > "\uffff"]
    if not wide:
        return lambda offset: offset
    return lambda offset: offset + bisect_left(wide, offset)

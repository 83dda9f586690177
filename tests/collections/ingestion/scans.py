"""Makes pictures of pages, and documents that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import reportlab
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

_FONTS = Path(reportlab.__file__).parent / "fonts"
SIDE, LETTERS = 736, 30
"""Pixels of a picture's sides and of its letters' height.

The detector of lines looks at every pixel, for seconds of processor time, and enlarges what is smaller or slimmer than this
square, a strip as wide as a page to four times as many pixels.
"""
PAGE = (265.0, 265.0)  # as many pixels where pages of PDFs are drawn
LINES = (
    "Annual report of the harbour office",
    "Invoice INV-20417 was paid on 2024-03-18.",
    "Pumps of heading 8413.70.20 pay no duty.",
    "Ledger number 7719-0042, 31 crates received.",
)


def page_picture(
    lines: tuple[str, ...] = LINES,
    *,
    size: tuple[int, int] = (SIDE, SIDE),
    letters: int = LETTERS,
    font: str = "",
) -> Image.Image:
    """Draw lines of text, black on white; ``font`` is one of those that come with reportlab, for more than ASCII."""
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    drawn = ImageFont.truetype(_FONTS / font, letters) if font else ImageFont.load_default(letters)
    for place, line in enumerate(lines):
        draw.text(line_start(place, letters), line, fill="black", font=drawn)
    return picture


def line_start(place: int, letters: int = LETTERS) -> tuple[int, int]:
    """Return the left top corner of a line of ``page_picture``, in pixels; ``place`` counts from 0."""
    return letters * 30 // 17, letters * 20 // 17 + place * letters * 2


def picture_bytes(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """Pack a picture."""
    buffer = BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def scan_pdf(path: Path, pages: Sequence[Image.Image | str | None]) -> Path:
    """Write a PDF of small pages (they are read faster): a picture over all its width, a line of text, or nothing."""
    canvas = Canvas(str(path), pagesize=PAGE)
    width, height = PAGE
    for page in pages:
        if isinstance(page, str):
            canvas.setFont("Helvetica", 6)
            canvas.drawString(20, 100, page)
        elif page is not None:
            tall = width * page.height / page.width
            canvas.drawImage(ImageReader(page), 0, height - tall, width, tall)
        canvas.showPage()
    canvas.save()
    return path

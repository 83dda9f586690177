"""Images: pages without text of their own, which wait for text recognition (OCR)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.collections.ingestion.ocr.pictures import FORMATS, picture_count, picture_is_turned, picture_open
from apps.collections.ingestion.ocr.types import Scan
from apps.collections.ingestion.readers.base import Reading
from apps.collections.ingestion.types import PageText, ReaderLimits

PAGE_END = "\n\n"


class ImageReader:
    """Count the pages of an image file and unpack none of them: that is for who reads them."""

    media_types = tuple(FORMATS)

    def __init__(self, media_type: str) -> None:
        self._media_type = media_type

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``too_large``, ``too_many_pages``.
        """
        with picture_open(path, self._media_type) as picture:
            width, height = float(picture.width), float(picture.height)
            if picture_is_turned(picture):
                width, height = height, width
            count = picture_count(picture, self._media_type, limits.max_pages)

        def pages() -> Iterator[PageText]:
            for number in range(1, count + 1):
                yield PageText(number, PAGE_END, width, height, scan=Scan("wanted"))

        return Reading(count, pages(), is_paged=True)

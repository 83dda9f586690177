"""Open pictures that somebody uploaded: what they claim is checked before a pixel is unpacked."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from apps.collections.ingestion import media_types
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _
from basics.texts import gettext_noop, number_told

MAX_PIXELS = 80_000_000
"""Of one picture: an A3 page at 600 dpi has 70 million. A small file can claim far more and unpack to gigabytes."""
READ_PIXELS = 3_100_000
"""Of a page as it is read: Letter at 182 dpi. Larger ones are scaled down; that costs no recall and halves the time.

By area, not by the longer side: a receipt or a screenshot that is many times as long as wide keeps more of its letters.
"""
LONGEST_SIDE = 16_000
"""Pixels: the viewer's WebP has at most 16,383."""
_SMALL_SIDE = 700

FORMATS: dict[str, str] = {
    media_types.PNG: "PNG",
    media_types.JPEG: "JPEG",
    media_types.TIFF: "TIFF",
    media_types.WEBP: "WEBP",
    media_types.BMP: "BMP",
    media_types.GIF: "GIF",
    media_types.HEIC: "HEIF",
}
_HEIF_LIBRARIES = ("pi_heif", "pillow_heif")
_DAMAGED = gettext_noop(
    "The image is damaged or cut off and cannot be read. Save it again and upload the new file."
)
_ERRORS = (
    UnidentifiedImageError,
    Image.DecompressionBombError,
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    ZeroDivisionError,
    OverflowError,
)
"""What Pillow's decoders raise on damaged files; it has no error of its own that covers them."""


@contextmanager
def picture_open(path: Path, media_type: str) -> Iterator[Image.Image]:
    """Open an image file by what its bytes were found to be.

    Raises:
        ReadFailure: ``corrupt_file``, ``too_large``, or ``unsupported_type`` for HEIC where no library reads it.
    """
    # Our own check below comes first and says how many pixels there are.
    Image.MAX_IMAGE_PIXELS = None
    if media_type == media_types.HEIC:
        _heif_register()
    try:
        picture = Image.open(path, formats=[FORMATS[media_type]])
    except _ERRORS as error:
        raise ReadFailure(FailureCode.CORRUPT_FILE, _(_DAMAGED)) from error
    with picture:
        size_check(picture.width, picture.height)
        yield picture


def picture_count(picture: Image.Image, media_type: str, most: int) -> int:
    """Count the pages of an image file: a TIFF may have many; of an animation the first picture is read.

    Raises:
        ReadFailure: ``too_many_pages``, ``too_large`` or ``corrupt_file``.
    """
    if media_type != media_types.TIFF:
        return 1
    count = 0
    try:
        for frame in ImageSequence.Iterator(picture):
            count += 1
            if count > most:
                raise ReadFailure(
                    FailureCode.TOO_MANY_PAGES,
                    _("The image has more than %(most)s pages, which is the limit. Split it.")
                    % {"most": number_told(most)},
                    data={"max_pages": most},
                )
            size_check(frame.width, frame.height)
    except _ERRORS as error:
        if count == 0:
            raise ReadFailure(FailureCode.CORRUPT_FILE, _(_DAMAGED)) from error
    return max(1, count)


def picture_is_turned(picture: Image.Image) -> bool:
    """Tell whether its camera notes that it lies on its side; a damaged note says nothing."""
    try:
        return picture.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # Exif 2.3, 4.6.4: Orientation
    except _ERRORS:
        return False


def picture_frame(picture: Image.Image, number: int, *, pixels: int = READ_PIXELS) -> Image.Image:
    """Unpack one page of an image file, upright as its camera noted, on white, with at most ``pixels`` pixels.

    Raises:
        ReadFailure: ``corrupt_file``.
    """
    try:
        if number > 1:
            picture.seek(number - 1)
        picture.draft("RGB", _scaled(picture.size, pixels))
        shown = ImageOps.exif_transpose(picture) or picture
        size = _scaled(shown.size, pixels)  # a JPEG may have been unpacked smaller
        if size != shown.size:
            shown.thumbnail(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
        return _on_white(shown)
    except _ERRORS as error:
        raise ReadFailure(FailureCode.CORRUPT_FILE, _(_DAMAGED)) from error


def read_scale(width: float, height: float, pixels: int = READ_PIXELS) -> float:
    """Return what a picture's sides are multiplied by so that it has at most so many pixels; 1 where it has no more."""
    longest = LONGEST_SIDE / max(width, height, 1.0)
    return min(1.0, longest, math.sqrt(pixels / max(width * height, 1.0)))


def _scaled(size: tuple[int, int], pixels: int) -> tuple[int, int]:
    scale = read_scale(*size, pixels)
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))


def picture_array(picture: Image.Image) -> Any:
    """Return a picture as the engines take it: blue, green, red; a small one enlarged."""
    import numpy as np

    if max(picture.size) < _SMALL_SIDE:
        picture = picture.resize((picture.width * 2, picture.height * 2), Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])


def size_check(width: int, height: int) -> None:
    """Refuse a picture that would not fit in memory. Raises ReadFailure ``too_large`` or ``corrupt_file``."""
    if width < 1 or height < 1:
        raise ReadFailure(FailureCode.CORRUPT_FILE, _(_DAMAGED))
    if width * height > MAX_PIXELS or max(width, height) > 60_000:
        raise ReadFailure(
            FailureCode.TOO_LARGE,
            _(
                "The image has %(width)s × %(height)s pixels; at most %(max_pixels)s million can be "
                "read. Scale it down or cut it into pages."
            )
            % {
                "width": number_told(width),
                "height": number_told(height),
                "max_pixels": MAX_PIXELS // 1000000,
            },
            data={"width": width, "height": height, "max_pixels": MAX_PIXELS},
        )


def _on_white(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        low, high = (float(v) for v in picture.convert("F").getextrema())  # type: ignore[arg-type]
        scale = 255.0 / (high - low) if high > low else 1.0
        return picture.convert("F").point(lambda v: v * scale - low * scale).convert("L").convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        ground = Image.new("RGB", layer.size, "white")
        ground.paste(layer, mask=layer.getchannel("A"))
        return ground
    return picture.convert("RGB")


def _heif_register() -> None:
    for name in _HEIF_LIBRARIES:
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        library.register_heif_opener()
        return
    raise ReadFailure(
        FailureCode.UNSUPPORTED_TYPE,
        _(
            "This is a HEIC image, which this server can't read. Save it as JPEG or PNG and upload that; an "
            "iPhone takes JPEG photos if Settings, Camera, Formats is set to “Most "
            "Compatible”."
        ),
        data={"kind": "HEIC image"},
    )

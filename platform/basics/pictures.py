"""Pictures from outside, written anew from their pixels: what is passed on is never the file that came."""

from __future__ import annotations

import io
import struct
import warnings
from dataclasses import dataclass
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

MAX_BYTES: Final = 20_000_000
MAX_PIXELS: Final = 40_000_000
"""A small file can claim far more, and unpack to gigabytes; this many take 160 MB."""
MAX_PIXELS_TOGETHER: Final = 100_000_000
"""Of the pictures of one result: as many take up to three seconds of a processor."""
MAX_SIDE: Final = 65_535
"""A picture of one column has a pointer for each pixel, which takes more than the pixel does."""
MAX_SCANS: Final = 500
"""Of a JPEG, which may go over all its pixels again with every 45 bytes; photographs do so about ten times."""
LONGEST_SIDE: Final = 2_000
"""Pixels of a picture that is passed on; models see no more of it, and a screen shows no more."""
_LARGEST = 2_500_000  # bytes of a PNG; a larger one is a photograph, which JPEG holds in a tenth
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_QUALITY = 88
_SCAN = b"\xff\xda"
_ERRORS = (
    UnidentifiedImageError,
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    ZeroDivisionError,
    OverflowError,
    struct.error,
)
"""What Pillow's decoders raise on damaged files; it has no error of its own that covers them."""


class PictureRefused(ValueError):
    """A file that isn't shown as a picture; the message says why."""


@dataclass(frozen=True, slots=True)
class CleanPicture:
    """A picture that is safe to show: PNG or JPEG, without anything that the pixels don't need."""

    content: bytes
    media_type: str
    width: int
    height: int


@dataclass(slots=True)
class PixelBudget:
    """How many pixels may still be unpacked of pictures that come together, whatever becomes of them."""

    left: int = MAX_PIXELS_TOGETHER

    def take(self, pixels: int) -> None:
        """Take those of one picture off. Raises PictureRefused."""
        if pixels > self.left:
            raise PictureRefused(
                f"It and those before it have more than {MAX_PIXELS_TOGETHER // 1_000_000} million pixels together."
            )
        self.left -= pixels


def picture_clean(content: bytes, budget: PixelBudget | None = None) -> CleanPicture:
    """Return a PNG, JPEG, GIF or WebP written anew: upright, the first picture of an animation, at most ``LONGEST_SIDE``.

    What it is told by its bytes. SVG is refused: it is a program.

    Args:
        budget: of it and those that came with it; None for one that is alone.

    Raises:
        PictureRefused: for anything else, what is damaged, and what would unpack to too much.
    """
    if len(content) > MAX_BYTES:
        raise PictureRefused(f"It has more than {MAX_BYTES // 1_000_000} MB.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            picture = Image.open(io.BytesIO(content), formats=_FORMATS)
        with picture:
            if picture.width * picture.height > MAX_PIXELS or max(picture.size) > MAX_SIDE:
                raise Image.DecompressionBombError
            if picture.format in ("JPEG", "MPO") and content.count(_SCAN) > MAX_SCANS:
                raise PictureRefused("It would take too long to unpack: it is written in too many passes.")
            if budget is not None:
                budget.take(picture.width * picture.height)
            is_drawn = picture.format in ("PNG", "GIF")
            return _written(picture, is_drawn=is_drawn)
    except PictureRefused:
        raise
    except Image.DecompressionBombError as error:
        raise PictureRefused(
            f"It has more than {MAX_PIXELS // 1_000_000} million pixels, or a side of more than {MAX_SIDE:,}."
        ) from error
    except UnidentifiedImageError as error:
        raise PictureRefused("It isn't a PNG, JPEG, GIF or WebP.") from error
    except _ERRORS as error:
        raise PictureRefused("It is damaged or cut off.") from error


def picture_matches(picture: CleanPicture) -> bool:
    """Tell whether bytes are what ``picture_clean`` would have said of them: a whole PNG or JPEG of that type and size."""
    wanted = {"image/png": "PNG", "image/jpeg": "JPEG"}.get(picture.media_type)
    if wanted is None or not 0 < max(picture.width, picture.height) <= LONGEST_SIDE:
        return False
    try:
        with Image.open(io.BytesIO(picture.content), formats=[wanted]) as found:
            if found.size != (picture.width, picture.height) or picture.content.count(_SCAN) > MAX_SCANS:
                return False
            found.load()
    except (*_ERRORS, Image.DecompressionBombError):
        return False
    return True


def _written(picture: Image.Image, *, is_drawn: bool) -> CleanPicture:
    picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
    has_alpha = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
    mode = "RGBA" if has_alpha else "RGB"
    shown = picture if picture.mode == mode else picture.convert(mode)  # each copy of all pixels is 160 MB
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    shown = ImageOps.exif_transpose(shown)
    shown.info = {}
    out = io.BytesIO()
    media_type = "image/jpeg"
    if is_drawn or has_alpha:
        media_type = "image/png"
        shown.save(out, "PNG")
    if media_type == "image/jpeg" or out.tell() > _LARGEST:
        media_type, out = "image/jpeg", io.BytesIO()
        flat = Image.new("RGB", shown.size, "white")
        flat.paste(shown, mask=shown.getchannel("A") if has_alpha else None)
        flat.save(out, "JPEG", quality=_QUALITY)
    return CleanPicture(out.getvalue(), media_type, shown.width, shown.height)

"""Hostile pictures: each is refused in words, fast, and without unpacking more than a worker can hold."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from PIL import Image

from basics.pictures import MAX_SCANS, PictureRefused, PixelBudget, picture_clean


def saved(kind: str, size: tuple[int, int] = (60, 40), **more: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "teal").save(out, kind, **more)
    return out.getvalue()


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x112], exif[0x10F] = 6, "a camera"
    return exif


def many_passes() -> bytes:
    """A JPEG of which a few bytes more cost another pass over all its pixels."""
    whole = saved("JPEG", progressive=True)[:-2]
    last = min(whole.split(b"\xff\xda")[1:], key=len)
    return whole + (b"\xff\xda" + last) * MAX_SCANS + b"\xff\xd9"


def broken_exif() -> bytes:
    """Turned by its EXIF, in which what should be a width is text: writing it again fails."""
    content = saved("JPEG", exif=turned())
    at = content.index(b"\x01\x0f\x00\x02", content.index(b"Exif"))
    return content[:at] + b"\x01\x00" + content[at + 2 :]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: saved("PNG", (1, 70_000)), "a side"),
        (lambda: saved("PNG", (7_000, 6_000)), "million pixels"),
        (many_passes, "too many passes"),
        (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "isn't a PNG"),
        (lambda: saved("BMP"), "isn't a PNG"),
        (lambda: saved("PNG")[:60], "damaged"),
    ],
)
def test_what_a_worker_should_not_unpack_is_refused_in_words(made: Callable[[], bytes], said: str) -> None:
    with pytest.raises(PictureRefused, match=said):
        picture_clean(made())


def test_a_damaged_exif_is_refused_and_a_good_one_turns_the_picture_and_is_gone() -> None:
    with pytest.raises(PictureRefused, match="damaged"):
        picture_clean(broken_exif())
    clean = picture_clean(saved("JPEG", exif=turned()))
    assert (clean.width, clean.height) == (40, 60)
    assert b"a camera" not in clean.content
    assert not Image.open(io.BytesIO(clean.content)).getexif()


def test_pictures_that_come_together_share_what_may_be_unpacked() -> None:
    """Damaged ones count: they were unpacked up to where they end."""
    budget = PixelBudget(left=3 * 60 * 40)
    picture_clean(saved("PNG"), budget)
    with pytest.raises(PictureRefused, match="damaged"):
        picture_clean(saved("PNG")[:60], budget)
    picture_clean(saved("GIF", save_all=True, append_images=[Image.new("RGB", (60, 40), "red")] * 9), budget)
    with pytest.raises(PictureRefused, match="together"):
        picture_clean(saved("PNG", (1, 1)), budget)
    picture_clean(saved("PNG"))

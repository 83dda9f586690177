"""Text recognition: spaces between words, reading order, turned pages, and pictures made to do harm."""

from __future__ import annotations

import io
import itertools
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter, ImageOps

from apps.collections.ingestion import child, detect, media_types
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.ocr.layout import page_text
from apps.collections.ingestion.ocr.legible import MOST, legible
from apps.collections.ingestion.ocr.lines import LineWord, OcrLine, Recognised, box_of
from apps.collections.ingestion.ocr.pages import page_recognise
from apps.collections.ingestion.ocr.pictures import picture_array
from apps.collections.ingestion.ocr.rapid import RapidEngine
from apps.collections.ingestion.ocr.tesseract import TesseractEngine, tesseract_languages
from apps.collections.ingestion.readers.registry import reader_for
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import ReaderLimits, ReadFailure
from config.settings import base
from tests.collections.ingestion.scans import LINES, SIDE, page_picture, picture_bytes
from tests.walked import each

LIMITS = ReaderLimits(wall_seconds=600, cpu_seconds=60, memory_bytes=1536 * 1024 * 1024)


@pytest.fixture(scope="module")
def engine() -> RapidEngine:
    return RapidEngine()


def read(engine: RapidEngine, tmp_path: Path, picture: Image.Image, kind: str = "PNG") -> list[str]:
    path = tmp_path / "picture"
    path.write_bytes(picture_bytes(picture, kind))
    media_type = detect.detect(path, "picture", max_bytes=10**8).media_type
    text, scan = page_recognise(path, media_type, 1, engine)
    assert scan.state == "read", scan.problem
    for word in scan.words:
        assert " " not in text[word.char_start : word.char_end]
        assert 0 <= word.left <= word.left + word.width <= 1.0001
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_pages_on_their_side_and_upside_down(engine: RapidEngine, tmp_path: Path, turned: int) -> None:
    picture = page_picture(LINES[1:3]).rotate(turned, expand=True)
    assert read(engine, tmp_path, picture, "JPEG") == list(LINES[1:3])


def test_skewed_noisy_page_is_read_word_for_word(engine: RapidEngine, tmp_path: Path) -> None:
    picture = page_picture(LINES[1:], size=(900, 280), letters=34).rotate(2.5, fillcolor="white")
    picture = picture.filter(ImageFilter.GaussianBlur(0.8)).convert("L")
    rng = random.Random(7)
    noisy = picture.point(lambda v: v)
    for _ in range(6000):
        noisy.putpixel((rng.randrange(900), rng.randrange(280)), rng.randrange(256))
    assert read(engine, tmp_path, noisy, "TIFF") == list(LINES[1:])


def line(text: str, left: float, top: float) -> OcrLine:
    right, bottom = left + 10 * len(text), top + 20
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    words = tuple(LineWord(word, corners) for word in text.split())
    return OcrLine(words, (" ",) * (len(words) - 1), 0.9, corners)


def test_columns_are_read_one_after_the_other_and_rows_of_tables_across() -> None:
    left = [line("prose of the left hand column", 50, 100 + 30 * n) for n in range(6)]
    right = [line("prose of the right hand column", 450, 100 + 30 * n) for n in range(6)]
    cells = [line(f"cell{r}{c}", 50 + 250 * c, 500 + 30 * r) for r in range(3) for c in range(3)]
    heading = line("A heading that runs over both of the columns of this page, as titles do", 50, 30)
    lines = [heading, *left, *right, *cells]
    random.Random(3).shuffle(lines)
    text, words = page_text(Recognised(tuple(lines), 0, 800, 700))
    rows = [row for row in text.splitlines() if row]
    assert rows[0].startswith("A heading")
    assert rows[1:7] == ["prose of the left hand column"] * 6
    assert rows[7:13] == ["prose of the right hand column"] * 6
    assert rows[13:] == ["cell00 cell01 cell02", "cell10 cell11 cell12", "cell20 cell21 cell22"]
    assert [text[w.char_start : w.char_end] for w in words] == text.split()


def test_words_that_lines_cut_are_whole_again_and_table_cells_are_not_joined() -> None:
    lines = [
        line("They went there for their recrea-", 50, 100),
        line("tion and saw the cold-", 50, 130),
        line("finished goods, finished when cold, of INV-", 50, 160),
        line("20417 with care", 50, 190),
        line("cell-", 50, 400),
        line("9.5", 300, 400),
        line("below", 50, 430),
        line("8.5", 300, 430),
    ]
    text, words = page_text(Recognised(tuple(lines), 0, 800, 700))
    assert text.splitlines()[:1] == [
        "They went there for their recreation and saw the cold-finished goods, finished when cold, of INV-20417 with care"
    ]
    assert text.splitlines()[-2:] == ["cell- 9.5", "below 8.5"]
    assert [text[w.char_start : w.char_end] for w in words][4:7] == ["their", "recrea", "tion"]


def column(x: float, tops: range, words: int, name: str) -> list[OcrLine]:
    return [line(" ".join(f"{name}{top}.{n}" for n in range(words)), x, top) for top in tops]


@pytest.mark.parametrize("count", [2, 3])
def test_headings_that_nearly_touch_leave_their_columns_apart(count: int) -> None:
    wanted: list[OcrLine] = [
        line("A title over all columns of the page that is much wider than one of them", 50, 20)
    ]
    for place in range(count):
        left = 50 + 400 * place
        body = column(left, range(120, 480, 30), 5, "abc"[place])
        reach = left + 398.0
        over = body[0].corners[0][1] - 40
        corners = ((left, over), (reach, over), (reach, over + 30), (left, over + 30))
        heading = OcrLine((LineWord(f"Heading{place}", corners),), (), 0.9, corners)
        end = line(f"end{place}", left, 480)
        wanted += [heading, *body, *([end] if place % 2 == 0 else [])]  # columns end at different heights
    shuffled = random.Random(count).sample(wanted, len(wanted))
    text, _ = page_text(Recognised(tuple(shuffled), 0, 1300, 700))
    assert text.split() == [word.text for one in wanted for word in one.words]


def png(width: int, height: int, data: bytes = b"") -> bytes:
    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")


def hostile() -> Iterator[tuple[str, bytes]]:
    good = page_picture((LINES[0],))
    whole = {kind: picture_bytes(good, kind) for kind in ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP")}
    for kind, data in whole.items():
        yield f"half-{kind}", data[: len(data) // 2]
        yield f"head-{kind}", data[:40]
        broken = bytearray(data)
        for place in range(60, len(broken), 7):
            broken[place] ^= 0x5A
        yield f"noise-{kind}", bytes(broken)
    yield "bomb", png(30_000, 30_000, zlib.compress(b"\0" * 1_000_000, 9))
    yield "endless", png(2**31 - 1, 2**31 - 1)
    yield "flat", png(2**31 - 1, 1)
    yield "nothing", png(0, 0)
    yield "empty-body", png(500, 500)
    yield "lies", png(2000, 2000, zlib.compress(b"\0" * 100))
    bmp = bytearray(whole["BMP"])
    bmp[18:26] = struct.pack("<ii", 100_000, 100_000)
    yield "bmp-bomb", bytes(bmp)
    tiff = (
        struct.pack("<2sHI", b"II", 42, 8)
        + struct.pack("<H", 1)
        + struct.pack("<HHII", 256, 4, 1, 9)
        + struct.pack("<I", 8)
    )
    yield "tiff-loop", tiff
    yield "heic-without-body", struct.pack(">I", 24) + b"ftypheic" + b"\0" * 40
    yield "webp-without-body", b"RIFF\x10\0\0\0WEBPVP8 \0\0\0\0"
    yield "tiny", picture_bytes(Image.new("RGB", (1, 1), "white"))
    yield "long", picture_bytes(Image.new("L", (3000, 2), 200))


HOSTILE = dict(hostile())


@each("name, data", HOSTILE.items())
def test_hostile_pictures_end_with_a_reason_or_with_text(
    engine: RapidEngine, tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    try:
        media_type = detect.detect(path, name, max_bytes=10**8).media_type
        assert media_type in media_types.IMAGES
        reader_for(media_type).read(path, LIMITS)
    except ReadFailure as failure:
        reason = failure.message
    else:
        _, scan = page_recognise(path, media_type, 1, engine)
        reason = "read" if scan.state == "read" else scan.problem
    assert reason


def odd_pictures() -> Iterator[tuple[str, bytes]]:
    """Yield pictures of one line, each another, in every way that files keep pixels."""
    numbers = itertools.count(1)

    def drawn(size: tuple[int, int] = (SIDE, 80)) -> Image.Image:
        return page_picture((f"{LINES[1][:-1]} {next(numbers)}",), size=size)

    yield "cmyk", picture_bytes(drawn().convert("CMYK"), "JPEG", quality=90)
    yield "16-bit", picture_bytes(drawn().convert("I").point(lambda v: v * 257).convert("I;16"))
    yield "1-bit", picture_bytes(drawn().convert("1", dither=Image.Dither.NONE), "TIFF")
    yield "fax", picture_bytes(drawn().convert("1", dither=Image.Dither.NONE), "TIFF", compression="group4")
    for name, colours in (("alpha", 0), ("palette-alpha", 8)):
        letters = ImageOps.invert(drawn().convert("L"))
        alpha = Image.new("RGBA", letters.size, (0, 0, 0, 0))
        alpha.paste((0, 0, 0, 255), mask=letters)
        yield name, picture_bytes(alpha.quantize(colours) if colours else alpha)
    yield "white-on-black", picture_bytes(ImageOps.invert(drawn()))
    plain = drawn()
    frames = [Image.new("RGB", plain.size, "white")]
    yield "animated", picture_bytes(plain, "GIF", save_all=True, append_images=frames)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "exif", picture_bytes(drawn().rotate(90, expand=True), "JPEG", exif=exif)


class Onlooker:
    """An engine that keeps the picture which it should read."""

    name, sure = "onlooker", 0.9

    def __init__(self) -> None:
        self.pictures: list[Any] = []

    def read(self, picture: Any) -> Recognised:
        self.pictures.append(picture)
        return Recognised((), 0, picture.shape[1], picture.shape[0])


def test_lines_are_read_however_their_pixels_are_kept(engine: RapidEngine, tmp_path: Path) -> None:
    """All on one page: what is told of each is its pixels, and the engine looks at a page as long as at a line."""
    seen = Onlooker()
    wanted = []
    for number, (name, data) in enumerate(odd_pictures(), start=1):
        path = tmp_path / name
        path.write_bytes(data)
        media_type = detect.detect(path, name, max_bytes=10**8).media_type
        _, scan = page_recognise(path, media_type, 1, seen)
        assert scan.state == "read", (name, scan.problem)
        assert seen.pictures[-1].shape == (80, SIDE, 3), name
        wanted.append(f"{LINES[1][:-1]} {number}")
    assert len(wanted) == 9
    found = page_text(engine.read(np.vstack(seen.pictures)))[0]
    assert [line for line in found.splitlines() if line] == wanted


def test_line_on_a_strip_is_read(engine: RapidEngine, tmp_path: Path) -> None:
    strip = page_picture((LINES[1],), size=(1600, 120), letters=34)
    assert read(engine, tmp_path, strip) == [LINES[1]]


def test_recognition_takes_what_processor_time_nobody_else_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr("os.nice", done.append)
    monkeypatch.setattr(
        "apps.collections.ingestion.ocr.pages.pages_recognise", lambda request, send: done.append("read")
    )
    child._scan({"nice": base.OCR_NICE}, LIMITS, lambda header, blob: None)
    assert done == [19, "read"]


def test_page_that_breaks_the_child_ends_it_within_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(HOSTILE["bomb"])
    request = {"path": str(path), "media_type": media_types.PNG}
    with pytest.raises(ReadFailure, match="million can be read"):
        list(run_child(request | {"action": "read"}, LIMITS))
    scan = request | {"action": "scan", "pages": [1], "languages": "", "nice": 0}
    [(header, _)] = list(run_child(scan, LIMITS, is_renewed=True))
    assert "million can be read" in header["scanned"]["scan"]["problem"]
    with pytest.raises(ReadFailure) as error:
        list(run_child(scan, ReaderLimits(wall_seconds=0.2), is_renewed=True))
    assert error.value.code == "timed_out"


def test_hostile_pictures_are_thirty() -> None:
    assert len(HOSTILE) >= 30


def test_pages_of_a_tiff_are_counted(tmp_path: Path) -> None:
    pages = [Image.new("L", (60, 80), 255) for _ in range(3)]
    buffer = io.BytesIO()
    pages[0].save(buffer, "TIFF", save_all=True, append_images=pages[1:])
    path = tmp_path / "a.tif"
    path.write_bytes(buffer.getvalue())
    document = document_extract(path, name="a.tif")
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.is_scanned
    with pytest.raises(ReadFailure, match="more than 2 pages"):
        document_extract(path, name="a.tif", limits=ReaderLimits(max_pages=2))


GERMAN = ("Größe der Übertragung beträgt 12,5 Mäuse.", "Straße 17, Rechnung RE-20417 bezahlt.")


@pytest.mark.skipif(
    "deu" not in tesseract_languages(),
    reason="needs tesseract with German (Debian: apt-get install tesseract-ocr tesseract-ocr-deu)",
)
@pytest.mark.parametrize("turned", [0, 90])
def test_tesseract_reads_another_language_where_it_is_installed(tmp_path: Path, turned: int) -> None:
    picture = page_picture(GERMAN, size=(1000, 240), letters=34, font="Vera.ttf").rotate(turned, expand=True)
    path = tmp_path / "page.png"
    path.write_bytes(picture_bytes(picture))
    text, scan = page_recognise(path, media_types.PNG, 1, TesseractEngine("deu"))
    assert (scan.state, scan.engine) == ("read", "tesseract deu")
    assert [line for line in text.splitlines() if line] == list(GERMAN)
    assert [text[w.char_start : w.char_end] for w in scan.words] == " ".join(GERMAN).split()


def test_letters_with_marks_of_european_languages_are_read(engine: RapidEngine, tmp_path: Path) -> None:
    picture = page_picture(GERMAN, font="Vera.ttf")
    assert read(engine, tmp_path, picture) == list(GERMAN)


def unknown_script() -> Image.Image:
    """Draw letters that no alphabet has: those of a page seen in a mirror."""
    return ImageOps.mirror(page_picture(LINES))


def test_page_in_a_script_that_is_not_known_is_not_read(engine: RapidEngine, tmp_path: Path) -> None:
    path = tmp_path / "page.png"
    path.write_bytes(picture_bytes(unknown_script()))
    text, scan = page_recognise(path, media_types.PNG, 1, engine)
    assert (text.strip(), scan.words, scan.state) == ("", (), "failed"), "what it guesses could be quoted"
    assert "a script that text recognition (OCR) isn't set up for" in scan.problem


def test_lines_in_an_unknown_script_are_left_out_of_a_page_and_it_says_so(
    engine: RapidEngine, tmp_path: Path
) -> None:
    page = page_picture(LINES)
    page.paste(ImageOps.mirror(page_picture(LINES[:2], size=(SIDE, 200))), (0, 400))
    path = tmp_path / "page.png"
    path.write_bytes(picture_bytes(page))
    text, scan = page_recognise(path, media_types.PNG, 1, engine)
    assert scan.state == "read"
    assert [line for line in text.splitlines() if line] == list(LINES)
    assert "a script that" in scan.problem


def sized(text: str, confidence: float, length: float) -> OcrLine:
    corners = ((0.0, 0.0), (length, 0.0), (length, 20.0), (0.0, 20.0))
    words = tuple(LineWord(word, corners) for word in text.split())
    return OcrLine(words, (" ",) * (len(words) - 1), confidence, corners)


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([("Ledger of the harbour office", 0.95, 600), ("1695立 --", 0.62, 500)], 1),
        ([("Ledger of the office", 0.95, 400), ("1695立 --", 0.62, 500)], None),
        ([("90--.", 0.55, 600), ("", 0.3, 600)], None),
        # Cyrillic: it is sure of the dots and digits, which is all that it knows of the line.
        ([(". , 19", 0.93, 900), (". 1-", 0.92, 900)], None),
        ([("第三条", 0.95, 66), ("本规定自公布之日起施行，有效期五年。", 0.94, 420)], 2),
        # A picture with its title: what the finder took for lines in it is short and says nothing.
        ([("Figure 4", 0.98, 160), *[("", 0.2, 60)] * 20], 1),
        ([], 0),
    ],
)
def test_lines_that_were_guessed_are_told_from_those_that_were_read(
    lines: list[tuple[str, float, float]], kept: int | None
) -> None:
    found, unread = legible(Recognised(tuple(sized(*one) for one in lines), 0, 1000, 1000), 0.9)
    assert (None if unread >= MOST else len(found.lines)) == kept


@pytest.mark.parametrize(("turned", "size"), [(0, (1280, 1650)), (180, (736, 950))])
def test_single_line_of_a_page_is_found(
    engine: RapidEngine, tmp_path: Path, turned: int, size: tuple[int, int]
) -> None:
    page = page_picture(("Exhibit 7",), size=size, letters=26).rotate(turned, expand=True)
    assert read(engine, tmp_path, page) == ["Exhibit 7"]


def test_boxes_of_lines_stay_inside_the_picture(engine: RapidEngine) -> None:
    whole = page_picture(LINES, letters=28)
    cut = whole.crop(ImageOps.invert(whole.convert("L")).getbbox()).rotate(180)
    found = engine.read(picture_array(cut))
    assert page_text(found)[0].splitlines() == list(LINES)
    for one in found.lines:
        left, top, right, bottom = box_of(one.corners)
        # Corners of a slanted box lie outside by as much as it slants.
        assert min(left, top, found.width - right, found.height - bottom) > -3


def test_long_receipt_keeps_its_letters(engine: RapidEngine, tmp_path: Path) -> None:
    lines = tuple(f"Item {n:03} pump 84.13.{n:02} EUR {n}.50" for n in range(6))
    picture = page_picture(lines, size=(700, 460), letters=30)
    receipt = Image.new("RGB", (800, 5000), "white")
    receipt.paste(picture, (40, 200))
    found = read(engine, tmp_path, receipt)
    assert found == list(lines)

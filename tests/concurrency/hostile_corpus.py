"""Hundreds of damaged and hostile files, the same ones every time: made by hand, or from good files by a seeded fuzzer."""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.collections.ingestion import office_files as make
from tests.collections.ingestion.test_hostile_files import FILES
from tests.concurrency.bad_files import archive, docx, image_pdf, pdf, png

SEED = 20_261_120
_LINE = "The duty of 2.5 percent applies to goods of heading 8471.30.0100 from the first of July {n}. "
_LARGEST = 400_000  # bytes of a real file that is worth damaging


# Valid and large: they cost minutes of embedding and are read in the tests of the readers.
_LONG = ("columns.csv", "wide.jsonl", "many-keys.json", "one-line.csv", "staircase.xlsx")


def _text(lines: int = 60) -> str:
    return "".join(_LINE.format(n=2000 + n) + ("\n\n" if n % 5 == 0 else "\n") for n in range(lines))


@contextlib.contextmanager
def _no_clock() -> Iterator[None]:
    """Let archives and PDFs carry one date, so that the same file has the same bytes tomorrow."""
    day = time.struct_time((2026, 1, 1, 0, 0, 0, 3, 1, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1767225600")
        patch.setattr(time, "localtime", lambda *_: day)
        yield


def _written(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


@cache
def good_files() -> dict[str, bytes]:
    """Return one good file per format, by extension."""
    paragraphs = "".join(f"<p>{_LINE.format(n=n)}</p>" for n in range(40))
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@example.org", "b@example.org", "Duty"
    mail.set_content(_text(20))
    mail.add_attachment(b"code,rate\n8471.30.0100,2.5\n", maintype="text", subtype="csv", filename="r.csv")
    mail.set_boundary("=== a boundary ===")
    table: list[Any] = [("code", "rate"), *((f"8471.30.{n:04d}", float(n)) for n in range(60))]
    return {
        "pdf": pdf(6, 30, seed="fuzz "),
        "docx": docx(_text()),
        "xlsx": _written(lambda p: make.xlsx(p, {"Rates": make.rows(*table)})),
        "pptx": _written(lambda p: make.pptx(p, [make.shape(_LINE.format(n=n)) for n in range(8)])),
        "odt": _written(lambda p: make.odt(p, f"<text:p>{_text()}</text:p>")),
        "epub": _written(lambda p: make.epub(p, [paragraphs] * 3)),
        "html": f"<!doctype html><html><body><h1>Duty</h1>{paragraphs}</body></html>".encode(),
        "md": ("# Duty\n\n" + _text() + "\n\n| code | rate |\n|---|---|\n| 8471.30 | 2.5 |\n").encode(),
        "txt": _text().encode(),
        "csv": b"code,rate,note\n" + b"".join(b"8471.30.%04d,2.5,lamps\n" % n for n in range(200)),
        "json": b"[" + b",".join(b'{"code": "8471.30.%04d", "rate": 2.5}' % n for n in range(200)) + b"]",
        "jsonl": b"".join(b'{"code": "8471.30.%04d", "rate": 2.5}\n' % n for n in range(200)),
        "eml": bytes(mail),
        "srt": "".join(
            f"{n}\n00:{n:02d}:00,000 --> 00:{n:02d}:09,500\n<i>{_LINE.format(n=n)}</i>\n\n"
            for n in range(1, 50)
        ).encode(),
        "vtt": b"WEBVTT\n\n"
        + b"".join(
            b"%02d:01.000 --> %02d:05.000\n<v Ana>Duty %d is free.\n\n" % (n, n, n) for n in range(50)
        ),
        "py": b"".join(b"def duty_%d(value):\n    return value * %d / 100\n\n\n" % (n, n) for n in range(40)),
        "js": b"".join(
            b"export function duty%d(value) { return value * %d / 100; }\n" % (n, n) for n in range(40)
        ),
        "c": b"#include <stdio.h>\n"
        + b"".join(b"int duty_%d(int v) { return v * %d; }\n" % (n, n) for n in range(40)),
        "png": png(),
        "zip": archive({"a.txt": _text().encode(), "b/c.md": b"# Duty"}),
    }


def _truncated(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _flipped(data: bytes, chance: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(chance.choice((1, 5, 40, 400))):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def _zeroed(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    length = min(len(data) - start, chance.choice((16, 512, 8192)))
    return data[:start] + bytes(length) + data[start + length :]


def _repeated(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data)) for _ in range(2))
    return data[:end] + data[start:end] * chance.choice((1, 3, 20)) + data[end:]


def _prefixed(data: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((1, 64, 5000))) + data


def _spliced(data: bytes, chance: random.Random) -> bytes:
    other = chance.choice(list(good_files().values()))
    return data[: chance.randrange(len(data))] + other[chance.randrange(len(other)) :]


def _with_nuls(data: bytes, chance: random.Random) -> bytes:
    step = chance.choice((2, 10, 100))
    return b"\0".join(data[i : i + step] for i in range(0, len(data), step))


def _shuffled(data: bytes, chance: random.Random) -> bytes:
    size = max(1, len(data) // 50)
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    chance.shuffle(parts)
    return b"".join(parts)


def _removed(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data)) for _ in range(2))
    return data[:start] + data[end:]


FUZZERS = (_truncated, _flipped, _zeroed, _repeated, _prefixed, _spliced, _with_nuls, _shuffled, _removed)


def _handmade() -> Iterator[tuple[str, Callable[[], bytes]]]:
    yield "empty.pdf", lambda: b""
    yield "one-byte.docx", lambda: b"P"
    yield "blank.md", lambda: b" \n\t" * 900
    yield "scan.pdf", image_pdf
    yield "picture.docx", png
    yield "surrogates.txt", lambda: b"\xed\xa0\x80" * 3000 + _text().encode()
    yield "deep.html", lambda: b"<div>" * 60_000 + _text(5).encode()
    yield "deep.md", lambda: b">" * 20_000 + _text(5).encode()
    yield "deep.py", lambda: b"x = " + b"(" * 20_000 + b"1" + b")" * 20_000
    yield "deep.js", lambda: b"f(" * 30_000
    yield "deep.c", lambda: b"{" * 50_000
    yield "one-line.txt", lambda: _text().replace("\n", " ").encode() * 20
    yield "wide.csv", lambda: b",".join(b"c%d" % n for n in range(20_000)) + b"\n" + b"1," * 20_000
    yield "long.csv", lambda: b"code,rate\n" + b"8471.30,2.5\n" * 9_000
    yield "bom.txt", lambda: "\ufeff".encode("utf-16") + _text().encode("utf-16-be")
    yield "control.txt", lambda: bytes(range(1, 32)) * 500 + _text().encode()
    yield "same-zip.xlsx", lambda: archive({"xl/workbook.xml": b"<w/>" * 9000})
    for name, write, _ in FILES:
        if name in _LONG:
            continue
        yield name, lambda write=write: _written(write)  # type: ignore[misc]


def _real(folder: Path | None) -> dict[str, bytes]:
    """Return real documents that are small enough, by name."""
    if folder is None:
        return {}
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (".pdf", ".docx", ".pptx", ".html"))
    return {p.name: p.read_bytes() for p in paths if 0 < p.stat().st_size <= _LARGEST}


def hostile_corpus(count: int, real: Path | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` named files; the same arguments give the same bytes.

    Args:
        count: of 120 a third is made by hand, of 500 and more all that there are; the rest is fuzzed.
        real: folder of real documents, from which every third fuzzed file is made.
    """
    chance = random.Random(SEED)
    hand = list(_handmade())
    if count // 3 < len(hand):
        hand = chance.sample(hand, count // 3)
    for number, (name, build) in enumerate(hand):
        with _no_clock():
            data = build()
        yield f"{number:03d}-{name}", data
    with _no_clock():
        good, documents = good_files(), _real(real)
    for number in range(len(hand), count):
        extension, data = chance.choice(sorted(good.items()))
        if documents and number % 3 == 0:
            name, data = chance.choice(sorted(documents.items()))
            extension = name.rsplit(".", 1)[1]
        if chance.random() < 0.15:
            extension = chance.choice(sorted(good))  # a lie, perhaps about a whole file
        rounds = chance.choice((0, 1, 1, 1, 2, 3))
        used = []
        for _ in range(rounds):
            fuzzer = chance.choice(FUZZERS)
            data = fuzzer(data, chance) or b"\0"
            used.append(fuzzer.__name__.strip("_"))
        yield f"{number:03d}-{'-'.join(used) or 'whole'}.{extension}", data

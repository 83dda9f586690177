"""Files made to break a reader: each ends in text or in a typed failure, within its limits."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from apps.collections.models.document import UNREADABLE
from tests.collections.ingestion import office_files as make

MB = 1024 * 1024
LIMITS = ReaderLimits(wall_seconds=40, cpu_seconds=30, memory_bytes=512 * MB)
CODE = "8539.50.00"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

Maker = Callable[[Path], object]


def laughs(root: str) -> str:
    entities = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "laugh">' for n in range(10)
    )
    return f'<?xml version="1.0"?><!DOCTYPE {root} [{entities}]>'


XXE = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


def bomb(megabytes: int) -> bytes:
    return b"<a>" + bytes(megabytes * MB)


def sheet(inner: str, **extra: str | bytes) -> Maker:
    def write(path):
        make.xlsx(path, {"S": inner}, strings=str(extra.get("strings", "")))

    return write


def part(kind: str, name: str, data: Callable[[], str | bytes]) -> Maker:
    """Write a good package in which one part is replaced."""

    def write(path):
        {
            "xlsx": lambda: make.xlsx(path, {"S": make.rows(("a", 1), (CODE, 2))}),
            "pptx": lambda: make.pptx(path, [make.shape(CODE)]),
            "odt": lambda: make.odt(path, f"<text:p>{CODE}</text:p>"),
            "epub": lambda: make.epub(path, [f"<p>{CODE}</p>"]),
        }[kind]()
        with zipfile.ZipFile(path) as archive:
            parts: dict[str, str | bytes] = {n: archive.read(n) for n in archive.namelist()}
        make.package(path, {**parts, name: data()}, level=1)

    return write


def raw(data: Callable[[], bytes]) -> Maker:
    return lambda path: path.write_bytes(data())


def encrypted_zip() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("xl/workbook.xml", "secret")
    data = bytearray(target.getvalue())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark) + offset
        data[at] |= 1  # the flag that says a password is needed
    return bytes(data)


def overlapping_zip() -> bytes:
    """Return an archive whose 3000 entries all point at the same 10 MB of zeros."""
    packed = zlib.compress(bytes(10 * MB), 9)[2:-4]
    crc = zlib.crc32(bytes(10 * MB))
    name = b"xl/workbook.xml"
    local = struct.pack(
        "<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(packed), 10 * MB, len(name), 0
    )
    central = b"".join(
        struct.pack(
            "<4sHHHHHHIIIHHHHHII",
            b"PK\x01\x02",
            20,
            20,
            0,
            8,
            0,
            0,
            crc,
            len(packed),
            10 * MB,
            len(entry),
            0,
            0,
            0,
            0,
            0,
            0,
        )
        + entry
        for entry in (name, *(b"xl/worksheets/s%d.xml" % i for i in range(3000)))
    )
    body = local + name + packed
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 3001, 3001, len(central), len(body), 0)
    return body + central + end


def pdf_objects(*objects: bytes, head: bytes = b"%PDF-1.5\n") -> bytes:
    body = head + b"".join(b"%d 0 obj%s endobj\n" % (i, o) for i, o in enumerate(objects, 1))
    return body + b"trailer<</Root 1 0 R/Size %d>>\n%%%%EOF\n" % (len(objects) + 1)


def looping_form() -> bytes:
    stream = b"/F Do"
    return pdf_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 5 0 R/Resources<</XObject<</F 4 0 R>>>>>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 4 0 R>>>>/Length %d>>stream\n%s\nendstream"
        % (len(stream), stream),
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
    )


def deep_array_pdf() -> bytes:
    return pdf_objects(
        b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * 200_000 + b"]" * 200_000 + b">>",
        b"<</Type/Pages/Kids[]/Count 0>>",
    )


def staircase() -> str:
    def place(n: int) -> str:
        letters = ""
        while n:
            n, rest = divmod(n - 1, 26)
            letters = chr(65 + rest) + letters
        return letters

    cells = "".join(f'<row r="{i}"><c r="{place(i)}{i}"><v>{i}</v></c></row>' for i in range(1, 4000))
    return f"<sheetData>{cells}</sheetData>"


def mail(inner: bytes) -> bytes:
    return b"From: a@b.c\nTo: d@e.f\nMessage-ID: <1@b>\nMIME-Version: 1.0\n" + inner


ANY_FAILURE = {str(code) for code in FailureCode} - {"crashed"}
READY = {"ready"}

FILES: list[tuple[str, Maker, set[str]]] = [
    (
        "bomb-sheet.xlsx",
        part("xlsx", "xl/worksheets/s1.xml", lambda: bomb(310)),
        {"too_large", "corrupt_file"},
    ),
    (
        "bomb-strings.xlsx",
        part("xlsx", "xl/sharedStrings.xml", lambda: bomb(310)),
        {"too_large", "corrupt_file"},
    ),
    ("bomb.pptx", part("pptx", "ppt/slides/slide1.xml", lambda: bomb(310)), {"too_large", "corrupt_file"}),
    ("bomb.odt", part("odt", "content.xml", lambda: bomb(310)), {"too_large", "corrupt_file"}),
    (
        "bomb.epub",
        part("epub", "OPS/c0.xhtml", lambda: b"<p>" + b"x" * 310 * MB),
        {"too_large", "out_of_memory"},
    ),
    (
        "laughs.xlsx",
        part("xlsx", "xl/worksheets/s1.xml", lambda: laughs("w") + "<w>&l9;</w>"),
        {"corrupt_file"},
    ),
    (
        "laughs.pptx",
        part("pptx", "ppt/slides/slide1.xml", lambda: laughs("w") + "<w>&l9;</w>"),
        {"corrupt_file"},
    ),
    ("laughs.odt", lambda p: make.odt(p, "<text:p>&l9;</text:p>", head=laughs("d")[21:]), {"corrupt_file"}),
    ("laughs.epub", part("epub", "OPS/book.opf", lambda: laughs("d") + "<d>&l9;</d>"), {"corrupt_file"}),
    (
        "xxe.xlsx",
        part("xlsx", "xl/sharedStrings.xml", lambda: XXE + "<sst><si><t>&x;</t></si></sst>"),
        {"corrupt_file"},
    ),
    ("xxe.odt", lambda p: make.odt(p, "<text:p>&x;</text:p>", head=XXE[21:]), {"corrupt_file"}),
    ("deep.xlsx", part("xlsx", "xl/worksheets/s1.xml", lambda: "<a>" * 200_000), {"corrupt_file"}),
    (
        "deep.pptx",
        part("pptx", "ppt/slides/slide1.xml", lambda: "<a>" * 200_000 + "</a>" * 200_000),
        {"corrupt_file"},
    ),
    (
        "huge-number.xlsx",
        sheet(
            f'<sheetData><row r="1"><c r="A1"><v>{"9" * 100_000}</v></c><c r="B1"><v>1e999</v></c></row></sheetData>'
        ),
        READY,
    ),
    (
        "far-cells.xlsx",
        sheet(
            '<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>'
        ),
        READY,
    ),
    ("staircase.xlsx", sheet(staircase()), READY),
    (
        "merged-all.xlsx",
        sheet(
            '<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
        ),
        READY,
    ),
    (
        "bad-index.xlsx",
        sheet(
            '<sheetData><row r="1"><c r="A1" t="s"><v>99999999</v></c><c r="B1" s="777"><v>5</v></c></row></sheetData>'
        ),
        READY,
    ),
    (
        "bad-places.xlsx",
        sheet(
            '<sheetData><row r="-1"><c r="??"><v>5</v></c><c r="A99999999999"><v>6</v></c></row></sheetData>'
        ),
        READY,
    ),
    (
        "no-sheets.xlsx",
        part("xlsx", "xl/workbook.xml", lambda: f'<workbook xmlns="{SHEET}"/>'),
        {"corrupt_file"},
    ),
    (
        "outside.xlsx",
        part(
            "xlsx",
            "xl/_rels/workbook.xml.rels",
            lambda: make.relations({"s1": ("worksheet", "../../../../etc/passwd")}),
        ),
        {"corrupt_file"},
    ),
    ("noise.xlsx", part("xlsx", "xl/worksheets/s1.xml", lambda: bytes(range(256)) * 100), {"corrupt_file"}),
    ("locked.xlsx", raw(encrypted_zip), {"corrupt_file"}),
    ("overlapping.xlsx", raw(overlapping_zip), {"corrupt_file", "too_large"}),
    (
        "loop.epub",
        part(
            "epub",
            "OPS/book.opf",
            lambda: (
                '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="book.opf" media-type="application/xhtml+xml"/></manifest><spine>'
                + '<itemref idref="a"/>' * 1000
                + "</spine></package>"
            ),
        ),
        {"no_text", "ready", "corrupt_file"},
    ),
    ("no-root.epub", part("epub", "META-INF/container.xml", lambda: "<container/>"), {"corrupt_file"}),
    ("form-loop.pdf", raw(looping_form), {"ready", "corrupt_file"}),
    ("deep-array.pdf", raw(deep_array_pdf), {"no_text", "corrupt_file"}),
    ("no-objects.pdf", raw(lambda: b"%PDF-1.4\n%%EOF"), {"corrupt_file"}),
    (
        "columns.csv",
        raw(lambda: b",".join(b"c%d" % i for i in range(300_000)) + b"\n" + b"1," * 299_999 + b"1\n"),
        READY,
    ),
    ("one-line.csv", raw(lambda: b"a,b\n" + b"x" * (5 * MB) + b",1\n"), READY),
    ("quotes.csv", raw(lambda: b"a,b\n" + b'"' * (2 * MB)), READY | {"no_text"}),
    ("nuls.json", raw(lambda: b'{"a": "x\x00y ' + CODE.encode() + b'"}'), READY),
    ("deep.json", raw(lambda: b"[" * 300_000), {"no_text"}),
    ("long-number.json", raw(lambda: b"[" + b"1" * 100_000 + b"]"), READY),
    (
        "many-keys.json",
        raw(lambda: b"[" + b",".join(b'{"k%d": %d}' % (i, i) for i in range(50_000)) + b"]"),
        READY,
    ),
    ("wide.jsonl", raw(lambda: b"\n".join(b'{"a": {"b": [%d]}}' % i for i in range(50_000))), READY),
    (
        "headers.eml",
        raw(lambda: mail(b"X: " + b"y" * 2 * MB + b"\n" + b"A: b\n" * 50_000 + b"\nwords here")),
        READY | ANY_FAILURE,
    ),
    (
        "parts.eml",
        raw(
            lambda: mail(b'Content-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * 5000 + b"--b--")
        ),
        {"corrupt_file"},
    ),
    (
        "forwards.eml",
        raw(lambda: mail(b"Content-Type: message/rfc822\n\n" * 3000 + b"words")),
        READY | ANY_FAILURE,
    ),
    (
        "base64.eml",
        raw(
            lambda: mail(
                b"Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset=nope\n\n!!!!not base64 words!!!!"
            )
        ),
        READY | ANY_FAILURE,
    ),
    ("times.srt", raw(lambda: b"1\n00:00:01,000 --> 00:00:02,000\n" * 50_000 + b"words"), READY),
    (
        "marks.vtt",
        raw(
            lambda: (
                b"WEBVTT\n\n00:01.000 --> 00:02.000\n" + b"<v " * 500_000 + b"<v" + b" " * 500_000 + b"words"
            )
        ),
        READY,
    ),
    ("arrows.vtt", raw(lambda: b"WEBVTT\n\n" + b"1:1" * 300_000 + b" --> words"), READY),
    ("deep.html", raw(lambda: b"<html><body>" + b"<b>" * 100_000 + CODE.encode()), READY),
    (
        "attributes.html",
        raw(lambda: b"<html><body><p " + b"a=1 " * 300_000 + b">words</p>"),
        READY | ANY_FAILURE,
    ),
    ("comment.html", raw(lambda: b"<html><body>words<!--" + b"-" * 3 * MB), READY),
    (
        "spans.html",
        raw(lambda: b"<html><body><table><tr><td colspan=99999999 rowspan=99999999>words</td></tr></table>"),
        READY | ANY_FAILURE,
    ),
    ("tables.md", raw(lambda: (b"|" * 5000 + b"\n" + b"|-" * 5000 + b"|\n") * 20 + b"words"), READY),
    ("lies.pptx", raw(lambda: b"%PDF-1.4\n" + b"not really" * 50), {"corrupt_file"}),
    ("lies.xlsx", raw(lambda: b"plain words, no workbook"), READY),
    ("lies.epub", lambda p: make.xlsx(p, {"S": make.rows((CODE, 1))}), READY),
]


@pytest.mark.parametrize(("name", "write", "ends"), FILES, ids=[name for name, _, _ in FILES])
def test_file_ends_as_it_should_when_it_is_hostile(tmp_path, name, write, ends):
    path = tmp_path / name
    write(path)
    try:
        document = document_extract(path, name=name, limits=LIMITS)
    except ReadFailure as failure:
        end, said = failure.code, failure.message
    else:
        end, said = "ready", "."
        chunks = chunk_document(document)
        # Pages without text wait for who reads their pictures.
        assert chunks or document.is_scanned
        assert "\x00" not in document.text
        assert "root:" not in document.text
        assert all(c.text == document.text[c.char_start : c.char_end] for c in chunks)
        assert all(len(c.indexed_text) <= 4000 for c in chunks)
    assert end in ends, end
    assert said.endswith("."), said


def test_what_no_retry_helps_is_a_failure_of_the_file_itself() -> None:
    passing = {FailureCode.TIMED_OUT, FailureCode.OUT_OF_MEMORY, FailureCode.CRASHED}
    settings = {FailureCode.NO_TEXT, FailureCode.TOO_LARGE, FailureCode.TOO_MANY_PAGES}  # recognition, limits
    assert set(FailureCode) - UNREADABLE == passing | settings

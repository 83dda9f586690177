"""Files that people really upload and files that attackers make, each with how it may end."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from docx import Document as Word
from reportlab.lib.pagesizes import letter
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.collections.ingestion.scans import PAGE
from tests.nightly import NIGHTLY

MB = 1_000_000
READER_MB = 512
"""Memory that the site of these tests allows a reader, so that a bomb needs less time to reach it."""
_PAGES = 5000 if NIGHTLY else 800  # a PDF may have 5,000: by day fewer go all the way
_SENTENCE = "The duty of 2.5 percent applies to goods of heading 8471.30.0100 from the first of July. "


@dataclass(frozen=True)
class Bad:
    """A file, and the ends that are right for it.

    Attributes:
        name: as uploaded.
        make: returns its bytes.
        ends: error codes it may fail with, or ``ready``.
    """

    name: str
    make: Callable[[], bytes]
    ends: tuple[str, ...]


def pdf(pages: int = 1, lines: int = 20, *, password: str = "", seed: str = "") -> bytes:
    """Return a PDF with text."""
    target = io.BytesIO()
    encrypt = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(target, pagesize=letter, encrypt=encrypt, pageCompression=1)
    for page in range(pages):
        for line in range(lines):
            canvas.drawString(40, 740 - 12 * line, f"{seed}{page + 1}.{line} {_SENTENCE}")
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def image_pdf() -> bytes:
    """Return a PDF whose page holds a drawing only; it is small, for text recognition looks at every pixel."""
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=PAGE)
    canvas.rect(50, 50, 120, 160, fill=1)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def png() -> bytes:
    """Return a PNG of one pixel."""

    def part(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(b"\0\0"))
        + part(b"IEND", b"")
    )


def docx(text: str = _SENTENCE * 10) -> bytes:
    """Return a Word document."""
    target = io.BytesIO()
    word = Word()
    word.add_heading("Notice", 1)
    word.add_paragraph(text)
    word.save(target)
    return target.getvalue()


def archive(members: dict[str, bytes]) -> bytes:
    """Return a ZIP archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, data in members.items():
            writer.writestr(name, data)
    return target.getvalue()


def _docx_with(document_xml: bytes) -> bytes:
    """Return a Word document whose main part was replaced."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx())) as source,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as writer,
    ):
        for name in source.namelist():
            writer.writestr(name, document_xml if "document.xml" in name else source.read(name))
    return target.getvalue()


def _locked_office() -> bytes:
    """Return what Word writes when a DOCX gets a password: an OLE container with the encrypted package."""
    sector = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHH", 62, 3, 0xFFFE)
    names = "EncryptionInfo".encode("utf-16-le") + "EncryptedPackage".encode("utf-16-le")
    return sector.ljust(512, b"\xff") + names.ljust(4096, b"\0") + random.Random(2).randbytes(20_000)


def _endless_pages() -> bytes:
    """Return a PDF whose page tree contains itself and claims a billion pages."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000000>>endobj\n"
        b"trailer<</Root 1 0 R/Size 3>>\n%%EOF\n"
    )


def _stream_bomb() -> bytes:
    """Return a PDF whose one page inflates to 200 MB of drawing instructions, which take several times as much."""
    packer = zlib.compressobj(1)
    block = b"0 0 m 1 1 l S\n" * 70_000
    content = b"".join(packer.compress(block) for _ in range(200)) + packer.flush()
    head = (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Filter/FlateDecode/Length %d>>stream\n" % len(content)
    )
    return head + content + b"\nendstream endobj\ntrailer<</Root 1 0 R/Size 5>>\n%%EOF\n"


def _laughs() -> bytes:
    """Return a DOCX whose XML entities multiply to a billion."""
    entities = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "laugh">' for n in range(10)
    )
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return _docx_with(
        f'<?xml version="1.0"?><!DOCTYPE d [{entities}]><w:document xmlns:w="{space}"><w:body><w:p>'
        "<w:r><w:t>&l9;</w:t></w:r></w:p></w:body></w:document>".encode()
    )


def _csv_with_nuls() -> bytes:
    rows = [b"code,rate,note"] + [b"8471.30.%04d,2.5\x00%%,a\x00b" % n for n in range(300)]
    return b"\n".join(rows)


def _text(megabytes: int) -> bytes:
    line = (_SENTENCE + "\n").encode()
    return line * (megabytes * MB // len(line))


def bad_files() -> Iterator[Bad]:
    """Yield them one by one: together they are some 130 MB."""
    whole = pdf(30, seed="cut ")
    noise = random.Random(1)
    yield Bad("zero.pdf", lambda: b"", ("empty_file",))
    yield Bad("blanks.txt", lambda: b" \n\t\r\n" * 500, ("empty_file", "no_text"))
    yield Bad("nuls.txt", lambda: bytes(50_000), ("empty_file", "no_text", "unsupported_type"))
    yield Bad("password.pdf", lambda: pdf(password="secret"), ("encrypted_pdf",))
    yield Bad("cut-off.pdf", lambda: whole[: len(whole) * 6 // 10], ("corrupt_file",))
    yield Bad("noise-inside.pdf", lambda: b"%PDF-1.7\n" + noise.randbytes(MB), ("corrupt_file",))
    yield Bad("noise.pdf", lambda: noise.randbytes(MB), ("corrupt_file",))
    yield Bad("noise.txt", lambda: noise.randbytes(MB), ("unsupported_type",))
    yield Bad("scan.pdf", image_pdf, ("no_text",))
    yield Bad("endless.pdf", _endless_pages, ("corrupt_file", "too_many_pages", "no_text"))
    yield Bad("bomb.pdf", _stream_bomb, ("no_text", "out_of_memory", "timed_out", "crashed"))
    yield Bad("picture.pdf", png, ("no_text",))
    yield Bad("really-a-pdf.txt", lambda: pdf(seed="txt "), ("ready",))
    yield Bad("really-a-docx.pdf", docx, ("ready",))
    yield Bad("archive.pdf", lambda: archive({"a.txt": b"hello"}), ("unsupported_type", "corrupt_file"))
    yield Bad("archive.docx", lambda: archive({"b.txt": b"hello"}), ("unsupported_type",))
    yield Bad("cut-off.docx", lambda: docx()[:9000], ("corrupt_file",))
    yield Bad("no-xml.docx", lambda: _docx_with(b"\x00\x01 not xml"), ("corrupt_file", "no_text"))
    yield Bad(
        "bomb.docx",
        lambda: _docx_with(b"<w>" + bytes(320 * MB)),
        ("corrupt_file", "too_large", "out_of_memory", "no_text"),
    )
    yield Bad("laughs.docx", _laughs, ("corrupt_file", "no_text", "too_large"))
    yield Bad("locked.docx", _locked_office, ("unsupported_type", "corrupt_file"))
    yield Bad("deep.html", lambda: _nested(b"div", 100_000), ("ready",))
    yield Bad("deep-lists.html", lambda: _nested(b"ul><li", 20_000), ("ready",))
    yield Bad("deep-quotes.md", lambda: b">" * 30_000 + b" " + _SENTENCE.encode(), ("ready",))
    yield Bad("nuls.csv", _csv_with_nuls, ("ready",))
    yield Bad("unclosed.csv", lambda: b'a,b\n1,"' + _text(1)[:60_000], ("ready", "corrupt_file"))
    yield Bad("wide.csv", lambda: b"\n".join([b",".join(b"c%d" % n for n in range(6_000))] * 2), ("ready",))
    yield Bad("utf16.txt", lambda: (_SENTENCE * 20).encode("utf-16"), ("ready",))
    yield Bad("surrogates.txt", lambda: b"\xed\xa0\x80 " + _SENTENCE.encode() * 20, ("ready",))
    yield Bad(f"pages-{_PAGES}.pdf", lambda: pdf(_PAGES, 1, seed="many "), ("ready",))
    yield Bad("pages-5001.pdf", lambda: pdf(5001, 1), ("too_many_pages",))
    yield Bad("62-mb.txt", lambda: _text(62), ("too_large",))
    yield Bad("62-mb.pdf", lambda: b"%PDF-1.4\n" + _text(62), ("corrupt_file",))


def _nested(tag: bytes, depth: int) -> bytes:
    return b"<!doctype html><html><body>" + (b"<" + tag + b">") * depth + _SENTENCE.encode() * 5

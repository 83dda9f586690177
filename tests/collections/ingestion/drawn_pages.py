"""Draws lines of any script at chosen places of a page, in a font that no machine needs to have: text without shapes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

WIDE = 1000  # thousandths of a letter size that a letter takes; plain letters, digits and blanks take half


@dataclass(frozen=True)
class Drawn:
    """A piece of text: where its first letter stands, in points from the bottom left of a page of 612 by 792."""

    text: str
    x: float
    y: float
    size: float = 10.0
    is_bold: bool = False


def width_of(text: str, size: float = 10.0) -> float:
    """Return how far a text reaches, in points."""
    return sum(500 if ch < "\u024f" else WIDE for ch in text) * size / 1000


def drawn_pdf(path: Path, *pages: list[Drawn]) -> Path:
    """Write pages as a PDF; its text is drawn piece by piece, in the order given."""
    letters = sorted({ch for page in pages for piece in page for ch in piece.text})
    code = {ch: number for number, ch in enumerate(letters, 1)}
    maps = "\n".join(f"<{n:04x}> <{ch.encode('utf-16-be').hex()}>" for ch, n in code.items())
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(code)} beginbfchar\n{maps}\nendbfchar endcmap end end"
    )
    widths = " ".join(f"{n} [{width_of(ch, 1000):.0f}]" for ch, n in code.items())
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]

    def add(body: bytes | str) -> int:
        objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(objects)

    def stream(data: str) -> int:
        packed = zlib.compress(data.encode("latin-1"))
        return add(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed))

    unicode_at = stream(to_unicode)
    fonts = []
    for name, stem in (("Drawn-Regular", 80), ("Drawn-Bold", 190)):
        about = add(
            f"<< /Type /FontDescriptor /FontName /{name} /Flags 4 /FontBBox [0 -120 1000 880] /ItalicAngle 0 "
            f"/Ascent 880 /Descent -120 /CapHeight 700 /StemV {stem} >>"
        )
        inner = add(
            f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /FontDescriptor {about} 0 R /DW {WIDE} "
            f"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /W [{widths}] >>"
        )
        fonts.append(
            add(
                f"<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H "
                f"/DescendantFonts [{inner} 0 R] /ToUnicode {unicode_at} 0 R >>"
            )
        )
    made = []
    for page in pages:
        drawn = "\n".join(
            f"BT /F{int(p.is_bold)} {p.size} Tf 1 0 0 1 {p.x} {p.y} Tm "
            f"<{''.join(f'{code[ch]:04x}' for ch in p.text)}> Tj ET"
            for p in page
        )
        content = stream(drawn)
        made.append(
            add(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
                f"/Resources << /Font << /F0 {fonts[0]} 0 R /F1 {fonts[1]} 0 R >> >> >>"
            )
        )
    kids = " ".join(f"{number} 0 R" for number in made)
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(made)} >>".encode()
    parts = [b"%PDF-1.7\n"]
    parts += [b"%d 0 obj\n%b\nendobj\n" % (n, body) for n, body in enumerate(objects, 1)]
    path.write_bytes(b"".join(parts) + b"trailer\n<< /Root 1 0 R >>\n%%EOF\n")
    return path

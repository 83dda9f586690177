"""Documents made of ``citation_texts/``, where each line is a sentence: what is whole is known, and no splitter is asked.

A text becomes a PDF of one column and one of two (ReportLab; its table runs over pages), two more by Chromium, which sets
Arabic from right to left (a page of the web, and a book: no gaps between paragraphs), a DOCX (python-docx), HTML, Markdown
and plain text. ``{1}`` is the mark of a note: it stands raised where the format can raise it.
"""

from __future__ import annotations

import html
import re
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).parent / "citation_texts"
TITLE = "Lamps"
_NOTE = re.compile(r"\{(\d+)\}")
_CHROMIUM = ("/usr/bin/chromium", "/usr/bin/google-chrome")


@dataclass(frozen=True)
class Part:
    """A heading, a paragraph, a list or a table.

    Attributes:
        said: the heading; the paragraph's sentences; the list's entries.
        rows: of a table, its header first.
    """

    kind: str
    said: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Made:
    """A file with what it was made of; ``language`` as its text's file is named."""

    path: Path
    parts: tuple[Part, ...]
    language: str


def files_make(folder: Path) -> Iterator[Made]:
    """Make every text in every format that can hold it."""
    for text in sorted(TEXTS.glob("*.txt")):
        parts = tuple(_parts(text.read_text(encoding="utf-8")))
        language = text.stem
        writers: dict[str, Callable[[Path, tuple[Part, ...], str], None]] = {
            f"{language}.docx": _docx,
            f"{language}.html": _html,
            f"{language}.md": _markdown,
            f"{language}-plain.txt": _plain,
        }
        if language != "ar":
            writers |= {f"{language}-one.pdf": _pdf_one, f"{language}-two.pdf": _pdf_two}
        writers |= {f"{language}-printed.pdf": _printed, f"{language}-book.pdf": _book}
        for name, write in writers.items():
            path = folder / f"made-{name}"
            write(path, parts, language)
            yield Made(path, parts, language)


def _parts(text: str) -> Iterator[Part]:
    for block in re.split(r"\n\s*\n", text.strip()):
        run: list[str] = []
        for line in [*block.split("\n"), ""]:
            entry = line.startswith("- ")
            if run and (not line or entry != run[0].startswith("- ")):
                kind = "list" if run[0].startswith("- ") else "prose"
                yield Part(kind, tuple(said.removeprefix("- ") for said in run))
                run = []
            if line.startswith("# "):
                yield Part("heading", (line[2:],))
            elif line.startswith("|"):
                yield Part("table", rows=tuple(_cells(row) for row in block.split("\n")))
                break
            elif line:
                run.append(line)


def _cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in row.strip("| ").split("|"))


def _blank(language: str) -> str:
    return "" if language in ("zh", "ja") else " "


def _joined(part: Part, language: str, mark: str) -> str:
    return _blank(language).join(_NOTE.sub(mark, said) for said in part.said)


def _pdf_one(path: Path, parts: tuple[Part, ...], language: str) -> None:
    _pdf(path, parts, language, columns=1)


def _pdf_two(path: Path, parts: tuple[Part, ...], language: str) -> None:
    _pdf(path, parts, language, columns=2)


def _pdf(path: Path, parts: tuple[Part, ...], language: str, *, columns: int) -> None:
    from reportlab.lib.pagesizes import A5
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Spacer, Table

    font, wrap = "Times-Roman", None
    if language != "en":
        font, wrap = f"boxes-{language}", "CJK"
        said = "".join(one for part in parts for one in (*part.said, *(c for row in part.rows for c in row)))
        pdfmetrics.registerFont(TTFont(font, str(_font(path.with_suffix(".ttf"), said))))
    size = 7.5 if columns == 2 else 10
    body = ParagraphStyle("b", fontName=font, fontSize=size, leading=size * 1.3, wordWrap=wrap, spaceAfter=5)
    head = ParagraphStyle("h", parent=body, fontSize=size * 1.3, leading=size * 1.7, spaceBefore=6)
    entry = ParagraphStyle("e", parent=body, leftIndent=12)
    width, height = A5
    each = (width - 60 - 14 * (columns - 1)) / columns
    frames = [Frame(30 + n * (each + 14), 40, each, height - 80, id=str(n)) for n in range(columns)]

    def running(canvas: Any, template: Any) -> None:
        canvas.setFont(font, 7)
        canvas.drawCentredString(width / 2, 20, str(canvas.getPageNumber()))

    flow: list[Any] = []
    for part in parts:
        if part.kind == "table":
            small = ParagraphStyle("c", parent=body, fontSize=5, leading=6.5, spaceAfter=0)
            look = small if columns == 2 else body
            cells = [[Paragraph(html.escape(cell), look) for cell in row] for row in part.rows]
            grid = [("GRID", (0, 0), (-1, -1), 0.4, "black")]
            flow += [Spacer(1, 6), Table(cells, repeatRows=1, style=grid, colWidths=each / len(cells[0]))]
        elif part.kind == "list":
            flow += [Paragraph(_raised(said), entry) for said in part.said]
        else:
            joined = _blank(language).join(_raised(said) for said in part.said)
            flow.append(Paragraph(joined, head if part.kind == "heading" else body))
    template = PageTemplate(id="all", frames=frames, onPage=running)
    BaseDocTemplate(str(path), pagesize=A5, pageTemplates=[template], invariant=1).build(flow)


def _font(path: Path, said: str, *, is_bold: bool = False) -> Path:
    """Make a font of boxes: no machine has one for every script, and a page's text and places need no more."""
    from fontTools.fontBuilder import FontBuilder

    # A browser draws the Thai am as the two letters that it is made of.
    codes = sorted({*range(32, 127), *map(ord, said), *map(ord, unicodedata.normalize("NFKD", said))})
    names = {code: f"u{code:04X}" for code in codes}
    wide, narrow = _box(80, 900), _box(100, 300 if is_bold else 180)
    glyphs = [".notdef", *names.values()]
    made = FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder(glyphs)
    made.setupCharacterMap(names)
    # How wide plain letters are drawn is how bold a font is said to be.
    shapes = {name: narrow if code < 127 else wide for code, name in names.items()}
    made.setupGlyf({".notdef": wide, **shapes})
    metrics = {name: (500, 100) if code < 127 else (1000, 80) for code, name in names.items()}
    made.setupHorizontalMetrics({".notdef": (1000, 80), **metrics})
    made.setupHorizontalHeader(ascent=880, descent=-120)
    made.setupNameTable({"familyName": path.stem, "styleName": "Regular", "psName": path.stem})
    made.setupOS2(sTypoAscender=880, sTypoDescender=-120, usWinAscent=880, usWinDescent=120)
    made.setupPost()
    made.save(str(path))
    return path


def _box(left: int, right: int) -> Any:
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((left, -100))
    for point in ((left, 750), (right, 750), (right, -100)):
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


def _raised(said: str) -> str:
    return _NOTE.sub(r"<super>\1</super>", html.escape(said, quote=False))


def _docx(path: Path, parts: tuple[Part, ...], language: str) -> None:
    import docx

    document = docx.Document()
    for part in parts:
        if part.kind == "heading":
            document.add_heading(part.said[0], 1)
        elif part.kind == "table":
            table = document.add_table(0, len(part.rows[0]))
            for row in part.rows:
                for cell, said in zip(table.add_row().cells, row, strict=True):
                    cell.text = said
        else:
            entries = part.said if part.kind == "list" else [_blank(language).join(part.said)]
            for said in entries:
                paragraph = document.add_paragraph(style="List Bullet" if part.kind == "list" else None)
                for place, text in enumerate(_NOTE.split(said)):
                    paragraph.add_run(text).font.superscript = bool(place % 2)
    document.save(str(path))


def _html(path: Path, parts: tuple[Part, ...], language: str) -> None:
    path.write_text(_page(parts, language), encoding="utf-8")


def _page(parts: tuple[Part, ...], language: str, look: str = "") -> str:
    said: list[str] = []
    for part in parts:
        raised = [_NOTE.sub(r"<sup>\1</sup>", html.escape(one, quote=False)) for one in part.said]
        if part.kind == "heading":
            said.append(f"<h2>{raised[0]}</h2>")
        elif part.kind == "list":
            said.append("<ul>" + "".join(f"<li>{one}</li>" for one in raised) + "</ul>")
        elif part.kind == "table":
            head, *rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in part.rows)
            body = "".join(f"<tr>{row}</tr>" for row in rows)
            head = head.replace("td>", "th>")
            said.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        else:
            said.append(f"<p>{_blank(language).join(raised)}</p>")
    look = (
        "@page{size:A5;margin:15mm}body{font:11px boxes,'DejaVu Sans'}td,th{border:1px solid}"
        f"table{{border-collapse:collapse}}sup{{font-size:7px}}{look}"
    )
    way = "rtl" if language == "ar" else "ltr"
    begin = f'<!doctype html><html lang="{language}" dir="{way}"><meta charset="utf-8"><title>{TITLE}</title>'
    return f"{begin}<style>{look}</style><body>{''.join(said)}</body></html>"


_BOOK = (
    "@page{size:A4}body{columns:2;line-height:1.5;text-align:justify}p{margin:0;text-indent:2em}ul{margin:0}"
    "h2{font-size:11px;margin:0;text-align:left}sup{font-size:smaller}"
)


def _printed(path: Path, parts: tuple[Part, ...], language: str, look: str = "") -> None:
    browser = next((one for one in _CHROMIUM if Path(one).exists()), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(_CHROMIUM)} is installed; it prints HTML as PDF")
    page = path.with_suffix(".page.html")
    said = "".join(one for part in parts for one in (*part.said, *(c for row in part.rows for c in row)))
    for weight in (400, 700) if language not in ("en", "ar") else ():
        name = f"{path.stem}-{'Bold' if weight > 400 else 'Regular'}.ttf"
        _font(path.with_name(name), said, is_bold=weight > 400)
        look += f"@font-face{{font-family:boxes;font-weight:{weight};src:url({name})}}"
    page.write_text(_page(parts, language, look), encoding="utf-8")
    # The pages are our own and hold no script; without its sandbox the browser also runs as root.
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    subprocess.run([*command, f"--print-to-pdf={path}", page.as_uri()], check=True, capture_output=True)


def _book(path: Path, parts: tuple[Part, ...], language: str) -> None:
    """Print two columns of lines that end alike, first lines set in, no gaps, headings bold and no larger than the text."""
    _printed(path, parts, language, _BOOK)


def _markdown(path: Path, parts: tuple[Part, ...], language: str) -> None:
    said: list[str] = []
    for part in parts:
        if part.kind == "heading":
            said.append(f"## {part.said[0]}")
        elif part.kind == "list":
            said.append("\n".join("- " + _NOTE.sub(r"[^\1]", one) for one in part.said))
        elif part.kind == "table":
            lines = ["| " + " | ".join(row) + " |" for row in part.rows]
            said.append("\n".join([lines[0], "|" + " --- |" * len(part.rows[0]), *lines[1:]]))
        else:
            said.append(_joined(part, language, r"[^\1]"))
    path.write_text("\n\n".join(said) + "\n", encoding="utf-8")


def _plain(path: Path, parts: tuple[Part, ...], language: str) -> None:
    """Write lines of at most 72 characters, as mail and old reports have them."""
    import textwrap

    said: list[str] = []
    for part in parts:
        if part.kind == "heading":
            said.append(part.said[0])
        elif part.kind == "table":
            widths = [max(len(row[n]) for row in part.rows) for n in range(len(part.rows[0]))]
            lines = ["    ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in part.rows]
            said.append("\n".join(line.rstrip() for line in lines))
        elif part.kind == "list":
            entries = [textwrap.wrap(_NOTE.sub(r"[\1]", one), 68) for one in part.said]
            said.append("\n".join("\n".join(f"    {line}" for line in entry) for entry in entries))
        else:
            said.append("\n".join(textwrap.wrap(_joined(part, language, r"[\1]"), 72)))
    path.write_text("\n\n".join(said) + "\n", encoding="utf-8")

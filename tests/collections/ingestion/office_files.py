"""Writes small office packages, part by part, so that a test says exactly what is in them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAW = "http://schemas.openxmlformats.org/drawingml/2006/main"


def package(path: Path, parts: Mapping[str, str | bytes], level: int | None = None) -> Path:
    """Write a ZIP archive; level 1 packs a bomb in half of the time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def relations(targets: dict[str, tuple[str, str]]) -> str:
    """Write a part of relations: {id: (last word of its type, target)}."""
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_REL}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def xlsx(path: Path, sheets: dict[str, str], *, styles: str = "", strings: str = "") -> Path:
    """Write a workbook; a sheet is the inner XML of its ``worksheet``."""
    names = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="s{i}"/>' for i, name in enumerate(sheets, 1))
    targets = {f"s{i}": ("worksheet", f"worksheets/s{i}.xml") for i in range(1, len(sheets) + 1)}
    targets["st"] = ("styles", "styles.xml")
    targets["ss"] = ("sharedStrings", "sharedStrings.xml")
    parts: dict[str, str | bytes] = {
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_REL}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(targets),
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{styles}</styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{strings}</sst>',
    }
    for i, inner in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/s{i}.xml"] = f'<worksheet xmlns="{_SHEET}">{inner}</worksheet>'
    return package(path, parts)


def rows(*values: tuple[str | float | None, ...], first: int = 1) -> str:
    """Write rows of cells as ``sheetData``: texts inline, numbers as numbers, None as no cell."""
    out = []
    for number, row in enumerate(values, first):
        cells = ""
        for column, value in enumerate(row):
            place = f"{chr(65 + column)}{number}"
            if isinstance(value, str):
                cells += f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
            elif value is not None:
                cells += f'<c r="{place}"><v>{value}</v></c>'
        out.append(f'<row r="{number}">{cells}</row>')
    return f"<sheetData>{''.join(out)}</sheetData>"


def pptx(path: Path, slides: list[str], *, extra: dict[str, str | bytes] | None = None) -> Path:
    """Write a presentation; a slide is the inner XML of its shape tree."""
    ids = "".join(f'<p:sldId id="{256 + i}" r:id="r{i}"/>' for i in range(len(slides)))
    spaces = f'xmlns:p="{_SLIDE}" xmlns:a="{_DRAW}" xmlns:r="{_REL}"'
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst>"
        '<p:sldSz cx="9144000" cy="6858000"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            {f"r{i}": ("slide", f"slides/slide{i + 1}.xml") for i in range(len(slides))}
        ),
    }
    for i, inner in enumerate(slides, 1):
        parts[f"ppt/slides/slide{i}.xml"] = (
            f"<p:sld {spaces}><p:cSld><p:spTree>{inner}</p:spTree></p:cSld></p:sld>"
        )
    parts.update(extra or {})
    return package(path, parts)


def shape(*paragraphs: str, place: str = "body") -> str:
    """Write a shape of a slide with one run a paragraph."""
    inner = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody>{inner}</p:txBody></p:sp>"
    )


def slide_table(*table: tuple[str, ...]) -> str:
    """Write a table of a slide; a cell is its text, or inner attributes and text as ``attributes|text``."""
    body = ""
    for row in table:
        cells = ""
        for cell in row:
            attributes, _, text = cell.rpartition("|")
            run = f"<a:r><a:t>{text}</a:t></a:r>" if text else ""
            cells += f"<a:tc {attributes}><a:txBody><a:p>{run}</a:p></a:txBody></a:tc>"
        body += f"<a:tr>{cells}</a:tr>"
    return f"<p:graphicFrame><a:tbl>{body}</a:tbl></p:graphicFrame>"


def odt(path: Path, body: str, *, head: str = "") -> Path:
    """Write an OpenDocument text; the body is the inner XML of ``office:text``."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<?xml version="1.0"?>{head}<office:document-content xmlns:office="{space}:office:1.0" '
        f'xmlns:text="{space}:text:1.0" xmlns:table="{space}:table:1.0" office:version="1.2">'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return package(path, {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def epub(path: Path, chapters: list[str]) -> Path:
    """Write a book; a chapter is the inner XML of its body."""
    items = "".join(
        f'<item id="c{i}" href="c{i}.xhtml" media-type="application/xhtml+xml"/>'
        for i in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/>'
        "</rootfiles></container>",
        "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for i, body in enumerate(chapters):
        parts[f"OPS/c{i}.xhtml"] = (
            '<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head>'
            f"<body>{body}</body></html>"
        )
    return package(path, parts)

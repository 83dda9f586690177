"""A document as DOCX, with real footnotes, headings and lists.

Written by hand, as the format is small for what a document here has, and the usual library can't write footnotes. Each part is plain
WordprocessingML (ISO/IEC 29500); all text is escaped, and the only addresses outside are those of links.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from basics.papers.model import Align, Block, Note, Paper, Picture, Run, is_right_to_left, runs_text, writable

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PARTS = {"document": "document.main", "styles": "styles", "footnotes": "footnotes", "numbering": "numbering"}
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""Of each file in the archive: the same text is the same bytes."""
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
_EMU = 914_400  # to the inch
_WIDEST, _HIGHEST = 5_900_000, 6_000_000
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}
_LEVELS = 9
_COLUMNS_MOST = 63
"""Of a table: Word opens no file with more."""


def docx_write(paper: Paper) -> bytes:
    """Return a document as a DOCX file."""
    writer = _Writer(paper)
    body = "".join(map(writer.block, paper.blocks))
    title = _paragraph("Title", _text(paper.title), paper.title)
    page = (
        '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/>'
        '<w:pgMar w:top="1304" w:right="1304" w:bottom="1304" w:left="1304" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr>'
    )
    parts = {
        "word/document.xml": _root("document", f"<w:body>{title}{body}{page}</w:body>"),
        "word/footnotes.xml": _root("footnotes", _footnotes(paper.notes)),
        "word/styles.xml": _root("styles", _STYLES),
        "word/numbering.xml": _root("numbering", _numbering(writer.starts)),
        "word/_rels/document.xml.rels": _relations(writer.links, writer.pictures),
        "docProps/core.xml": _core(paper.title),
        "_rels/.rels": _PACKAGE_RELATIONS,
        "[Content_Types].xml": _types(),
    }
    media = {f"word/media/picture{n}": picture.content for n, picture in enumerate(writer.pictures, 1)}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in reversed(parts):  # the list of types comes first
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), _HEAD + parts[name], zipfile.ZIP_DEFLATED)
        for picture, (name, content) in zip(writer.pictures, media.items(), strict=True):
            ending = _ENDINGS[picture.media_type]
            archive.writestr(zipfile.ZipInfo(f"{name}.{ending}", _MOMENT), content, zipfile.ZIP_STORED)
    return held.getvalue()


class _Writer:
    """Writes blocks, and keeps what other parts must know: addresses of links, numbers that lists begin with."""

    def __init__(self, paper: Paper) -> None:
        self.links: list[str] = []
        self.pictures: list[Picture] = []
        self.starts: list[int] = []
        self._noted: set[int] = set()
        self._open: dict[int, int] = {}  # the list that is open at each depth

    def block(self, block: Block) -> str:
        said = runs_text(block.runs)
        if block.kind != "item":
            self._open = {}
        match block.kind:
            case "heading":
                return _paragraph(f"Heading{block.level}", self._runs(block.runs), said)
            case "code":
                return "".join(
                    _paragraph("Code", _text(line, "<w:noProof/>"), "", _indent(block.level))
                    for line in said.split("\n")
                )
            case "item":
                return self._item(block, said)
            case "table":
                return self._table(block.rows, block.aligns)
            case "picture" if block.picture is not None:
                caption = _paragraph("Small", self._runs(block.runs), said) if block.runs else ""
                return self._picture(block.picture) + caption
            case "rule":
                return '<w:p><w:pPr><w:pBdr><w:bottom w:val="single" w:sz="4" w:space="1" w:color="999999"/></w:pBdr></w:pPr></w:p>'
            case "quote":
                return _paragraph("Quote", self._runs(block.runs), said, _indent(block.level))
            case "small":
                return _paragraph("Small", self._runs(block.runs), said)
            case _:
                return _paragraph("", self._runs(block.runs), said, _indent(block.level))

    def _picture(self, picture: Picture) -> str:
        """Write a picture as wide as its pixels at 144 to the inch, or as the page allows."""
        self.pictures.append(picture)
        number = len(self.pictures)
        scale = min(_EMU / 144, _WIDEST / picture.width, _HIGHEST / picture.height)
        size = f'cx="{int(picture.width * scale)}" cy="{int(picture.height * scale)}"'
        told = f'id="{number}" name="Picture {number}" descr={quoteattr(writable(picture.alt))}'
        return (
            f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{_DRAWING}/wordprocessingDrawing" distT="0" distB="0" distL="0" distR="0">'
            f"<wp:extent {size}/><wp:docPr {told}/>"
            f'<a:graphic xmlns:a="{_DRAWING}/main"><a:graphicData uri="{_DRAWING}/picture">'
            f'<pic:pic xmlns:pic="{_DRAWING}/picture"><pic:nvPicPr><pic:cNvPr {told}/><pic:cNvPicPr/></pic:nvPicPr>'
            f'<pic:blipFill><a:blip xmlns:r="{_R}" r:embed="picture{number}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>'
            f'<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext {size}/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr>'
            "</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
        )

    def _item(self, block: Block, said: str) -> str:
        level = min(block.level, _LEVELS) - 1
        if block.mark == "number" and (level not in self._open or block.number < 2):
            self.starts.append(block.number)
            self._open[level] = len(self.starts)
        self._open = {depth: number for depth, number in self._open.items() if depth <= level}
        if block.mark in ("bullet", "number"):
            number = 1 if block.mark == "bullet" else 1 + self._open[level]
            place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
            return _paragraph("ListParagraph", self._runs(block.runs), said, place)
        sign = {"todo": "☐ ", "done": "☑ "}.get(block.mark, "")
        return _paragraph("ListParagraph", _text(sign) + self._runs(block.runs), said, _indent(block.level))

    def _table(self, rows: Sequence[Sequence[Sequence[Run]]], aligns: Sequence[Align]) -> str:
        columns = max((len(row) for row in rows), default=0)
        if not columns:
            return ""
        if columns > _COLUMNS_MOST:  # a row is a line
            lines = [[run for cell in row for run in (*cell, Run(" | "))][:-1] for row in rows]
            return "".join(_paragraph("TableText", self._runs(line), runs_text(line)) for line in lines)
        written = []
        for place, row in enumerate(rows):
            head = "<w:trPr><w:cantSplit/><w:tblHeader/></w:trPr>" if place == 0 else ""
            cells = zip([*row, *[()] * (columns - len(row))], [*aligns, *[""] * columns], strict=False)
            written.append(
                f"<w:tr>{head}{''.join(self._cell(runs, place == 0, align) for runs, align in cells)}</w:tr>"
            )
        grid = f'<w:gridCol w:w="{9298 // columns}"/>' * columns
        return (
            '<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="5000" w:type="pct"/></w:tblPr>'
            f"<w:tblGrid>{grid}</w:tblGrid>{''.join(written)}</w:tbl><w:p/>"
        )

    def _cell(self, runs: Sequence[Run], is_head: bool, align: str) -> str:
        style = "TableHead" if is_head else "TableText"
        # "right" is the end of a line: Word turns it round where a paragraph runs from right to left.
        place = f'<w:jc w:val="{align}"/>' if align else ""
        text = _paragraph(style, self._runs(runs), runs_text(runs), place)
        return f'<w:tc><w:tcPr><w:tcW w:w="0" w:type="auto"/></w:tcPr>{text}</w:tc>'

    def _runs(self, runs: Iterable[Run]) -> str:
        return "".join(map(self._run, runs))

    def _run(self, run: Run) -> str:
        if run.note:
            return self._reference(run.note)
        style = "".join(
            mark
            for mark, is_set in (
                ('<w:rStyle w:val="CodeInline"/>', run.code),
                ('<w:rStyle w:val="Hyperlink"/>', run.link and not run.code),
                ("<w:b/>", run.bold),
                ("<w:i/>", run.italic),
                ("<w:strike/>", run.strike),
            )
            if is_set
        )
        text = _text(run.text, style)
        if not run.link:
            return text
        self.links.append(run.link)
        return f'<w:hyperlink r:id="link{len(self.links)}">{text}</w:hyperlink>'

    def _reference(self, note: int) -> str:
        """Refer to a footnote; Word numbers each mark, so a second one to the same footnote is a field with its number."""
        style = '<w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>'
        if note not in self._noted:
            self._noted.add(note)
            return (
                f'<w:bookmarkStart w:id="{note}" w:name="_Ref{note:08}"/><w:r>{style}<w:footnoteReference w:id="{note}"/></w:r>'
                f'<w:bookmarkEnd w:id="{note}"/>'
            )
        field = f'<w:fldSimple w:instr=" NOTEREF _Ref{note:08} \\f \\h ">'
        return f"{field}<w:r>{style}<w:t>{note}</w:t></w:r></w:fldSimple>"


def _root(name: str, inner: str) -> str:
    return f'<w:{name} xmlns:w="{_W}" xmlns:r="{_R}">{inner}</w:{name}>'


def _paragraph(style: str, inner: str, said: str, place: str = "") -> str:
    """Return a paragraph; what runs from right to left says so, by itself and in each of its runs."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    turned = is_right_to_left(said)
    # The schema has an order: style, numbers, direction, indent or alignment.
    numbers, after = (place, "") if place.startswith("<w:numPr") else ("", place)
    properties = named + numbers + ("<w:bidi/>" if turned else "") + after
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{inner}</w:p>"


def _indent(level: int) -> str:
    return f'<w:ind w:start="{360 * level}"/>' if level else ""


def _text(text: str, style: str = "") -> str:
    style += "<w:rtl/>" if is_right_to_left(text) else ""
    lines = (f'<w:t xml:space="preserve">{escape(line)}</w:t>' for line in writable(text).split("\n"))
    return f"<w:r>{f'<w:rPr>{style}</w:rPr>' if style else ''}{'<w:br/>'.join(lines)}</w:r>" if text else ""


def _footnotes(notes: Sequence[Note]) -> str:
    # The two that every file has: the line above footnotes, and the one where they go on.
    parts = [
        f'<w:footnote w:type="{kind}" w:id="{place}"><w:p><w:r><w:{mark}/></w:r></w:p></w:footnote>'
        for place, kind, mark in (
            (-1, "separator", "separator"),
            (0, "continuationSeparator", "continuationSeparator"),
        )
    ]
    for number, note in enumerate(notes, 1):
        own = '<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteRef/></w:r>'
        quote = _text(f" “{note.quote}”") if note.quote else ""
        inner = own + _text(" ") + _text(note.title, "<w:b/>") + quote
        text = _paragraph("FootnoteText", inner, note.quote or note.title)
        parts.append(f'<w:footnote w:id="{number}">{text}</w:footnote>')
    return "".join(parts)


def _numbering(starts: Sequence[int]) -> str:
    def levels(form: str, text: str) -> str:
        return "".join(
            f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text.format(n + 1)}"/>'
            f'<w:lvlJc w:val="start"/><w:pPr><w:ind w:start="{360 * (n + 1)}" w:hanging="360"/></w:pPr></w:lvl>'
            for n in range(_LEVELS)
        )

    kinds = (
        f'<w:abstractNum w:abstractNumId="0">{levels("bullet", "•")}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="1">{levels("decimal", "%{}.")}</w:abstractNum>'
    )
    lists = '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    for number, start in enumerate(starts, 2):
        begun = "".join(
            f'<w:lvlOverride w:ilvl="{n}"><w:startOverride w:val="{start}"/></w:lvlOverride>'
            for n in range(_LEVELS)
        )
        lists += f'<w:num w:numId="{number}"><w:abstractNumId w:val="1"/>{begun}</w:num>'
    return kinds + lists


def _relations(links: Sequence[str], pictures: Sequence[Picture]) -> str:
    parts = [
        f'<Relationship Id="{name}" Type="{_R}/{name}" Target="{name}.xml"/>'
        for name in _PARTS
        if name != "document"
    ]
    parts += [
        f'<Relationship Id="link{n}" Type="{_R}/hyperlink" Target={quoteattr(writable(link))} TargetMode="External"/>'
        for n, link in enumerate(links, 1)
    ]
    parts += [
        f'<Relationship Id="picture{n}" Type="{_R}/image" Target="media/picture{n}.{_ENDINGS[picture.media_type]}"/>'
        for n, picture in enumerate(pictures, 1)
    ]
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(parts)}</Relationships>'


_PACKAGE_RELATIONS = (
    f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="document" Type="{_R}/officeDocument" Target="word/document.xml"/>'
    f'<Relationship Id="core" Type="{_PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"/>'
    "</Relationships>"
)


def _types() -> str:
    parts = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_WORD}.{kind}+xml"/>'
        for name, kind in _PARTS.items()
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="png" ContentType="image/png"/><Default Extension="jpg" ContentType="image/jpeg"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        f"{parts}</Types>"
    )


def _core(title: str) -> str:
    return (
        f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(writable(title))}</dc:title></cp:coreProperties>"
    )


def _style(name: str, label: str, paragraph: str = "", run: str = "", kind: str = "paragraph") -> str:
    based = '<w:basedOn w:val="Normal"/>' if kind == "paragraph" else ""
    return (
        f'<w:style w:type="{kind}" w:styleId="{name}"><w:name w:val="{label}"/>{based}'
        + (f"<w:pPr>{paragraph}</w:pPr>" if paragraph else "")
        + (f"<w:rPr>{run}</w:rPr>" if run else "")
        + "</w:style>"
    )


_MONO = '<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Courier New"/>'
_BORDERS = "".join(
    f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="BBBBBB"/>'
    for side in ("top", "start", "bottom", "end", "insideH", "insideV")
)
_STYLES = "".join(
    [
        '<w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:cs="Arial"/><w:sz w:val="21"/>'
        '<w:szCs w:val="21"/></w:rPr></w:rPrDefault><w:pPrDefault><w:pPr><w:spacing w:after="120" w:line="269" w:lineRule="auto"/>'
        "</w:pPr></w:pPrDefault></w:docDefaults>",
        '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>',
        _style(
            "Title", "Title", '<w:spacing w:after="160"/>', '<w:b/><w:sz w:val="36"/><w:szCs w:val="36"/>'
        ),
        *(
            _style(
                f"Heading{n}",
                f"heading {n}",
                f'<w:keepNext/><w:spacing w:before="{320 - 30 * n}" w:after="80"/><w:outlineLvl w:val="{n - 1}"/>',
                f'<w:b/><w:sz w:val="{max(22, 34 - 4 * n)}"/><w:szCs w:val="{max(22, 34 - 4 * n)}"/>',
            )
            for n in range(1, 7)
        ),
        _style("ListParagraph", "List Paragraph", '<w:spacing w:after="60"/>'),
        _style("Quote", "Quote", "", '<w:i/><w:color w:val="555555"/>'),
        _style(
            "Code",
            "Code",
            '<w:shd w:val="clear" w:fill="F3F3F3"/><w:spacing w:after="0"/>',
            _MONO + '<w:sz w:val="18"/>',
        ),
        _style("Small", "Small", "", '<w:color w:val="666666"/><w:sz w:val="18"/><w:szCs w:val="18"/>'),
        _style("TableText", "Table Text", '<w:spacing w:before="30" w:after="30"/>', '<w:sz w:val="19"/>'),
        _style(
            "TableHead", "Table Head", '<w:spacing w:before="30" w:after="30"/>', '<w:b/><w:sz w:val="19"/>'
        ),
        _style(
            "FootnoteText",
            "footnote text",
            '<w:spacing w:after="40"/>',
            '<w:sz w:val="18"/><w:szCs w:val="18"/>',
        ),
        _style(
            "FootnoteReference", "footnote reference", "", '<w:vertAlign w:val="superscript"/>', "character"
        ),
        _style("CodeInline", "Code Inline", "", _MONO, "character"),
        _style("Hyperlink", "Hyperlink", "", '<w:color w:val="0B57D0"/><w:u w:val="single"/>', "character"),
        '<w:style w:type="table" w:styleId="TableGrid"><w:name w:val="Table Grid"/>'
        f"<w:tblPr><w:tblBorders>{_BORDERS}</w:tblBorders></w:tblPr></w:style>",
    ]
)

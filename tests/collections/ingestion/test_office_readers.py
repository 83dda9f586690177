from __future__ import annotations

import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.types import ReadFailure
from tests.collections.ingestion import office_files as make
from tests.collections.ingestion.files import shared_file

STYLES = (
    '<numFmts><numFmt numFmtId="170" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="171" formatCode="0.0%"/>'
    '<numFmt numFmtId="172" formatCode="&quot;days&quot; 0"/></numFmts><cellXfs><xf numFmtId="0"/>'
    '<xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="22"/><xf numFmtId="9"/><xf numFmtId="172"/></cellXfs>'
)


def read(path):
    return document_extract(path, name=path.name)


def test_sheets_are_pages_when_a_workbook_is_read(tmp_path):
    path = make.xlsx(
        tmp_path / "a.xlsx",
        {
            "Rates": make.rows(("Code", "Rate"), ("8539.50.00", 2.5), ("0201.20.04", 4)),
            "Notes": make.rows(("Valid from July to December",)),
        },
    )
    document = read(path)
    assert document.is_paged
    assert document.metadata["page_noun"] == "sheet"
    assert document.metadata["sheets"] == ["Rates", "Notes"]
    assert [h.title for h in document.headings] == ["Rates", "Notes"]
    assert document.pages[0].text == (
        "## Rates\n\n| Code | Rate |\n| --- | --- |\n| 8539.50.00 | 2.5 |\n| 0201.20.04 | 4 |\n\n"
    )
    assert "Valid from July to December" in document.pages[1].text
    tables = [c for c in chunk_document(document) if c.kind == "table"]
    assert [(c.headings, c.page_start) for c in tables] == [(("Rates",), 1)]


def test_values_read_as_excel_shows_them_when_cells_are_formatted(tmp_path):
    cells = (
        '<sheetData><row r="1"><c r="A1" s="1"><v>45658</v></c><c r="B1" s="2"><v>0.025</v></c>'
        '<c r="C1" s="3"><v>45658.5</v></c><c r="D1"><v>0.30000000000000004</v></c>'
        '<c r="E1" t="b"><v>1</v></c><c r="F1" t="s"><v>0</v></c><c r="G1" t="e"><v>#N/A</v></c>'
        '<c r="H1" s="4"><v>0.025</v></c><c r="I1" s="5"><v>30</v></c></row></sheetData>'
    )
    strings = "<si><r><t>rich </t></r><r><t>text</t></r><rPh><t>spoken</t></rPh></si>"
    text = read(make.xlsx(tmp_path / "a.xlsx", {"S": cells}, styles=STYLES, strings=strings)).text
    assert "| 2025-01-01 | 2.5% | 2025-01-01 12:00:00 | 0.3 | TRUE | rich text | #N/A | 2.5% | 30 |" in text


def test_merged_cells_repeat_when_a_header_spans_columns(tmp_path):
    sheet = make.rows(("Code", "Duty", None), (None, "General", "Special"), ("8539.50.00", "2%", "Free")) + (
        '<mergeCells count="2"><mergeCell ref="B1:C1"/><mergeCell ref="A1:A2"/></mergeCells>'
    )
    document = read(make.xlsx(tmp_path / "a.xlsx", {"S": sheet}))
    region = document.regions[0]
    assert region.header.split("\n")[:2] == ["| Code | Duty | Duty |", "| Code | General | Special |"]
    assert document.text[region.body_start :].startswith("| 8539.50.00 | 2% | Free |")


def test_tables_are_apart_when_blank_cells_stand_between_them(tmp_path):
    sheet = make.rows(
        ("Code", "Rate", None, None, "Land", "Area"),
        ("8539", 2, None, None, "Chile", 5),
        (None,),
        ("Total", "Sum"),
        ("of all", "things"),
    )
    document = read(make.xlsx(tmp_path / "a.xlsx", {"S": sheet}))
    shown = [document.text[r.char_start : r.char_end] for r in document.regions]
    assert len(shown) == 3
    assert shown[1].startswith("| Land | Area |")


def test_hidden_sheet_is_read_with_a_warning(tmp_path):
    path = make.xlsx(tmp_path / "a.xlsx", {"Open": make.rows(("a", 1)), "Kept": make.rows(("b", 2))})
    import zipfile

    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b'name="Kept"', b'name="Kept" state="hidden"')
    document = read(make.package(path, parts))
    assert any("Kept" in warning for warning in document.warnings)
    assert "| b | 2 |" in document.text


def test_sheet_is_cut_into_parts_when_it_is_too_large_for_a_page(tmp_path):
    sheet = make.rows(("Code", "Text"), *((f"85{i:06d}", "words " * 10) for i in range(6000)))
    document = read(make.xlsx(tmp_path / "a.xlsx", {"S": sheet}))
    assert not document.is_paged
    assert len(document.pages) > 5
    chunks = chunk_document(document)
    assert all(c.metadata.get("table_header", "").startswith("| Code |") for c in chunks[1:])


def test_slides_are_pages_when_a_presentation_is_read(tmp_path):
    numbered = (
        '<p:sp><p:txBody><a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>first</a:t></a:r></a:p>'
        '<a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>sec</a:t></a:r><a:r><a:t>ond</a:t></a:r>'
        "</a:p></p:txBody></p:sp>"
    )
    path = make.pptx(
        tmp_path / "a.pptx",
        [
            make.shape("Duty rates", place="title") + make.shape("Code 8539.50.00 pays 2 %"),
            make.shape("Steps", place="title") + numbered + make.shape("7", place="sldNum"),
        ],
    )
    document = read(path)
    assert [p.number for p in document.pages] == [1, 2]
    assert document.metadata["page_noun"] == "slide"
    assert document.title == "Duty rates"
    assert document.pages[0].width == 720
    assert [h.title for h in document.headings] == ["Duty rates", "Steps"]
    assert "8539.50.00" in document.pages[0].text
    assert document.pages[1].text == "# Steps\n\n1. first\n2. second\n\n"
    chunks = chunk_document(document)
    assert chunks[0].text == document.text[chunks[0].char_start : chunks[0].char_end]


def test_merged_cells_of_a_slide_repeat_their_text(tmp_path):
    table = make.slide_table(
        ("", 'gridSpan="2"|Class', 'hMerge="1"|'),
        ('rowSpan="2"|R1', "A", "B"),
        ('vMerge="1"|', "True", "False"),
    )
    document = read(make.pptx(tmp_path / "a.pptx", [table]))
    assert document.text.split("\n")[:4] == [
        "|  | Class | Class |",
        "| --- | --- | --- |",
        "| R1 | A | B |",
        "| R1 | True | False |",
    ]


def test_charts_and_notes_are_read_when_a_slide_has_them(tmp_path):
    space = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    chart = (
        f'<c:chartSpace xmlns:c="{space}"><c:chart><c:plotArea><c:ser><c:tx><c:v>Imports</c:v></c:tx>'
        '<c:cat><c:pt idx="0"><c:v>2024</c:v></c:pt><c:pt idx="1"><c:v>2025</c:v></c:pt></c:cat>'
        '<c:val><c:pt idx="0"><c:v>17.5</c:v></c:pt><c:pt idx="1"><c:v>21</c:v></c:pt></c:val></c:ser>'
        "</c:plotArea></c:chart></c:chartSpace>"
    )
    notes = (
        '<p:notes xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">{make.shape("Say this slowly.")}</p:notes>'
    )
    extra: dict[str, str | bytes] = {
        "ppt/charts/chart1.xml": chart,
        "ppt/notesSlides/n1.xml": notes,
        "ppt/slides/_rels/slide1.xml.rels": make.relations(
            {"a": ("chart", "../charts/chart1.xml"), "b": ("notesSlide", "../notesSlides/n1.xml")}
        ),
    }
    text = read(make.pptx(tmp_path / "a.pptx", [make.shape("Trade")], extra=extra)).text
    assert "|  | Imports |\n| --- | --- |\n| 2024 | 17.5 |\n| 2025 | 21 |" in text
    assert "Notes: Say this slowly." in text


def test_open_document_keeps_structure_and_codes(tmp_path):
    body = (
        '<text:h text:outline-level="1">Tariff notes</text:h><text:p>0201.20.04 Bone-in beef, see INV-100234.</text:p>'
        "<table:table><table:table-row><table:table-cell><text:p>Code</text:p></table:table-cell>"
        "<table:table-cell><text:p>Rate</text:p></table:table-cell></table:table-row><table:table-row>"
        "<table:table-cell><text:p>8539.50.00</text:p></table:table-cell><table:table-cell><text:p>2%</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    document = read(make.odt(tmp_path / "a.odt", body))
    for code in ("0201.20.04", "INV-100234", "8539.50.00"):
        assert code in document.text
    assert [h.title for h in document.headings] == ["Tariff notes"]
    assert [c.kind for c in chunk_document(document)] == ["doc", "table"]


def test_chapters_come_in_reading_order_when_a_book_is_read(tmp_path):
    path = make.epub(
        tmp_path / "a.epub",
        ["<h1>One</h1><p>Code 0201.20.04 first.</p>", "<h1>Two</h1><p>Then 8539.50.00.</p>"],
    )
    document = read(path)
    assert [h.title for h in document.headings] == ["One", "Two"]
    assert document.text.index("0201.20.04") < document.text.index("8539.50.00")


def test_failure_is_no_text_when_slides_hold_pictures_only(tmp_path):
    with pytest.raises(ReadFailure) as caught:
        read(make.pptx(tmp_path / "a.pptx", ["<p:pic/>"]))
    assert caught.value.code == "no_text"


def test_real_workbook_and_slides_are_read_whole():
    book = read(shared_file("office-docling-gt", "xlsx_01.xlsx"))
    assert [p.number for p in book.pages] == [1, 2, 3, 4]
    assert book.metadata["sheets"] == ["Sheet1", "Sheet2", "Sheet3", "Sheet4"]
    assert "| first (f) | header (f) | header (f) |" in book.text
    slides = read(shared_file("office-docling-gt", "powerpoint_sample.pptx"))
    assert len(slides.pages) == 3
    assert "Maybe a list?" in slides.text
    assert slides.regions[0].columns == 7

from __future__ import annotations

import time

import pytest
from reportlab.lib.pagesizes import landscape, letter
from reportlab.pdfgen.canvas import Canvas

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.readers.pdf import PdfReader
from apps.collections.ingestion.types import ReaderLimits
from tests.collections.ingestion.files import shared_file


def ruled(canvas, rows, *, x=60.0, y=700.0, widths=(90, 200, 60), height=20.0, rules=None):
    """Draw a table with a line under each row (or only under those in ``rules``) and between its columns."""
    total = sum(widths)
    for i, row in enumerate(rows):
        at = x
        for text, width in zip(row, widths, strict=True):
            for j, line in enumerate(str(text).split("\n")):
                canvas.drawString(at + 3, y - i * height - min(14, height * 0.7) - j * 10, line)
            at += width
    for i in range(len(rows) + 1):
        if rules is None or i in rules:
            canvas.line(x, y - i * height, x + total, y - i * height)
    at = x
    for width in (*widths, 0):
        canvas.line(at, y, at, y - len(rows) * height)
        at += width


def pdf(path, draw, *, pages=1, size=letter):
    canvas = Canvas(str(path), pagesize=size)
    for page in range(pages):
        canvas.setFont("Helvetica", 9)
        draw(canvas, page)
        canvas.showPage()
    canvas.save()
    return path


def read(path):
    return document_extract(path, name=path.name)


RATES = [("Code", "Goods", "Rate"), *((f"85{i:02d}.10.00", f"Lamp number {i}", f"{i}%") for i in range(15))]


def test_cells_map_to_exact_offsets_when_a_table_is_ruled(tmp_path):
    def draw(canvas, _):
        canvas.drawString(60, 740, "Table 1 shows the rates of this year.")
        ruled(canvas, RATES)
        canvas.drawString(60, 300, "Text below the table goes on.")

    document = read(pdf(tmp_path / "a.pdf", draw))
    [region] = document.regions
    assert (len(region.rows), region.columns) == (16, 3)
    assert region.header == "| Code | Goods | Rate |\n| --- | --- | --- |"
    for start, shown in zip(region.row_starts[1:], region.rows[1:], strict=True):
        line = document.text[start:].split("\n")[0]
        assert shown.replace("|", " ").split() == line.split()
    inside = document.text[region.char_start : region.char_end]
    assert inside.startswith("Code Goods Rate")
    assert "Text below" not in inside


def test_every_piece_has_the_header_when_a_pdf_table_is_split(tmp_path):
    rows = [("Code", "Goods", "Rate"), *((f"85{i:02d}.10.00", f"Lamp {i}", f"{i}%") for i in range(30))]
    document = read(pdf(tmp_path / "a.pdf", lambda c, _: ruled(c, rows, height=20)))
    tables = [c for c in chunk_document(document, size=300, overlap=0) if c.kind == "table"]
    assert len(tables) > 2
    for chunk in tables:
        assert chunk.text == document.text[chunk.char_start : chunk.char_end]
        assert chunk.indexed_text.count("| Code | Goods | Rate |") == 1
    shown = "\n".join(c.metadata["table_rows"] for c in tables)
    assert all(f"| 85{i:02d}.10.00 | Lamp {i} | {i}% |" in shown for i in range(30))


def test_header_is_inherited_when_a_table_goes_on_overleaf(tmp_path):
    def draw(canvas, page):
        ruled(canvas, RATES if page == 0 else [(f"90{i:02d}.10.00", "More", "1%") for i in range(10)])

    document = read(pdf(tmp_path / "a.pdf", draw, pages=2))
    assert [r.header.split("\n")[0] for r in document.regions] == ["| Code | Goods | Rate |"] * 2
    assert len(document.regions[1].rows) == 10


def test_rows_are_told_apart_when_rules_stand_only_between_groups(tmp_path):
    rows = [
        ("State", "Permits", "Total"),
        ("Alabama\nAlaska", "18,870\n209", "1\n2"),
        ("Idaho\nIowa", "5\n6", "7\n8"),
    ]
    document = read(pdf(tmp_path / "a.pdf", lambda c, _: ruled(c, rows, height=28)))
    assert document.regions[0].rows[-4:] == (
        "| Alabama | 18,870 | 1 |",
        "| Alaska | 209 | 2 |",
        "| Idaho | 5 | 7 |",
        "| Iowa | 6 | 8 |",
    )


def test_row_stays_one_when_its_text_wraps_in_several_cells(tmp_path):
    rows = [
        ("Code", "Goods", "Rate"),
        ("9903.01.90", "Articles of Brazil, as\nprovided for in note 2", "The duty\nprovided"),
        ("9903.01.91", "Other articles", "Free"),
    ]
    document = read(pdf(tmp_path / "a.pdf", lambda c, _: ruled(c, rows, height=28)))
    assert (
        "| 9903.01.90 | Articles of Brazil, as provided for in note 2 | The duty provided |"
        in document.regions[0].rows
    )


def test_wide_header_names_each_column_it_stands_over(tmp_path):
    def draw(canvas, _):
        for y, low in ((700, 60), (680, 150), (660, 60), (640, 60), (620, 60)):
            canvas.line(low, y, 330, y)
        for x, top in ((60, 700), (150, 700), (210, 680), (270, 680), (330, 700)):
            canvas.line(x, top, x, 620)
        canvas.drawString(65, 675, "Code")
        canvas.drawString(195, 686, "Rates of Duty in force")
        for x, text in ((152, "General"), (212, "Special"), (272, "Other")):
            canvas.drawString(x, 666, text)
        for y, code in ((646, "8539.50.00"), (626, "8539.51.00")):
            canvas.drawString(65, y, code)
            for x, text in ((152, "2%"), (212, "Free"), (272, "35%")):
                canvas.drawString(x, y, text)

    [region] = read(pdf(tmp_path / "a.pdf", draw)).regions
    assert region.header.split("\n")[0] == (
        "| Code | Rates of Duty in force General | Rates of Duty in force Special | Rates of Duty in force Other |"
    )
    assert region.rows[-1] == "| 8539.51.00 | 2% | Free | 35% |"


def test_table_is_found_when_the_page_is_rotated(tmp_path):
    def draw(canvas, _):
        canvas.setPageRotation(90)
        canvas.translate(612, 0)
        canvas.rotate(90)
        ruled(canvas, RATES[:8], y=500)

    [region] = read(pdf(tmp_path / "a.pdf", draw)).regions
    assert region.rows[-1] == "| 8506.10.00 | Lamp number 6 | 6% |"


def test_no_table_comes_when_lines_are_a_frame_a_chart_or_an_underline(tmp_path):
    def draw(canvas, _):
        canvas.rect(50, 50, 500, 700)
        for i in range(10):
            canvas.line(100, 100 + i * 30, 400, 100 + i * 30)
            canvas.line(100 + i * 30, 100, 100 + i * 30, 370)
        canvas.drawString(60, 720, "A page with a frame, an empty grid of a chart and underlined words.")
        canvas.line(60, 718, 200, 718)

    assert read(pdf(tmp_path / "a.pdf", draw)).regions == ()


def test_text_remains_with_a_warning_when_tables_take_too_long(tmp_path):
    path = pdf(tmp_path / "a.pdf", lambda c, _: ruled(c, RATES), pages=3)
    reading = PdfReader().read(path, ReaderLimits(table_seconds=0.0))
    pages = list(reading.pages)
    assert all(not page.regions for page in pages)
    assert "8507.10.00" in pages[2].text
    assert "on pages 1, 2, 3 are kept as plain text" in reading.warnings[0]


def test_page_of_many_lines_is_given_up_quickly(tmp_path):
    def draw(canvas, _):
        canvas.drawString(60, 750, "A drawing of very many lines, and some words beside it.")
        for i in range(6000):
            canvas.line(50 + (i * 7) % 500, 50 + i % 600, 60 + (i * 7) % 500, 50 + i % 600)
            canvas.line(50 + (i * 11) % 500, 50 + i % 600, 50 + (i * 11) % 500, 70 + i % 600)

    path = pdf(tmp_path / "a.pdf", draw)
    started = time.process_time()
    pages = list(PdfReader().read(path, ReaderLimits()).pages)
    assert time.process_time() - started < 3
    assert "very many lines" in pages[0].text


def test_table_of_the_size_of_a_statistics_page_is_read_whole(tmp_path):
    columns = 26
    names = ["State", *(f"Kind {i}" for i in range(1, columns))]
    body = [[f"Land {r}", *(str(r * 100 + c) for c in range(1, columns))] for r in range(55)]
    widths = (70, *([34] * (columns - 1)))

    def draw(canvas, _):
        canvas.setFont("Helvetica", 5)
        ruled(canvas, [names, *body], x=20, y=600, widths=widths, height=10, rules={0, 1, *range(6, 57, 5)})

    [region] = read(pdf(tmp_path / "a.pdf", draw, size=landscape((612, 960)))).regions
    assert region.columns == columns
    assert len(region.rows) == 56
    shown = [row.strip("| ").split(" | ") for row in region.rows[1:]]
    assert shown == body


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "rows", "codes"),
    [("brazil_eo_nov2025_annexes.pdf", 950, 900), ("Metals-ANNEXES-I-A-I-B-II-III-IV.pdf", 950, 350)],
)
def test_annex_has_its_codes_in_table_rows(name, rows, codes):
    document = read(shared_file("trade-us", name))
    tables = [r for r in document.regions if r.kind == "table"]
    assert sum(len(r.rows) for r in tables) >= rows
    found = {
        token
        for r in tables
        for row in r.rows
        for token in identifier_list(row.split(" | ")[0])
        if token[:4].isdigit()
    }
    assert len(found) >= codes
    assert all(r.header for r in tables)
    for region in tables:
        inside = set(identifier_list(document.text[region.char_start : region.char_end]))
        assert set(identifier_list("\n".join(region.rows))) - set(identifier_list(region.header)) <= inside

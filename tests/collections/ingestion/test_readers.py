from __future__ import annotations

import time

import docx
import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.readers.csv import sniff_delimiter
from apps.collections.ingestion.readers.markdown import markdown_structure
from apps.collections.ingestion.types import ReadFailure
from tests.collections.ingestion.files import shared_file


def extracted(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return document_extract(path, name=name)


@pytest.mark.parametrize(
    "data",
    [
        "Größe – naïve “café”".encode(),
        b"\xef\xbb\xbf" + "Größe – naïve “café”".encode(),
        "Größe – naïve “café”".encode("utf-16"),
        "Größe – naïve “café”".encode("utf-16-le"),
        "Größe – naïve “café”".encode("utf-16-be"),
        "Größe – naïve “café”".encode("utf-32"),
        "Größe – naïve “café”".encode("cp1252"),
    ],
)
def test_text_is_decoded_when_encoding_is_not_told(tmp_path, data):
    assert extracted(tmp_path, "a.txt", data).text == "Größe – naïve “café”"


def test_text_is_storable_when_it_holds_nul_and_surrogates(tmp_path):
    text = extracted(tmp_path, "a.txt", b"one\x00 two\r\nthree\rfour \xed\xa0\x80 end" + b" pad" * 50).text
    assert "\x00" not in text
    assert text.startswith("one two\nthree\nfour")
    text.encode()


def test_text_without_words_fails_when_it_is_only_marks(tmp_path):
    with pytest.raises(ReadFailure) as caught:
        extracted(tmp_path, "a.txt", "--- *** ---\n" * 20)
    assert caught.value.code == "no_text"


def test_headings_are_not_taken_from_code_when_markdown_has_fences():
    text = (
        "# Real\n\n```sh\n# not a heading\n| no | table |\n|---|---|\n```\n\nSetext\n------\n\ntext\n\n---\n"
    )
    headings, regions = markdown_structure(text)
    assert [(h.title, h.level) for h in headings] == [("Real", 1), ("Setext", 2)]
    assert [r.kind for r in regions] == ["code"]


def test_front_matter_is_no_heading_when_markdown_has_it(tmp_path):
    document = extracted(tmp_path, "a.md", "---\ntitle: The Name\ntags: x\n---\n\n# Start\n\nWords.\n")
    assert document.title == "The Name"
    assert [h.title for h in document.headings] == ["Start"]


@pytest.mark.parametrize(
    ("line", "title"),
    [("## **Bold** and [a link](http://x.y/z) ##", "Bold and a link"), ("# `code` name", "code name")],
)
def test_heading_is_plain_when_marked_up(line, title):
    assert markdown_structure(line + "\n")[0][0].title == title


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found_when_csv_uses_it(delimiter):
    rows = [["name", "price, EUR", "note; more"], ["a", "1", "x"], ["b", "2", "y"]]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    assert sniff_delimiter(text) == delimiter


def test_rows_keep_their_header_when_csv_is_long(tmp_path):
    rows = "".join(f'{i},"item, number {i}\nsecond line",{i}.50\n' for i in range(300))
    document = extracted(tmp_path, "a.csv", "id,what,price\n" + rows)
    chunks = chunk_document(document)
    assert len(chunks) > 5
    assert all(c.kind == "table" for c in chunks)
    assert all(c.metadata["table_header"] == "id,what,price" for c in chunks[1:])
    for chunk in chunks[1:]:  # never inside a quoted field
        assert chunk.text.split(",", 1)[0].isdigit()
        assert chunk.text.endswith(".50")


def test_rows_are_kept_when_csv_is_ragged(tmp_path):
    document = extracted(tmp_path, "a.csv", "a,b,c\n1,2\n1,2,3,4\n\n5,6,7\n")
    assert "2 of 4 rows" in document.warnings[0]
    assert chunk_document(document)[0].text == "a,b,c\n1,2\n1,2,3,4\n\n5,6,7"


def test_rows_survive_when_a_quote_is_never_closed(tmp_path):
    rows = "".join(f"{i},value {i}\n" for i in range(2000))
    document = extracted(tmp_path, "a.csv", 'id,what\n0,"broken\n' + rows)
    assert document.metadata["records"] == 2002
    assert all(len(c.text) <= 1200 for c in chunk_document(document))


def test_word_document_keeps_structure_and_codes(tmp_path):
    file = docx.Document()
    file.add_heading("Tariff notes", 1)
    file.add_paragraph("0201.20.04 Bone-in beef cuts, see get_user_name and INV-100234.")
    file.add_paragraph("1. 0202.30.10 Boneless", style="List Number")
    file.add_heading("Rates", 2)
    table = file.add_table(rows=3, cols=2)
    for i, row in enumerate([("Code", "Rate"), ("8539.50.00", "2.5%"), ("8539.51.00", "Free")]):
        for j, cell in enumerate(row):
            table.cell(i, j).text = cell
    path = tmp_path / "a.docx"
    file.save(str(path))
    document = document_extract(path, name="a.docx")
    for code in ("0201.20.04", "0202.30.10", "get_user_name", "INV-100234", "8539.50.00", "8539.51.00"):
        assert code in document.text
    assert [h.title for h in document.headings] == ["Tariff notes", "Rates"]
    assert len(document.regions) == 1
    assert not document.is_paged


def test_raised_numbers_of_notes_cost_no_structure_and_join_no_word(tmp_path):
    file = docx.Document()
    file.add_heading("Lamps", 1)
    paragraph = file.add_paragraph("A socket")
    paragraph.add_run("2").font.superscript = True
    paragraph.add_run(" is free.")
    paragraph.add_run("13").font.superscript = True
    paragraph.add_run("卡车除外。")
    table = file.add_table(rows=2, cols=2)
    for cell, said in zip(table._cells, ("Code", "Rate", "9405", "3.9%"), strict=True):
        cell.text = said
    path = tmp_path / "a.docx"
    file.save(str(path))
    document = document_extract(path, name="a.docx")
    assert "A socket² is free.¹³卡车除外。" in document.text
    assert [h.title for h in document.headings] == ["Lamps"]
    assert [r.kind for r in document.regions] == ["table"]
    page = "<html><body><p>A socket<sup>2</sup> is free.<SUP> 13 </SUP> It pays 10<sup>6</sup> euros.</p></body></html>"
    assert "A socket² is free.¹³ It pays 10⁶ euros." in extracted(tmp_path, "a.html", page).text


def test_plain_text_is_used_when_markdown_would_lose_codes(tmp_path, monkeypatch):
    # A paragraph that begins with a code is what Markdown conversion takes for a numbered list.
    file = docx.Document()
    codes = [f"{200 + i:04d}.20.{i:02d}" for i in range(60)]
    for code in codes:
        file.add_paragraph(f"{code} Some goods, fresh or chilled")
    path = tmp_path / "a.docx"
    file.save(str(path))
    document = document_extract(path, name="a.docx")
    assert [code for code in codes if code not in document.text] == []


def test_page_keeps_words_and_drops_machinery_when_html(tmp_path):
    html = """<!DOCTYPE html><html><head><title>Duty page</title><style>p{color:red}</style></head><body>
    <nav><a href="/x">menu</a></nav><h1>Duties</h1><script>var secret_code = 'X-99.1';</script>
    <p>Code <b>8539</b>.50.00 and <code>get_user_name</code>, <a href="https://example.org/long/path?id=7">the list</a>.</p>
    <table><tr><th>Code</th><th>Rate</th></tr><tr><td>0201.20.04</td><td>4%</td></tr></table></body></html>"""
    document = extracted(tmp_path, "a.html", html)
    assert "get_user_name" in document.text
    assert "0201.20.04" in document.text
    assert "8539" in document.text
    assert "the list" in document.text
    assert "secret_code" not in document.text
    assert "example.org" not in document.text
    assert "color:red" not in document.text
    assert document.title == "Duty page"
    assert [h.title for h in document.headings] == ["Duties"]


@pytest.mark.parametrize("tag", ["div", "font", "ul><li", "table><tr><td"])
def test_text_is_complete_when_html_is_nested_too_deeply_for_its_layout(tmp_path, tag):
    # Pages that never close a tag are common; each adds a level.
    page = "<html><body><p>Above.</p>" + f"<{tag}>" * 2000 + "Far below stands the duty of four percent."
    document = extracted(tmp_path, "a.html", page)
    assert "Above." in document.text
    assert "the duty of four percent" in document.text
    assert any("Its text is complete" in warning for warning in document.warnings)


def test_html_is_decoded_when_it_is_not_utf8(tmp_path):
    page = "<html><body><p>Größe und naïve Straße</p></body></html>".encode("cp1252")
    assert "Größe und naïve Straße" in extracted(tmp_path, "a.html", page).text


@pytest.mark.parametrize(
    "name", ["word_sample.docx", "word_tables.docx", "unit_test_headers_numbered.docx", "wiki_duck.html"]
)
def test_real_office_file_is_read_without_loss(name):
    document = document_extract(shared_file("office-docling-gt", name), name=name)
    assert document.metadata["text_mode"] == "markdown"
    assert "identifiers_lost" not in document.metadata
    assert document.headings


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("csv-comma.csv", ","), ("csv-semicolon.csv", ";"), ("csv-tab.csv", "\t"), ("csv-pipe.csv", "|")],
)
def test_real_csv_is_one_table(name, delimiter):
    document = document_extract(shared_file("office-docling-gt", name), name=name)
    assert document.metadata == {"delimiter": delimiter, "records": 6, "columns": 12}


def test_structure_is_found_quickly_when_markdown_is_hostile():
    text = "# Title " + " " * 200_000 + "#x\n" + "[[" * 100_000 + "\n" + "| " * 100_000 + "\n" + "```\n"
    started = time.process_time()
    headings, regions = markdown_structure(text)
    assert time.process_time() - started < 2
    assert headings[0].title == "Title"
    assert [r.kind for r in regions] == ["code"]


def test_parts_are_cut_between_records_when_csv_is_large(tmp_path):
    rows = "".join(f'{i},"name, {i}",{i}.50\n' for i in range(60_000))
    document = extracted(tmp_path, "a.csv", "id,what,price\n" + rows)
    assert len(document.pages) > 20
    assert all(page.text.startswith(("id,", *"0123456789")) for page in document.pages)
    assert all(page.text.endswith(".50\n") for page in document.pages)
    assert sum(len(r.row_starts) for r in document.regions) == 60_001

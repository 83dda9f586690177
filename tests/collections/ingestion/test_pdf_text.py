from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.readers.pdf_text import clean_page
from tests.collections.ingestion.files import make_pdf, shared_file


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("two lines \r\nhere", "two lines\nhere"),
        ("recrea\ufffetion is fun", "recreation is fun"),
        ("code 8539.50\ufffe10 stays", "code 8539.50-10 stays"),
        ("INV\ufffe100234", "INV-100234"),
        ("Anglo\ufffeAmerican", "Anglo-American"),
        ("cold\ufffefinished or finished when cold", "cold-finished or finished when cold"),
        ("soft\u00adhyphen", "softhyphen"),
        ("nul\x00 and \ud800 go", "nul and  go"),
        ("", ""),
    ],
)
def test_text_is_clean_when_pdfium_marks_it(raw, clean):
    assert clean_page(raw).text == clean


@given(st.text(alphabet="ab1 \r\n\ufffe\u00ad\x00\ud800.-", max_size=80))
def test_offsets_point_at_the_same_character_when_mapped_back(raw):
    page = clean_page(raw)
    assert "\r" not in page.text
    assert "\x00" not in page.text
    page.text.encode()
    for offset, ch in enumerate(page.text):
        origin = raw[page.raw_offset(offset)]
        assert origin == ch or (ch == "-" and origin == "\ufffe") or (ch == "\n" and origin in " \r\n")


def test_headings_are_found_when_set_larger(tmp_path):
    body = [f"Line {i} of the body with ordinary words in it." for i in range(20)]
    path = make_pdf(tmp_path / "a.pdf", [["# Emission limits", *body], [*body, "# Enforcement"]])
    document = document_extract(path, name="a.pdf")
    assert [h.title for h in document.headings] == ["Emission limits", "Enforcement"]
    for heading in document.headings:
        assert document.text[heading.char_start : heading.char_end].strip() == heading.title


def test_running_header_is_no_heading_when_it_repeats(tmp_path):
    body = [f"Line {i} of the body with ordinary words in it." for i in range(20)]
    pages = [["# Annual Report of the Agency", *body] for _ in range(5)]
    pages[2].insert(4, "# Results of the year")
    document = document_extract(make_pdf(tmp_path / "a.pdf", pages), name="a.pdf")
    assert [h.title for h in document.headings] == ["Results of the year"]


def test_outline_titles_are_headings_when_pdf_has_an_outline():
    document = document_extract(shared_file("pdf-us-gov", "DHS2020.pdf"), name="DHS2020.pdf")
    titles = {h.title for h in document.headings}
    assert {"Vision", "Mission", "1.1. Intelligence"} <= titles
    assert len(document.headings) == 134

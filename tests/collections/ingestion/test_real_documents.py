"""The gate on real documents: every tariff code of the source is found in some chunk."""

from __future__ import annotations

import re

import pypdfium2
import pytest

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.identifiers import fidelity_measure, identifier_list
from tests.collections.ingestion.files import shared_file

HTS = re.compile(r"(?<![\d.])\d{4}\.\d{2}(?:\.\d{2,4})*(?!\d)")
TRADE_PDFS = [
    ("brazil_eo_nov2025_annexes.pdf", 900),
    ("Metals-ANNEXES-I-A-I-B-II-III-IV.pdf", 750),
    ("2025-23316.pdf", 1700),
    ("2025-15819.pdf", 300),
]


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "least"), TRADE_PDFS)
def test_every_code_is_in_some_chunk_when_a_trade_pdf_is_read(name, least):
    path = shared_file("trade-us", name)
    with pypdfium2.PdfDocument(path) as pdf:
        raw = "\n".join(page.get_textpage().get_text_range() for page in pdf)
    codes = set(HTS.findall(raw))
    assert len(codes) >= least
    document = document_extract(path, name=name)
    chunks = chunk_document(document)
    found: set[str] = set()
    for chunk in chunks:
        found |= codes & set(identifier_list(chunk.text))
    assert codes - found == set()
    assert all(c.text == document.text[c.char_start : c.char_end] for c in chunks)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["chapter99_2026_rev_6.txt", "assumptions.md", "methodology.md", "s232_auto_parts.txt"]
)
def test_nothing_is_lost_when_a_trade_text_is_read(name):
    path = shared_file("trade-us", name)
    document = document_extract(path, name=name)
    result = fidelity_measure(document.text, (c.text for c in chunk_document(document)))
    assert result.lost == ()
    assert result.total > 100


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["DHS2020.pdf", "DOC2022.pdf", "EPA2022.pdf", "2013-annual-performance-report.pdf"]
)
def test_facts_and_headings_are_kept_when_a_report_is_read(name):
    path = shared_file("pdf-us-gov", name)
    document = document_extract(path, name=name)
    chunks = chunk_document(document)
    assert fidelity_measure(document.body_text, (c.indexed_text for c in chunks)).lost == ()
    with_path = sum(1 for c in chunks if c.headings)
    assert with_path > len(chunks) * 0.75

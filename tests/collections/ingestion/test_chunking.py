from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.collections.ingestion.chunking import chunk_document
from apps.collections.ingestion.readers.base import PART_CHARS
from apps.collections.ingestion.readers.markdown import markdown_reading
from apps.collections.ingestion.types import ExtractedDocument, JunkReason, PageText

SENTENCES = [
    "The agency lowered its emissions by 12.5% in 2024.",
    "See sec. 4 of the U.S. Code for details.",
    "Lamps of heading 8539.50.00 pay no duty!",
    "Why does it matter?",
    "Dr. Smith et al. disagreed with this view, as they wrote in Fig. 3 of their paper.",
]


def document_of(text: str) -> ExtractedDocument:
    return ExtractedDocument("text/markdown", tuple(markdown_reading(text).pages), is_paged=False)


def paged(*texts: str, junk: dict[int, JunkReason] | None = None) -> ExtractedDocument:
    return ExtractedDocument(
        "application/pdf",
        tuple(PageText(i, text + "\n\n", junk=(junk or {}).get(i)) for i, text in enumerate(texts, 1)),
    )


def prose(count: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(SENTENCES) for _ in range(count))


def test_chunks_end_at_sentences_when_text_is_prose():
    document = document_of(prose(200))
    chunks = chunk_document(document)
    assert len(chunks) > 5
    for chunk in chunks:
        assert any(chunk.text.endswith(sentence[-20:]) for sentence in SENTENCES), chunk.text[-60:]
        assert any(chunk.text.startswith(sentence[:10]) for sentence in SENTENCES), chunk.text[:60]


def test_neighbours_overlap_when_prose_is_split():
    chunks = chunk_document(document_of(prose(200)), size=1200, overlap=200)
    for before, after in pairwise(chunks):
        assert 0 < before.char_end - after.char_start <= 200
    assert all(
        before.char_end <= after.char_start
        for chunks in [chunk_document(document_of(prose(200)), overlap=0)]
        for before, after in pairwise(chunks)
    )


def test_heading_path_is_kept_when_sections_nest():
    text = "# Guide\n\n" + prose(30) + "\n\n## Setup\n\n" + prose(30) + "\n\n### Linux\n\n" + prose(30)
    chunks = chunk_document(document_of(text + "\n\n## Use\n\n" + prose(30)))
    paths = list(dict.fromkeys(chunk.headings for chunk in chunks))
    assert paths == [("Guide",), ("Guide", "Setup"), ("Guide", "Setup", "Linux"), ("Guide", "Use")]
    linux = next(c for c in chunks if c.headings == ("Guide", "Setup", "Linux"))
    assert linux.text.startswith("### Linux")
    assert linux.indexed_text.startswith("Guide > Setup\n")


def test_small_sections_share_a_chunk_when_they_fit():
    text = "".join(f"## Point {i}\n\nA short remark.\n\n" for i in range(6))
    assert len(chunk_document(document_of("# List\n\n" + text))) == 1


def test_bare_heading_opens_the_next_chunk_when_nothing_stands_under_it():
    text = "# Part\n\n## Chapter\n\n" + prose(60)
    chunks = chunk_document(document_of(text))
    assert chunks[0].text.startswith("# Part\n\n## Chapter")
    assert chunks[0].headings == ("Part", "Chapter")


def test_header_is_carried_when_a_table_is_split():
    rows = "".join(f"| 85{i:02d}.10.00 | Lamp number {i} | {i} % |\n" for i in range(80))
    text = "Before.\n\n| Code | What | Duty |\n|---|---|---|\n" + rows + "\nAfter.\n"
    chunks = [c for c in chunk_document(document_of(text)) if c.kind == "table"]
    assert len(chunks) > 2
    assert chunks[0].text.startswith("| Code |")
    assert "table_header" not in chunks[0].metadata
    for chunk in chunks[1:]:
        assert chunk.metadata["table_header"] == "| Code | What | Duty |\n|---|---|---|"
        assert chunk.indexed_text.startswith("| Code | What | Duty |")
        assert all(line.startswith("| 85") and line.endswith("|") for line in chunk.text.split("\n"))
    joined = "\n".join(c.text for c in chunks)
    assert all(joined.count(f"85{i:02d}.10.00") == 1 for i in range(80))


def test_carried_header_is_cut_when_a_table_has_thousands_of_columns():
    columns = " | ".join(f"column {i}" for i in range(3000))
    cells = " | ".join("1" for _ in range(3000))
    text = f"| {columns} |\n|{'---|' * 3000}\n" + f"| {cells} |\n" * 5
    chunks = chunk_document(document_of(text), size=1200)
    assert len(chunks) > 20
    assert all(len(chunk.indexed_text) <= 1200 * 1.5 + 1 for chunk in chunks)
    assert any("column 1 " in chunk.metadata.get("table_header", "") for chunk in chunks)


def test_table_stays_whole_when_it_fits():
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
    chunks = chunk_document(document_of(prose(40) + "\n\n" + table + "\n\n" + prose(40)))
    assert [c.text for c in chunks if c.kind == "table"] == [table]


def test_code_is_cut_at_lines_when_it_is_long():
    code = "```python\n" + "".join(f"value_{i} = compute({i})\n" for i in range(150)) + "```"
    document = document_of(code + "\n\n" + prose(3))
    chunks = [c for c in chunk_document(document) if c.metadata.get("is_code")]
    assert len(chunks) > 2
    assert all(c.text.split("\n")[-1].endswith((")", "```")) for c in chunks)


def test_junk_pages_are_left_out_when_marked():
    document = paged(prose(10), "Contents 1 2 3", prose(10, 2), junk={2: JunkReason.TABLE_OF_CONTENTS})
    chunks = chunk_document(document)
    assert "Contents" not in " ".join(c.text for c in chunks)
    assert [(c.page_start, c.page_end) for c in chunks] == [(1, 1), (3, 3)]


def test_pages_are_named_when_a_chunk_spans_them():
    chunks = chunk_document(paged(prose(3), prose(3)), size=1200)
    assert (chunks[0].page_start, chunks[0].page_end) == (1, 2)


def test_long_word_is_cut_when_there_is_nowhere_else_to_cut():
    chunks = chunk_document(document_of("x" * 5000), size=400, overlap=50)
    assert "".join(c.text for c in chunks) == "x" * 5000


def test_identifier_stays_whole_when_text_has_no_sentences():
    text = "\n".join(f"85{i // 100:02d}.{i % 100:02d}.00 lamp" for i in range(400))
    chunks = chunk_document(document_of(text), size=300, overlap=40)
    found = {line for c in chunks for line in c.text.split("\n")}
    assert found == set(text.split("\n"))


@pytest.mark.parametrize(("size", "overlap"), [(100, 10), (1200, 600), (1200, -1)])
def test_sizes_are_refused_when_out_of_range(size, overlap):
    with pytest.raises(ValueError, match="must be"):
        chunk_document(document_of("words"), size=size, overlap=overlap)


def test_no_chunks_come_when_there_is_no_text():
    assert chunk_document(document_of("")) == []
    assert chunk_document(paged("", "  ")) == []


PIECES = st.sampled_from(
    [
        "# Title\n",
        "## Part two\n\n",
        "Some words. ",
        "And more words, without an end\n",
        "\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "| x | " + "y" * 300 + " |\n",
        "```\ncode()\n```\n",
        "```\n",
        "8539.50.00 ",
        "z" * 450,
        "日本語の文です。",
        "\t \n",
        "- item\n",
        "Title\n===\n",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=60), st.sampled_from([(200, 0), (200, 60), (300, 100), (1200, 200)]))
def test_chunks_are_exact_slices_and_lose_nothing_when_text_is_anything(pieces, sizes):
    document = document_of("".join(pieces))
    size, overlap = sizes
    chunks = chunk_document(document, size=size, overlap=overlap)
    covered = [False] * len(document.text)
    for i, chunk in enumerate(chunks):
        assert chunk.index == i
        assert chunk.text == document.text[chunk.char_start : chunk.char_end]
        assert chunk.text.strip() == chunk.text != ""
        assert len(chunk.text) <= size
        covered[chunk.char_start : chunk.char_end] = [True] * len(chunk.text)
    starts = [c.char_start for c in chunks]
    assert starts == sorted(starts)
    assert all(done or ch.isspace() for done, ch in zip(covered, document.text, strict=True))


def test_parts_join_to_the_same_text_when_document_is_long():
    rows = "".join(f"| {i} | row {i} |\n" for i in range(9000))
    text = "# One\n\n" + prose(2000) + "\n\n| n | what |\n|---|---|\n" + rows + "\n# Two\n\n" + prose(2000)
    document = document_of(text)
    assert len(document.pages) > 4
    assert document.text == text
    assert all(len(page.text) <= PART_CHARS * 1.5 for page in document.pages)
    chunks = chunk_document(document)
    tables = [c for c in chunks if c.kind == "table"]
    assert all("table_header" in c.metadata for c in tables[1:])
    assert all(c.text.startswith("| ") and c.text.endswith("|") for c in tables)
    assert {line for c in tables for line in c.text.split("\n")} >= set(rows.strip().split("\n"))
    assert chunks[-1].headings == ("Two",)

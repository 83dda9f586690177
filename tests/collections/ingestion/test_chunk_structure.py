"""What a chunk is told besides its text: headings shared by gathered sections, table headers, running lines."""

from __future__ import annotations

import time

from apps.collections.ingestion.chunk_tables import cell_spans
from apps.collections.ingestion.chunking import chunk_document, chunks_iterate
from apps.collections.ingestion.junk import mark_junk
from apps.collections.ingestion.readers.csv import CsvReader
from apps.collections.ingestion.readers.markdown import markdown_reading
from apps.collections.ingestion.types import ExtractedDocument, Heading, JunkReason, PageText, ReaderLimits

WORDS = "This sentence tells what the agency did during the year and why it matters to people. "


def document_of(text: str) -> ExtractedDocument:
    return ExtractedDocument("text/markdown", tuple(markdown_reading(text).pages), is_paged=False)


def test_gathered_sections_carry_what_they_share_and_all_their_titles():
    text = "# Guide\n\n" + WORDS * 20 + "".join(f"\n\n## Point {i}\n\nShort." for i in range(3))
    chunk = chunk_document(document_of(text))[-1]
    assert chunk.headings == ("Guide",)
    assert chunk.metadata["sections"] == ["Point 0", "Point 1", "Point 2"]


def test_gathered_sections_share_nothing_when_they_are_chapters():
    text = "# One\n\nShort.\n\n# Two\n\nShort too.\n\n# Three\n\nThe end."
    [chunk] = chunk_document(document_of(text))
    assert chunk.headings == ()
    assert chunk.metadata["sections"] == ["One", "Two", "Three"]


def test_parent_is_shared_when_a_short_section_has_a_short_child():
    [chunk] = chunk_document(document_of("# One\n\nShort.\n\n## Inner\n\nShort too."))
    assert chunk.headings == ("One",)
    assert chunk.metadata["sections"] == ["Inner"]


def test_parent_stretch_is_named_when_a_section_is_split():
    document = document_of("# One\n\n" + WORDS * 40)
    chunks = chunk_document(document)
    assert len(chunks) > 2
    for chunk in chunks:
        start, end = chunk.metadata["parent"]
        assert document.text[start:end].startswith("# One")
        assert start <= chunk.char_start < chunk.char_end <= end


def test_table_is_a_chunk_of_its_own_with_its_caption_even_when_short():
    text = (
        "# Duty\n\nSome words.\n\nTable 3: Rates of duty\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nMore words.\n"
    )
    chunks = chunk_document(document_of(text))
    assert [c.kind for c in chunks] == ["doc", "table", "doc"]
    assert chunks[1].metadata["table_caption"] == "Table 3: Rates of duty"
    assert chunks[1].headings == ("Duty",)
    assert chunks[1].prefix == "Duty\nTable 3: Rates of duty"


def test_heading_goes_with_the_table_when_nothing_else_stands_between():
    chunks = chunk_document(document_of("# Duty\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"))
    assert [c.kind for c in chunks] == ["table"]
    assert chunks[0].text.startswith("# Duty")


def test_piece_of_a_wide_row_names_its_own_columns_and_its_row():
    columns = [f"column {i}" for i in range(300)]
    rows = [[f"row {r}", *(f"{r}.{c}" for c in range(1, 300))] for r in range(3)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * 300, *rows])
    document = document_of(text)
    chunks = chunk_document(document, size=600, overlap=0)
    piece = next(c for c in chunks if "2.150 " in c.text)
    assert "column 150" in piece.metadata["table_header"]
    assert "column 10 " not in piece.metadata["table_header"]
    assert piece.metadata["row_header"] == "row 2"
    names = piece.metadata["table_header"].split(" | ")
    values = [cell.strip() for cell in piece.text.strip("| ").split("|")]
    assert [name.split()[1] for name in names] == [value.split(".")[1] for value in values]
    assert all(len(c.indexed_text) <= 600 * 1.6 for c in chunks)


def test_csv_of_many_columns_is_cut_between_cells(tmp_path):
    path = tmp_path / "a.csv"
    header = ",".join(f"c{i}" for i in range(5000))
    path.write_text(header + "\n" + ",".join(f'"v,{i}"' for i in range(5000)) + "\n")
    reading = CsvReader().read(path, ReaderLimits())
    document = ExtractedDocument("text/csv", tuple(reading.pages), is_paged=False)
    started = time.process_time()
    chunks = chunk_document(document)
    assert time.process_time() - started < 2
    body = [c for c in chunks if '"v,4000"' in c.text]
    assert "c4000" in body[0].metadata["table_header"]


def test_delimiter_inside_a_cell_does_not_end_it():
    row = 'a,"b,c",d'
    assert [row[a:b] for a, b in cell_spans(row, 0, len(row), ",")] == ["a", '"b,c"', "d"]
    row = "| a | b\\|c | d |"
    assert [row[a:b].strip() for a, b in cell_spans(row, 0, len(row), "|")] == ["a", "b\\|c", "d"]


def running(count: int = 8, *, page_numbers: bool = True) -> list[PageText]:
    pages = []
    for i in range(count):
        number = f"\n{i + 5}" if page_numbers else ""
        body = f"Part {'abcdefghijkl'[i]}. " + WORDS * 3 + f"Fact number {i} is 8539.{i:02d}.00."
        pages.append(PageText(i + 1, f"Annual Report of the Agency\n{body}{number}\n\n"))
    return pages


def test_running_lines_are_left_out_of_search_but_not_of_offsets():
    document = ExtractedDocument("application/pdf", mark_junk(running()))
    chunks = chunk_document(document)
    for chunk in chunks:
        assert chunk.text == document.text[chunk.char_start : chunk.char_end]
        assert chunk.char_start == 0 or "Annual Report of the Agency" not in chunk.indexed_text
        assert not chunk.text.endswith(tuple(f"\n{n}" for n in range(5, 13)))
    joined = "\n".join(c.indexed_text for c in chunks)
    assert all(f"8539.{i:02d}.00" in joined for i in range(8))
    assert joined.count("Annual Report") == document.body_text.count("Annual Report") == 1
    assert document.body_text.count("Fact number") == 8


def test_lone_figures_stay_when_pages_are_not_numbered():
    pages = [
        PageText(p.number, p.text.rstrip() + f"\n{n}\n\n")
        for p, n in zip(running(page_numbers=False), [40, 7, 91, 18, 3, 55, 62, 29], strict=True)
    ]
    document = ExtractedDocument("application/pdf", mark_junk(pages))
    joined = "\n".join(c.indexed_text for c in chunk_document(document))
    assert all(f"\n{n}" in joined for n in (40, 7, 91, 18, 3, 55, 62, 29))


def test_page_of_codes_is_kept_when_it_has_no_words():
    codes = "\n".join(f"8487.{i:02d}.0080 8501.{i:02d}.0110" for i in range(40))
    pages = [*running(6), PageText(7, f"11\n{codes}\n\n"), PageText(8, f"12\n{codes}\n\n")]
    assert [p.junk for p in mark_junk(pages)] == [None] * 8


def test_section_numbers_of_contents_are_no_facts_to_keep_it_for():
    contents = "Contents\n" + "".join(f"1.{i} A part of the book ........ {i}\n" for i in range(1, 15))
    pages = [PageText(1, contents), *[PageText(p.number + 1, p.text) for p in running(5)]]
    assert mark_junk(pages)[0].junk is JunkReason.TABLE_OF_CONTENTS


def test_chunks_come_one_by_one_and_in_linear_time_when_a_document_is_huge():
    part = "## Section\n\n" + WORDS * 5 + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    text = part * 12_000
    headings = [Heading("Section", 2, i * len(part), i * len(part) + 11) for i in range(12_000)]
    document = document_of(text)
    assert len(document.headings) == len(headings)
    started = time.process_time()
    first = next(chunks_iterate(document))
    assert first.index == 0
    assert sum(1 for _ in chunks_iterate(document)) == 24_000
    assert time.process_time() - started < 10

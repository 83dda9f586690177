"""Documents as DOCX and PDF: what any Markdown becomes is whole, and what a PDF can't show is named."""

from __future__ import annotations

import io
import re
import zipfile
from xml.etree import ElementTree

import docx
import pypdfium2
from docx.enum.text import WD_ALIGN_PARAGRAPH

from basics.markdown.render import Renderer, Use
from basics.papers.docx import docx_write
from basics.papers.model import Block, Note, Paper, Reader, Run
from basics.papers.pdf import pdf_write
from basics.papers.right_to_left import joined, seen

RENDERER = Renderer(Use(formulas=True))


def paper(text: str, notes: list[Note] | None = None) -> Paper:
    blocks = Reader({}, {}, lambda url: url.startswith("https:")).blocks(RENDERER.parse(text))
    return Paper("Title", blocks, notes or [])


def pages(body: bytes) -> list[str]:
    with pypdfium2.PdfDocument(body) as document:
        return [" ".join(page.get_textpage().get_text_range().split()) for page in document]


def test_markdown_keeps_its_kinds_in_word() -> None:
    text = "# A\n\n1. one\n2. two\n\ntext **bold** [l](https://a.example/?a=1&b=2)\n\n3. three\n\n- [x] done\n\n> said\n\n| a |\n|-|\n| b |"
    made = docx_write(paper(text))
    opened = docx.Document(io.BytesIO(made))
    assert [(p.style and p.style.name, p.text) for p in opened.paragraphs if p.text] == [
        ("Title", "Title"),
        ("Heading 1", "A"),
        ("List Paragraph", "one"),
        ("List Paragraph", "two"),
        ("Normal", "text bold l"),
        ("List Paragraph", "three"),
        ("List Paragraph", "☑ done"),
        ("Quote", "said"),
    ]
    assert [cell.text for row in opened.tables[0].rows for cell in row.cells] == ["a", "b"]
    numbering = zipfile.ZipFile(io.BytesIO(made)).read("word/numbering.xml").decode()
    assert re.findall(r'startOverride w:val="(\d)"', numbering)[::9] == ["1", "3"], (
        "a list goes on from its number"
    )
    assert made == docx_write(paper(text))


def test_nothing_of_a_text_is_markup_of_a_document() -> None:
    hostile = "</w:t><w:p/> <super>1</super> &amp; \x00\x1b\ud800\ufffe \ue100 ]]> [x](javascript:x) [y](https://a.example/\"'<>)"
    made = docx_write(Paper(hostile, paper(hostile).blocks, [Note(hostile, hostile)]))
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))  # noqa: S314 - our own
        assert b"javascript" not in archive.read("word/_rels/document.xml.rels")
    assert "<super>1</super>" in pages(pdf_write(Paper(hostile, paper(hostile).blocks, [])))[0]


def test_a_footnote_stands_on_the_page_that_refers_to_it_first() -> None:
    notes = [Note(f"Source {n}", "quoted words " * (n % 9 + 1)) for n in range(1, 41)]
    blocks = [
        Block(
            "paragraph",
            [Run("words of the answer " * 30), Run("", note=n), Run(" and more" * 20), Run("", note=1)],
        )
        for n in range(1, 41)
    ]
    made = pages(pdf_write(Paper("T", blocks, notes)))
    places = [[page for page, text in enumerate(made) if f"{n} Source {n} “" in text] for n in range(1, 41)]
    assert all(len(found) == 1 for found in places)
    assert places == sorted(places)
    assert len({found[0] for found in places}) == len(made)


def test_the_columns_of_a_table_keep_their_alignment() -> None:
    text = "| name | middle | sum |\n|:--|:-:|--:|\n| pen | blue | 7 |\n| قلم | أزرق | 8 |"
    table = docx.Document(io.BytesIO(docx_write(paper(text)))).tables[0]
    in_word = [[cell.paragraphs[0].alignment for cell in row.cells] for row in table.rows]
    assert in_word == [[None, WD_ALIGN_PARAGRAPH.CENTER, WD_ALIGN_PARAGRAPH.RIGHT]] * 3
    with pypdfium2.PdfDocument(pdf_write(paper(text))) as document:
        page = document[0].get_textpage()
        places = {}
        for word in ("pen", "blue", "7"):
            index, _count = page.search(word).get_next()
            left, _bottom, _right, _top = page.get_charbox(index)
            places[word] = left
    width = 471 / 3
    assert places["pen"] < 62 + 10
    assert 62 + width + 40 < places["blue"] < 62 + 2 * width - 40
    assert places["7"] > 62 + 3 * width - 20


def test_no_word_of_a_table_is_lost_however_wide_or_tall() -> None:
    wide = Block("table", rows=[[[Run("wide")]] * 60] * 3)
    tall = Block("table", rows=[[[Run("head")]] * 8, [[Run("tall " * 600)], *[[Run("x")]] * 7]])
    said = " ".join(pages(pdf_write(Paper("T", [wide, tall], []))))
    assert (said.count("wide"), said.count("tall")) == (180, 600)


def test_table_that_word_could_not_open_is_lines() -> None:
    wide = Block("table", rows=[[[Run(f"cell{n}")] for n in range(64)]] * 2)
    opened = docx.Document(io.BytesIO(docx_write(Paper("T", [wide], []))))
    assert len(opened.tables) == 0
    assert [p.text.count("cell") for p in opened.paragraphs] == [0, 64, 64]


def test_nothing_is_lost_of_what_is_longer_than_a_page() -> None:
    blocks = [
        Block("heading", [Run("head " * 3_000)], 1),
        Block("item", [Run("word " * 4_000), Run("", note=1), Run("more " * 10)], 1, "bullet"),
        Block("code", [Run("x" * 20_000)]),
        Block("paragraph", [Run("ש" * 400)]),
    ]
    made = " ".join(pages(pdf_write(Paper("T", blocks, [Note("Source")]))))
    assert [made.count(each) for each in ("head", "word", "more", "x", "ש", "•", "1 Source")] == [
        3_000,
        4_000,
        10,
        20_000,
        400,
        1,
        1,
    ]


def test_footnotes_of_one_line_that_no_page_has_room_for_follow_on_the_next() -> None:
    runs = [run for n in range(1, 41) for run in (Run("w "), Run("", note=n))]
    notes = [Note(f"Source{n}.", "quoted words " * 40) for n in range(1, 41)]
    made = pages(
        pdf_write(Paper("T", [Block("paragraph", runs), Block("paragraph", [Run("After.")])], notes))
    )
    assert len(made) > 2
    said = " ".join(made)
    assert [said.count(f" Source{n}. “") for n in range(1, 41)] == [1] * 40
    assert said.count("After.") == 1


def test_no_character_of_a_text_is_a_reference() -> None:
    block = Block("paragraph", [Run("שלום \ue100 עולם"), Run("", note=7)])
    (made,) = pages(pdf_write(Paper("T", [block], [Note(f"Source {chr(64 + n)}") for n in range(1, 8)])))
    assert made.count("7") == 2, "the reference and its footnote"


def test_lines_and_cells_count_for_the_size_of_a_document() -> None:
    lines, cells = Block("code", [Run("\n" * 999)]), Block("table", rows=[[[]] * 10] * 100)
    assert Paper("", [lines, cells]).size > 40 * 2_000


def test_what_a_pdf_cannot_show_is_named_and_the_rest_is_there() -> None:
    made = pages(pdf_write(paper("日本語のテキスト Ελληνικά Кириллица हिन्दी")))[0]
    assert "日本語のテキスト Ελληνικά Кириллица […]" in made
    assert "This PDF can't show Devanagari; […] marks each place." in made


def test_arabic_is_joined_and_lines_are_in_the_order_of_the_eye() -> None:
    assert joined("سلام") == "\ufeb3\ufefc\ufee1"
    assert seen("שלום (12) abc", is_turned=True) == "abc (12) םולש"
    assert seen("see שלום 12 עולם, ok", is_turned=False) == "see םלוע 12 םולש, ok"
    assert seen("שלום 2.5 abc 7", is_turned=True) == "abc 7 2.5 םולש"
    assert seen("see שלום עולם, ok", is_turned=False) == "see םלוע םולש, ok"

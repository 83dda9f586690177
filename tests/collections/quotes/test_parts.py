"""What may be quoted of a page: whole sentences, entries and rows, joined, on the page where they begin."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.quotes.parts import PagePart, Quotable, quotable_from_text, quotable_of, quotable_plain
from runs.withheld import Withheld


def said(quotable: Quotable) -> list[str]:
    return [quotable.said(u.start, u.end, u.kind) for u in quotable.units]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SUMMARY: BIS is adding 407\nHarmonized Tariff Schedule codes of No.\n12 to the list. They hold\nfrom today on, as said above.",
            [
                "SUMMARY: BIS is adding 407 Harmonized Tariff Schedule codes of No. 12 to the list.",
                "They hold from today on, as said above.",
            ],
        ),
        (
            "It covers these goods:\n• cars of any kind\nand size\n• trucks. Also used\nones.\n",
            ["It covers these goods:", "cars of any kind and size", "trucks.", "Also used ones."],
        ),
        (
            "The rate of duty is laid down\nhere:\n(a) for cars 5 percent, as the law\nsays; and\n(b) for trucks 25 percent.",
            [
                "The rate of duty is laid down here:",
                "(a) for cars 5 percent, as the law says; and",
                "(b) for trucks 25 percent.",
            ],
        ),
        (
            "Every importer files a form with\ninfor-\nmation on self-\nemployed people, whether self-employed\nor not, under 2025-\n0023.",
            [
                "Every importer files a form with information on self-employed people, whether self-employed or not, under 2025-0023."
            ],
        ),
        ("税率为百\n分之五。卡车\n除外。", ["税率为百分之五。", "卡车除外。"]),
        ("ราคาของสินค้าคือห้าสิบบาท\nสินค้าใหม่มาแล้ว", ["ราคาของสินค้าคือห้าสิบบาทสินค้าใหม่มาแล้ว"]),
    ],
)
def test_lines_of_a_paragraph_are_joined_and_cut_into_sentences(text: str, expected: list[str]) -> None:
    assert said(quotable_plain(text, 100, None)) == expected


def test_a_sentence_that_the_chunk_cuts_is_completed_from_around_it() -> None:
    text = "The first is free. The second pays five percent of what it is worth. The third pays ten."
    start, end = text.index("pays five"), text.index("it is worth")
    made = quotable_of([PagePart(1, 0, text)], start, end)
    assert said(made) == ["The second pays five percent of what it is worth."]
    stored = made.to_text(start, text[start:end])
    kept = quotable_from_text(stored, start, text[start:end])
    assert kept is not None
    assert kept == made
    assert said(kept) == said(made)
    # What a reader may not see was taken out of the text that is kept: its offsets mean nothing any more.
    assert quotable_from_text(stored, start, "withheld") is None
    # Nor is there anything to rely on where it was taken out of what is kept; earlier versions kept values.
    withheld = Withheld(frozenset({1}), frozenset(), frozenset({"worth"}))
    assert "worth" in stored
    assert "worth" not in withheld.text(stored)
    assert quotable_from_text(withheld.text(stored), start, text[start:end]) is None
    for spoiled in (None, "", "[1]", '{"lead":""}', stored[:-1]):
        assert quotable_from_text(spoiled, start, text[start:end]) is None
    assert quotable_from_text(json.loads(stored), start, text[start:end]) == made


def test_a_sentence_over_two_pages_has_the_page_where_it_begins_and_no_footer() -> None:
    one = "Trucks are dear. The rate for cars that are\nmade abroad is\nAgency report 7\n\n"
    two = "Agency report 8\nfive percent of the value. Bikes are free.\n\n"
    foot = one.index("Agency")
    parts = [
        PagePart(7, 0, one, regions=(("furniture", foot, foot + 16, (), 0, ""),)),
        PagePart(8, len(one), two, regions=(("furniture", len(one), len(one) + 16, (), 0, ""),)),
    ]
    made = quotable_of(parts, 0, len(one) + len(two) - 2)
    assert [(u.page, text) for u, text in zip(made.units, said(made), strict=True)] == [
        (7, "Trucks are dear."),
        (7, "The rate for cars that are made abroad is five percent of the value."),
        (8, "Bikes are free."),
    ]


def test_rows_are_whole_and_their_header_is_told() -> None:
    table = "| Lamp | Price |\n| --- | --- |\n| A\\|1 | **5** |\n| B | 7 |\n"
    text = f"Lamps\n\n{table}\nAll prices are in euros.\n"
    low = text.index("|")
    starts = tuple(low + table.index(row) for row in ("| Lamp", "| A", "| B"))
    header = "| Lamp | Price |\n| --- | --- |"
    part = PagePart(None, 0, text, regions=(("table", low, low + len(table), starts, starts[1], header),))
    made = quotable_of([part], low, low + len(table) - 1, markup="all")
    assert made.header == "Lamp | Price"
    rows = [made.said(u.start, u.end, u.kind) for u in made.units if u.kind == "row"]
    assert rows == ["A|1 | 5", "B | 7"]


def test_comments_of_markdown_are_not_quoted() -> None:
    text = "See the “Data Types”<!-- ignore --> section of the book.\n\n<!-- two\nlines -->\n\nIt ends.\n"
    made = quotable_of([PagePart(None, 0, text)], 0, len(text), markup="all")
    said = [made.said(u.start, u.end, u.kind) for u in made.units]
    assert said == ["See the “Data Types” section of the book.", "It ends."]


def test_headings_and_lines_of_code_stand_for_themselves() -> None:
    text = "Background\nThe rate is five percent.\nif x:\n    y = 1\n"
    code = text.index("if x")
    part = PagePart(3, 0, text, headings=((0, 10),), regions=(("code", code, len(text), (), code, ""),))
    made = quotable_of([part], 0, len(text))
    assert [(u.kind, made.said(u.start, u.end, u.kind)) for u in made.units] == [
        ("heading", "Background"),
        ("sentence", "The rate is five percent."),
        ("line", "if x:"),
        ("line", "y = 1"),
    ]


@given(st.text(alphabet="aA.:;-|\n (1)•é。", max_size=200), st.integers(0, 50))
def test_units_are_inside_the_text_and_in_order(text: str, start: int) -> None:
    made = quotable_plain(text, start, 1)
    assert all(start <= u.start < u.end <= start + len(text) for u in made.units)
    assert all(one.end <= two.start for one, two in pairwise(made.units))
    held = "".join("".join(text[u.start - start : u.end - start].split()) for u in made.units)
    assert set("".join(text.split())) - set(held) <= set("-|•")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "申请书应当包括下列内容：\n（一）名称和地址；\n（二）灯具的说明，包括重量\n和材料；\n（三）编码。",
            [
                "申请书应当包括下列内容：",
                "（一）名称和地址；",
                "（二）灯具的说明，包括重量和材料；",
                "（三）编码。",
            ],
        ),
        (
            "يتضمن الطلب:\n(أ) اسم المستورد؛\n(ب) وصف المصباح.",
            ["يتضمن الطلب:", "(أ) اسم المستورد؛", "(ب) وصف المصباح."],
        ),
        ("ต้องมี:\n(ก) ชื่อและที่อยู่\n(ข) รหัสสินค้า", ["ต้องมี:", "(ก) ชื่อและที่อยู่", "(ข) รหัสสินค้า"]),
        (
            "第一条 灯具适用本法。\n第二条 海关查验灯具，\n并记录。",
            ["第一条 灯具适用本法。", "第二条 海关查验灯具，并记录。"],
        ),
    ],
)
def test_lists_of_scripts_without_capitals_are_cut_at_their_entries(text: str, expected: list[str]) -> None:
    assert said(quotable_plain(text, 0, None)) == expected


def test_names_above_rows_of_figures_are_no_row() -> None:
    made = quotable_plain("Code    Lamp    Rate\n9405    Wall    3.9%\n9406    Desk    7.6%", 0, None)
    assert [u.kind for u in made.units] == ["heading", "row", "row"]


_PYTHON = '''def rate(size: int) -> float:
    """Return the rate of a lamp, which falls
    with its size.

    Args:
        size: in mm, as
            measured at the base.
        kind, name: ignored.
    """
    # Small lamps pay more. They weigh
    # less than No. 5.
    text = """
    Not prose but data. It stays
    """
    return 5.0  # percent
'''
_SCRIPT = """/**
 * Open the page. It stays open
 * until the reader leaves.
 */
// One line,
// two lines.
open(page, "*/");
"""


@pytest.mark.parametrize(
    ("text", "cut", "sentences", "lines"),
    [
        (
            _PYTHON,
            0,
            [
                "Return the rate of a lamp, which falls with its size.",
                "Args:",
                "size: in mm, as measured at the base.",
                "kind, name: ignored.",
                "Small lamps pay more.",
                "They weigh less than No. 5.",
            ],
            5,
        ),
        # A chunk's surroundings may begin inside of a docstring or a comment.
        (
            _PYTHON,
            _PYTHON.index("    Args"),
            [
                "Args:",
                "size: in mm, as measured at the base.",
                "kind, name: ignored.",
                "Small lamps pay more.",
            ],
            4,
        ),
        (_SCRIPT, 0, ["Open the page.", "It stays open until the reader leaves.", "One line, two lines."], 1),
        (_SCRIPT, _SCRIPT.index(" * until"), ["until the reader leaves.", "One line, two lines."], 1),
        ("#include <a.h>\n--all\nx = 1 # set\n", 0, [], 3),
    ],
)
def test_comments_of_code_are_cut_into_sentences_and_code_into_lines(
    text: str, cut: int, sentences: list[str], lines: int
) -> None:
    made = quotable_of([PagePart(None, 50, text[cut:], is_code=True)], 50, 50 + len(text) - cut)
    kept = quotable_from_text(made.to_text(50, text[cut:]), 50, text[cut:])
    assert kept == made
    found = [made.said(u.start, u.end, u.kind) for u in made.units if u.kind == "sentence"]
    assert found[: len(sentences)] == sentences
    assert sum(u.kind == "line" for u in made.units) == lines

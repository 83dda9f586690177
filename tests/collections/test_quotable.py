"""What may be quoted of a page: whole sentences, entries and rows, joined, on the page where they begin."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.quotable import PagePart, Quotable, quotable_from_json, quotable_of, quotable_plain


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
    kept = quotable_from_json(
        json.loads(json.dumps(made.to_json(start, text[start:end]))), start, text[start:end]
    )
    assert kept is not None
    assert kept == made
    assert said(kept) == said(made)
    # What a reader may not see was taken out of the text that is kept: its offsets mean nothing any more.
    assert quotable_from_json(made.to_json(start, text[start:end]), start, "withheld") is None


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
    made = quotable_of([part], low, low + len(table) - 1, is_markdown=True)
    assert made.header == "Lamp | Price"
    rows = [made.said(u.start, u.end, u.kind) for u in made.units if u.kind == "row"]
    assert rows == ["A|1 | 5", "B | 7"]


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

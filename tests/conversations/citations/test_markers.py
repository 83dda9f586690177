"""Markers are found however they are written, numbered once, and never shown when they name nothing."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.quotes.parts import quotable_plain
from apps.conversations.citations.claims import Claim, quote_choose
from apps.conversations.citations.markers import (
    CitablePassage,
    answer_cite,
    answer_number,
    numbers_of,
    passages_of,
)

KNOWN = {
    n: CitablePassage(n, n * 10, f"doc {n}", "Coll", f"Passage {n} says so. It is {n} percent.", n, n * 100)
    for n in (1, 2, 12, 123)
}
PIECES = st.sampled_from(
    [
        "[c1]",
        "[c2]",
        "[c12]",
        "[c99]",
        "[c1, c2]",
        "[c1][c2]",
        "[C12]",
        "[c1; c99]",
        "[c",
        "[",
        "]",
        "c1",
        " ",
        "\n",
        "It is 5 %. ",
        "word ",
        "[1]",
        "`[c1]`",
        "[c1, ",
        "[x]",
        "[c1](http://x)",
        "\ue0001\ue001",
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(alphabet="[]cC,; 0123456789a.\n", max_size=60)


@pytest.mark.parametrize(
    ("text", "shown", "removed"),
    [
        ("It is 5 % [c12].", "It is 5 % [1].", 0),
        ("A [c12] b [c1] c [c12].", "A [1] b [2] c [1].", 0),
        (
            "Both [c1, c2] or [c2; c1] or [c1][c2] or [c1 c2].",
            "Both [1][2] or [2][1] or [1][2] or [1][2].",
            0,
        ),
        ("Twice [c1, c1].", "Twice [1].", 0),
        ("None [c99].", "None.", 1),
        ("Half [c1, c99] known.", "Half [1] known.", 1),
        ("Growing [c1", "Growing", 0),
        ("Growing [c", "Growing", 0),
        ("Growing [c1, c", "Growing", 0),
        ("Growing [", "Growing [", 0),
        ("An [example] and [c] and array[1].", "An [example] and [c] and array[1].", 0),
        ("Too large [c9999999999999999999].", "Too large [c9999999999999999999].", 0),
        ("", "", 0),
    ],
)
def test_markers_become_numbers(text: str, shown: str, removed: int) -> None:
    cited = answer_cite(text, KNOWN)
    assert (cited.text, cited.removed) == (shown, removed)


@given(TEXTS)
def test_numbers_never_change_while_the_text_grows(text: str) -> None:
    whole = answer_cite(text, KNOWN)
    for end in range(len(text)):
        part = answer_cite(text[:end], KNOWN)
        assert part.sources == whole.sources[: len(part.sources)]


@given(TEXTS)
def test_stored_numbers_give_the_same_answer_as_live_ones(text: str) -> None:
    live = answer_cite(text, KNOWN)
    told = ((s.passage.chunk_id, s.number, s.markers) for s in live.sources)
    stored = answer_number(text, numbers_of(told))
    assert (stored.pieces, stored.removed) == (live.pieces, live.removed)


@given(TEXTS)
def test_every_number_has_a_source_and_every_source_a_number(text: str) -> None:
    cited = answer_cite(text, KNOWN)
    used = {n for piece in cited.pieces for n in piece.numbers}
    assert used == {s.number for s in cited.sources} == set(range(1, len(cited.sources) + 1))
    assert not re.search(r"\[c(1|2|12|123|99)\]", "".join(p.text for p in cited.pieces))


@given(TEXTS)
def test_quotes_stand_in_their_passage_at_their_offsets(text: str) -> None:
    for source in answer_cite(text, KNOWN).sources:
        passage = source.passage
        start = source.char_start - passage.char_start
        assert source.quote == passage.text[start : source.char_end - passage.char_start]
        assert source.quote


@given(st.text(max_size=200), st.text(max_size=400))
def test_quote_lies_inside_the_text_whatever_the_sentence(sentence: str, text: str) -> None:
    quotable = quotable_plain(text, 7, None)
    found = quote_choose(quotable, Claim(sentence, sentence))
    assert 7 <= found.start <= found.end <= 7 + len(text)


def test_quote_is_the_sentence_that_supports_the_claim() -> None:
    text = "Trucks pay 25 percent. Cars of heading 8703 pay 2.5 percent. Bikes are free of duty."
    claim = "The rate for cars (8703) is 2.5 percent"
    found = quote_choose(quotable_plain(text, 0, None), Claim(claim, claim))
    assert found.text == text[found.start : found.end] == "Cars of heading 8703 pay 2.5 percent."


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        ("> “Bikes of U.S. make are\\* free.” [c5]", "Bikes of U.S. make are* free."),
        (
            "Trucks pay 25 percent. Bikes of U.S. make are\\* free. [c5]",
            "Trucks pay 25 percent. Bikes of U.S. make are* free.",
        ),
        ("As said [c1]. Cars pay 2.5 percent. [c5]", "Cars pay 2.5 percent."),
        ("A truck is charged 25 percent [c5].", "Trucks pay 25 percent."),
        ("Something else altogether [c5].", "Cars pay 2.5 percent."),
    ],
)
def test_quote_is_what_the_answer_repeats_or_else_the_closest(answer: str, quote: str) -> None:
    text = "Cars pay 2.5 percent. Trucks pay 25 percent. Bikes of U.S. make\nare* free."
    sources = answer_cite(answer, {5: CitablePassage(5, 1, "d", "C", text)}).sources
    assert sources[0].quote == quote


@pytest.mark.parametrize("text", ["[c1," + " " * 50_000, " " * 50_000 + "[c1", "[c1 " * 20_000, "[" * 50_000])
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    answer_cite(text, KNOWN)
    assert time.process_time() - began < 1.0


def test_payloads_of_other_tools_are_passed_over() -> None:
    good = {
        "chunk_id": 7,
        "document_id": 1,
        "document": "d",
        "collection": "c",
        "text": "t",
        "page": None,
        "char_start": 3,
    }
    payloads: list[object] = [
        None,
        "x",
        {"results": "no"},
        {"results": [1, {"chunk_id": "7"}]},
        {"results": [good]},
    ]
    assert list(passages_of(payloads)) == [7]


LAMPS = "Aurora | 5 W | 12.50\nBorea | 7 W | 19.90\nCygnus | 5 W | 12.90\n"
ROWS = {7: CitablePassage(7, 1, "Lamps", "C", LAMPS)}


def test_each_row_of_a_passage_is_a_source_of_its_own() -> None:
    text = (
        "- Borea costs 19.90 [c7].\n- Cygnus costs 12.90 [c7], Aurora 12.50 [c7].\n- So Borea is dear [c7]."
    )
    cited = answer_cite(text, ROWS)
    assert [s.quote for s in cited.sources] == [
        "Borea | 7 W | 19.90",
        "Cygnus | 5 W | 12.90",
        "Aurora | 5 W | 12.50",
    ]
    assert (
        cited.text
        == "- Borea costs 19.90 [1].\n- Cygnus costs 12.90 [2], Aurora 12.50 [3].\n- So Borea is dear [1]."
    )
    told = [(s.passage.chunk_id, s.number, s.markers) for s in cited.sources]
    assert told == [(7, 1, [0, 3]), (7, 2, [1]), (7, 3, [2])]
    assert answer_number(text, numbers_of(told)).text == cited.text
    # Sources that were stored before each marker had its own: one number for all.
    assert answer_number("A [c7] b [c7].", numbers_of([(7, 1, [])])).text == "A [1] b [1]."


def test_what_is_too_long_for_a_quote_says_that_it_is_cut() -> None:
    words = " ".join(f"word{n}" for n in range(600))
    source = answer_cite("It is word300 [c1].", {1: CitablePassage(1, 1, "d", "C", words)}).sources[0]
    assert source.quote.startswith("… ")
    assert source.quote.endswith(" …")
    assert "word300 " in source.quote
    assert source.quote[2:-2] == words[source.char_start : source.char_end]


def test_many_markers_of_one_passage_are_not_each_looked_at() -> None:
    text = "".join(f"It is word{n} [c1]. " for n in range(300))
    passage = CitablePassage(1, 1, "d", "C", "\n\n".join(f"It is word{n}." for n in range(300)))
    cited = answer_cite(text, {1: passage})
    assert len(cited.sources) == 100
    assert cited.text.endswith("It is word299 [1]. ")

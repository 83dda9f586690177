"""Sentences that no source supports: found, with where they stand, and left alone where nothing is claimed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apps.conversations.citations.markers import CitablePassage, answer_cite, flagged
from apps.conversations.display.marks import marks_read
from apps.conversations.display.rendering import blocks_render
from apps.conversations.support.sentences import reason_of, unsupported_find

PASSAGES = {
    7: CitablePassage(
        7, 1, "Tariff", "T", "Cars of heading 8703 pay a duty of 2.5 percent. Trucks pay 25 percent."
    ),
    8: CitablePassage(
        8, 1, "Terms", "T", "The notice period is 30 days and begins on the first of the month."
    ),
}


def unsupported(text: str) -> list[str]:
    cited = answer_cite(text, PASSAGES)
    found = unsupported_find(cited, {s.number: s.passage.text for s in cited.sources})
    return [cited.text[start:end] for start, end, _ in found]


def reasons(text: str, passages: dict[int, str], around: str = "") -> list[str]:
    pieces = [CitablePassage(n, 1, "Doc", "D", passage) for n, passage in passages.items()]
    cited = answer_cite(text, {one.chunk_id: one for one in pieces})
    found = unsupported_find(cited, {s.number: s.passage.text for s in cited.sources}, around)
    return [reason for _, _, reason in found]


@pytest.mark.parametrize(
    "text",
    [
        "Passenger cars of heading 8703 pay 2.5 percent duty [c7].",
        "The notice period is 30 days. [c8] It begins on the first of the month.",
        "- Trucks pay a duty of 25 percent [c7]\n- The notice period lasts 30 days [c8]",
        "| Goods with the name of a law | Duty paid at the border |\n| :-- | --: |\n| Cars of heading 8703 | 2.5 percent [c7] |",
        "# Duty in 1999 on everything there is\n\nCars pay 2.5 percent [c7].",
        "Cars pay 2.5 percent [c7]. Shall I look up the duty on 17 other goods as well?",
        "```\nunsupported = 99 of everything in code\n```\nCars pay 2.5 percent [c7].",
    ],
    ids=["paraphrase", "marker-behind-stop", "list", "table", "heading", "question", "code"],
)
def test_what_the_sources_say_is_not_flagged(text: str) -> None:
    assert unsupported(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cars of heading 8703 pay 7.5 percent [c7].", ["Cars of heading 8703 pay 7.5 percent [1]."]),
        (
            "Cars pay 2.5 percent [c7]. Importers must register with the customs agency beforehand.",
            ["Importers must register with the customs agency beforehand."],
        ),
        (
            "Cars pay 2.5 percent [c7]. The notice period is 30 days [c7].",
            ["The notice period is 30 days [1]."],
        ),
    ],
    ids=["wrong-number", "no-marker", "wrong-passage"],
)
def test_what_no_source_says_is_flagged(text: str, expected: list[str]) -> None:
    assert unsupported(text) == expected


def test_a_source_in_another_language_does_not_silence_the_marks_of_a_whole_answer() -> None:
    german = "Die Frist für eine Kündigung ist dreißig Tage, und sie beginnt mit dem ersten Tag des Monats."
    passages = {**PASSAGES, 9: CitablePassage(9, 1, "Frist", "T", german)}
    invented = "The importers of the goods have to register with the agency before they are at the border."
    told = "The cars of heading 8703 pay a duty of 2.5 percent [c7]. The notice that is given to the tenant has thirty days [c9]."
    cited = answer_cite(f"{told} {invented}", passages)
    found = unsupported_find(cited, {s.number: s.passage.text for s in cited.sources})
    marked = {cited.text[start:end]: reason for start, end, reason in found}
    assert marked == {
        "The notice that is given to the tenant has thirty days [2].": "language",
        invented: "unsupported",
    }


GERMAN = "Die Frist für eine Kündigung ist 30 Tage, und sie beginnt mit dem ersten Tag des Monats"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{GERMAN} [c8].", ["language"]),
        (f"{GERMAN}.", ["language"]),  # rests on what the answer cites elsewhere, all of it in English
        (f"{GERMAN.replace('30', '45')} [c8].", ["number"]),
    ],
    ids=["named", "not-named", "wrong-number"],
)
def test_what_rests_on_another_language_alone_is_told_as_not_checked(text: str, expected: list[str]) -> None:
    passages = {8: PASSAGES[8].text}
    other = " Die Mieter und die Vermieter sind an die Frist nicht gebunden [c8]."
    assert reasons(text + other, passages) == [*expected, "language"]


WAR = (
    "Prussia and its allies defeated Austria in the war of 1866. The Peace of Prague ended it. Bismarck did not annex Saxony, "
    "although the king had asked for it. The Federal Patent Court (FPC) sits in Munich and hears 800 cases a year, of which 90 "
    "are appeals. Nuclear waste must be stored below ground. Imports increased in 2019. Anna Weber chairs the board."
)


@pytest.mark.parametrize(
    "text",
    [
        "In 1866 Prussia and its allies defeated Austria [c1].",
        "Austria was defeated by Prussia and its allies in the war of 1866 [c1].",
        "Bismarck didn't annex Saxony, which the king had asked for [c1].",
        "Bismarck never annexed Saxony although the king had asked for it [c1].",
        "The FPC in Munich hears 800 cases each year [c1].",
        "The FPC's 800 cases a year include 90 appeals [c1].",
        "Nuclear waste must be stored not only safely but below ground [c1].",
        "Weber is the chair of the board, as Anna Weber chairs it [c1].",
        "The Prussians defeated the Austrians in the war of 1866 [c1].",
        "In Lindau the Peace of Prague ended the war of 1866 [c1].",  # the question names Lindau
    ],
)
def test_what_the_passage_says_in_other_words_is_not_flagged(text: str) -> None:
    assert reasons(text, {1: WAR}, "What is known about this in Lindau?") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Austria and its allies defeated Prussia in the war of 1866 [c1].", "name"),
        ("Prussia and its allies defeated Bavaria in the war of 1866 [c1].", "name"),
        ("The Federal Patent Court sits in Hamburg and hears 800 cases a year [c1].", "name"),
        ("Carl Weber chairs the board of the Federal Patent Court in Munich [c1].", "name"),
        ("The Federal Patent Court did not sit in Munich for 800 cases a year [c1].", "polarity"),
        ("Nuclear waste must not be stored below ground [c1].", "polarity"),
        ("Bismarck did annex Saxony, although the king had asked for it [c1].", "polarity"),
        ("Prussia and its allies never defeated Austria in the war of 1866 [c1].", "polarity"),
        ("Nuclear waste must be stored above ground [c1].", "polarity"),
        ("The Federal Patent Court hears 900 cases a year in Munich [c1].", "number"),
        ("The Federal Patent Court hears 90 cases a year, of which 800 are appeals [c1].", "number"),
        ("Importers must register with a customs agency beforehand and pay a deposit [c1].", "unsupported"),
    ],
)
def test_each_kind_of_doubt_has_its_reason(text: str, expected: str) -> None:
    assert reasons(text, {1: WAR}) == [expected]


INSTITUTE = (
    "Apart from rules of its own, the Polar Institute has for a long time without any charge lent its older instruments "
    "to schools such as the Maritime School."
)


@pytest.mark.parametrize(
    ("text", "is_passive"),
    [
        (
            "The {} has, as far as is known, lent its older instruments, long without any charge, to the {} [c1].",
            False,
        ),
        (
            "The {}, whose rules are free, lent older instruments for a long time, without charge, even to the {} [c1].",
            False,
        ),
        ("The {} has been lent older instruments by the {} for a long time without any charge [c1].", True),
    ],
)
def test_names_on_the_wrong_sides_of_what_one_sentence_says_are_flagged(text: str, is_passive: bool) -> None:
    names = ("Polar Institute", "Maritime School")
    right, turned = (names[::-1], names) if is_passive else (names, names[::-1])
    assert reasons(text.format(*right), {1: INSTITUTE}) == []
    if not is_passive:  # what is told in the other voice has no order to compare
        assert reasons(text.format(*turned), {1: INSTITUTE}) == ["name"]


HARBOUR = (
    "Norden Shipping sold the Elbe Terminal to Lindholm Partners in 2004. The Elbe Terminal was extended by Oskar Brandt. "
    "Kiel and Lübeck handle most of the timber. The Port Council (PC) sits in Cuxhaven. The storm of 2011 reached Emden at "
    "night. It closed the port of Emden for three weeks and cost Baltic Insurance nine million euros."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In 2004 Norden Shipping sold the Elbe Terminal to Lindholm Partners [c1].", []),
        ("In 2004 Lindholm Partners sold the Elbe Terminal to Norden Shipping [c1].", ["name"]),
        ("In 2004 the Elbe Terminal was sold to Lindholm Partners by Norden Shipping [c1].", []),
        ("The Elbe Terminal extended Oskar Brandt, as the council says [c1].", ["name"]),
        ("Lübeck and Kiel handle most of the timber there [c1].", []),
        ("The PC, the Port Council, sits in Cuxhaven and meets there [c1].", []),
        ("The storm of 2011 cost Baltic Insurance nine million euros in all [c1].", []),
        ("The storm of 2011 cost Lindholm Partners nine million euros in all [c1].", ["name"]),
        ("Tempest Rita closed the port of Emden for three weeks [c1].", []),  # the question names it
    ],
    ids=[
        "same",
        "exchanged",
        "passive",
        "active-turned",
        "list",
        "initials",
        "in-place",
        "another",
        "pronoun",
    ],
)
def test_each_name_has_the_place_that_it_has_in_the_nearest_sentences(text: str, expected: list[str]) -> None:
    assert reasons(text, {1: HARBOUR}, "What did the tempest Rita do in 2011?") == expected


def test_a_name_that_the_passage_repeats_everywhere_is_missed_where_it_is_left_out() -> None:
    often = (
        "Kassel Works pays the fee. The board of Kassel Works met Kassel Works again. Kassel Works is large. "
    )
    passage = (
        often * 3 + "The bridge over the Fulda was painted by Anton Maier for Hessen Rail in green colour."
    )
    right = "The bridge over the Fulda was painted by Anton Maier for Hessen Rail in green colour [c1]."
    assert reasons(right, {1: passage}) == []
    assert reasons(right.replace("Hessen Rail", "Kassel Works"), {1: passage}) == ["name"]


CHINESE = "乘用车须缴纳百分之二点五的关税。卡车须缴纳百分之二十五的关税，通知期为30天，从每月第一天开始计算。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("通知期为30天，从每月的第一天开始 [c1].", []),
        ("通知期为45天，从每月的第一天开始 [c1].", ["number"]),
        ("进口商必须事先在海关登记并且支付一笔押金 [c1].", ["unsupported"]),
    ],
)
def test_scripts_without_spaces_are_compared_too(text: str, expected: list[str]) -> None:
    assert reasons(text, {1: CHINESE}) == expected


def test_spans_of_before_there_were_reasons_read_as_unsupported() -> None:
    spans: list[list[Any]] = [[3, 9], [3, 9, "name"], [3, 9, "language"]]
    assert [reason_of(span) for span in spans] == ["unsupported", "name", "language"]
    assert [mark.is_doubt for mark in marks_read(spans, "a" * 9)] == [True, True, False]


def test_hostile_texts_are_read_in_linear_time_and_flag_what_they_must() -> None:
    long = "Not no never [c1] " * 3_000 + "1,1,1,1" * 5_000 + "A.B." * 5_000 + "'" * 5_000
    assert isinstance(reasons(long, {1: long}), list)
    assert reasons("Ⅷ ½ ² ٣ ‮ \x00 are the marks of the four kings [c1].", {1: "\x00 ² ½"}) == ["number"]


def test_nothing_is_flagged_in_an_answer_without_sources() -> None:
    assert unsupported("The moon is 384,400 km away from the earth on average.") == []


def test_mark_is_under_the_sentence_and_cannot_leave_running_text() -> None:
    text = 'Cars pay 2.5 percent [c7]. See [all rules of 1999. Yes](https://e.org "a b c 1999. d") `of 1999. x` there. Importers registered 1999 cars.'
    cited = answer_cite(text, PASSAGES)
    pieces = flagged(cited.pieces, [(n, n + 1, "name") for n in range(len(cited.text))])
    assert "".join(p.text + "".join(f"[{n}]" for n in p.numbers) for p in pieces) == cited.text
    html = "".join(b.html for b in blocks_render(pieces, run_id=1, labels={1: "Doc"}))
    assert "\ue004" not in html
    assert "\ue005" not in html
    found = unsupported_find(cited, {1: PASSAGES[7].text})
    (block,) = blocks_render(flagged(cited.pieces, found), run_id=1, labels={1: "Doc"})
    assert ">Importers registered 1999 cars.</span>" in block.html
    assert "number not in the source" in block.html


def test_marks_leave_the_form_of_the_text_as_it_is() -> None:
    """The page shows the same elements with marks and without, so that nothing moves when an answer has ended."""
    text = (
        "Cars pay 2.5 percent [c7]. **All 7 wagons burned in the harbour of Trieste.** Then *nobody* rebuilt the 9 granite "
        "towers.\n\n- **Lead.** The lighthouse keepers of Lampedusa received medals [c7].\n1. Some 40 masons slept in the "
        "old quarry.\n\n> Every baker of the town sold 12 loaves.\n\n| Who | What |\n|---|--:|\n| Some 40 masons | slept in the "
        "old quarry `of 9` days |\n"
    )
    cited = answer_cite(text, PASSAGES)
    found = unsupported_find(cited, {1: PASSAGES[7].text})
    assert len(found) == 5
    plain = blocks_render(cited.pieces, run_id=1, labels={})
    marked = blocks_render(flagged(cited.pieces, found), run_id=1, labels={})
    assert "".join(b.html for b in marked).count('class="nosrc') >= 5
    assert {f"r1-m{n}" for n in range(5)} == set(
        re.findall(r'id="(r1-m\d)"', "".join(b.html for b in marked))
    )
    tags = re.compile(r"<(?!/?span)[^>]*>")
    assert [tags.findall(b.html) for b in marked] == [tags.findall(b.html) for b in plain]


def test_marker_stays_on_the_line_of_the_word_before_it_and_so_does_the_full_stop() -> None:
    (block,) = blocks_render(answer_cite("Cars pay 2.5 percent [c7].", PASSAGES).pieces, run_id=1, labels={})
    assert re.search(r'pay 2\.5 <span class="nb">percent <button [^>]*>1</button>\.</span></p>', block.html)

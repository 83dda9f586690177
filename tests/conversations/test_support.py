"""Sentences that no source supports: found, with where they stand, and left alone where nothing is claimed."""

from __future__ import annotations

import pytest

from apps.conversations.citations import Passage, answer_cite, flagged
from apps.conversations.rendering import blocks_render
from apps.conversations.support import unsupported_find

PASSAGES = {
    7: Passage(7, 1, "Tariff", "T", "Cars of heading 8703 pay a duty of 2.5 percent. Trucks pay 25 percent."),
    8: Passage(8, 1, "Terms", "T", "The notice period is 30 days and begins on the first of the month."),
}  # fmt: skip


def unsupported(text: str) -> list[str]:
    cited = answer_cite(text, PASSAGES)
    found = unsupported_find(cited, {s.number: s.passage.text for s in cited.sources})
    return [cited.text[start:end] for start, end in found]


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
        "Die Frist für eine Kündigung ist 30 Tage, und sie beginnt mit dem ersten Tag des Monats [c8].",
    ],
    ids=["paraphrase", "marker-behind-stop", "list", "table", "heading", "question", "code", "german"],
)  # fmt: skip
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
)  # fmt: skip
def test_what_no_source_says_is_flagged(text: str, expected: list[str]) -> None:
    assert unsupported(text) == expected


def test_a_source_in_another_language_does_not_silence_the_marks_of_a_whole_answer() -> None:
    german = "Die Frist für eine Kündigung ist dreißig Tage, und sie beginnt mit dem ersten Tag des Monats."
    passages = {**PASSAGES, 9: Passage(9, 1, "Frist", "T", german)}
    invented = (
        "The importers of the goods have to register with the agency before they are at the border."
    )
    told = "The cars of heading 8703 pay a duty of 2.5 percent [c7]. The notice that is given to the tenant has thirty days [c9]."
    cited = answer_cite(f"{told} {invented}", passages)  # fmt: skip
    found = unsupported_find(cited, {s.number: s.passage.text for s in cited.sources})
    assert [cited.text[start:end] for start, end in found] == [invented]


def test_nothing_is_flagged_in_an_answer_without_sources() -> None:
    assert unsupported("The moon is 384,400 km away from the earth on average.") == []


def test_mark_stands_behind_the_sentence_and_cannot_leave_running_text() -> None:
    text = 'Cars pay 2.5 percent [c7]. See [all rules of 1999. Yes](https://e.org "a b c 1999. d") `of 1999. x` there.'
    cited = answer_cite(text, PASSAGES)
    ends = range(len(cited.text) + 1)
    pieces = flagged(cited.pieces, ends)
    assert "".join(p.text + "".join(f"[{n}]" for n in p.numbers) for p in pieces) == cited.text
    html = "".join(b.html for b in blocks_render(pieces, run_id=1, labels={1: "Doc"}))
    assert "\ue004" not in html
    assert "\ue005" not in html
    found = unsupported_find(cited, {1: PASSAGES[7].text})
    (block,) = blocks_render(
        flagged(cited.pieces, (end for _, end in found)), run_id=1, labels={1: "Doc"}
    )
    assert block.html.count('class="nosrc"') == 1

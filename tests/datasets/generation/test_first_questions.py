"""Questions to begin with are answered by the passage that they are made of, and name no document."""

from __future__ import annotations

import pytest

from apps.datasets.generation.first_questions import LONGEST, first_question

RULES = (
    "Goods are kept in the store.\n\nEach declaration must be signed by the owner of the goods. "
    "The customs office requires a copy of the invoice."
)


def test_question_is_answered_by_the_passage() -> None:
    assert first_question(RULES, ("Duties",), 0) == "What does the customs office require?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\x01PNG \ufffd\ufffd IHDR 0000 1111",
        "Dear sir, the lamps came late.",
        "Die Frist beträgt dreißig Tage ab dem Ersten des Monats.",
        "def rate(code):\n    return RATES[code]\n",
        "| Code | Rate |\n| --- | --- |\n| 8501 | 12 % |\n| 8502 | 13 % |\n",
        "Each declaration of "
        + "goods, parcels, letters and other things " * 3
        + "must be signed by the owner.",
    ],
)
def test_nothing_is_asked_where_no_sentence_can_be_asked_about(text: str) -> None:
    question = first_question(text, (), 0)
    assert not question


def test_question_names_no_document_and_is_short() -> None:
    for text in (RULES, RULES.replace("Each declaration", "The Department")):
        question = first_question(text, (), 0)
        assert "according to" not in question
        assert len(question) <= LONGEST

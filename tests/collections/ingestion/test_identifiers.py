from __future__ import annotations

import time

import pytest

from apps.collections.ingestion import identifiers
from apps.collections.ingestion.identifiers import (
    facts,
    fidelity_measure,
    identifier_lexemes,
    identifier_list,
)


def test_identifiers_are_whole_when_text_has_codes_and_names():
    text = (
        "LED lamps 8539.50.00 use get_user_name() and getUserName, INV-100234, ISO 9001:2015, v1.2.3, GPT4."
    )
    assert set(identifier_list(text)) == {
        "8539.50.00",
        "get_user_name",
        "getusername",
        "inv-100234",
        "9001:2015",
        "v1.2.3",
        "gpt4",
    }


@pytest.mark.parametrize(
    "text",
    [
        "a.b",
        "a:b2",
        "x_y",
        "getName",
        "GPT4",
        "4G",
        "INV‐7",
        "is 4²/m here",
        "end.\nThe-next",
        "and/or",
        "Äb/ç_d",
    ],
)
def test_quick_look_misses_nothing(text: str) -> None:
    assert identifier_list(f"What of {text}?") == identifiers._identifiers(text)


def test_words_are_no_identifiers_when_only_hyphenated():
    assert identifier_list("A well-known and/or state-of-the-art thing. End of it.") == []


def test_lexemes_are_the_same_for_text_and_question():
    [lexeme] = identifier_lexemes("What is the duty on 8539.50.00?")
    assert lexeme == "id:8539.50.00"
    assert lexeme in identifier_lexemes("8539.50.00 LED lamps, Free")


def test_facts_hold_numbers_and_dates_when_text_has_them():
    found = facts("On August 19, 2025 it paid 1,234,567.50 or 12.5% and 7 of 2024.")
    assert {"august 19, 2025", "1,234,567.50", "12.5%", "2024"} <= found
    assert "7" not in found


def test_share_tells_the_loss_when_a_code_is_missing():
    result = fidelity_measure("8539.50.00 and 8539.51.00", ["only 8539.50.00 here", "nothing"])
    assert (result.kept, result.total, result.share) == (1, 2, 0.5)
    assert result.lost == ("8539.51.00",)


def test_longer_code_does_not_stand_for_a_shorter_one():
    assert fidelity_measure("8539.50.00", ["8539.50.00.10"]).kept == 0


def test_share_is_whole_when_there_is_nothing_to_keep():
    assert fidelity_measure("no codes", []).share == 1.0


@pytest.mark.parametrize("run", ["1", "a", "aB", "1a", "1,", "1.", "a_", "a-", ".", "_", "é1"], ids=repr)
def test_time_is_linear_when_a_run_has_no_end(run: str) -> None:
    """A worker whose interpreter is held by a pattern cannot renew its leases: it counts as dead."""
    text = run * (200_000 // len(run))
    began = time.process_time()
    facts(text)
    facts("x" + text + " and " + text[::-1])
    assert time.process_time() - began < 3

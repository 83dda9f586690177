"""Codes in one form: every spelling is the same, what is no code is none, and nobody's pattern hangs anything."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import pytest

from apps.collections.ingestion.code_kinds import code_kinds_parse
from apps.collections.ingestion.codes import EVERYWHERE, CodesInvalid, tariff_code
from tests.walked import each

SPELLINGS = (
    "8481.80.3055",
    "8481.80.30.55",
    "84.81.80.30.55",
    "848180.3055",
    "8481803055",
    "8481 80 3055",
    "8481 80 30 55",
    "84 81 80 30 55",
    "8481-80-3055",
    "8481–80–3055",
    "8481‑80‑30‑55",
    "8481\u00a080\u00a03055",
    "8481\u202f80\u202f3055",
    "８４８１．８０．３０５５",
    "８４８１８０３０５５",
    "٨٤٨١٨٠٣٠٥٥",
    "8481·80·3055",
    "8481.\u200b80.\u200b3055",
    "8481 . 80 . 3055",
)


def found(text: str, **kinds: Any) -> set[str]:
    known = code_kinds_parse(kinds) if kinds else EVERYWHERE
    return {f"{code.kind}:{code.canonical}" for code in known.find(text)}


@each("around, text", product(["{}", "In 2025 {} was free.", "(HTS {}),", "is {}?", "x\n{}\ty"], SPELLINGS))
def test_every_spelling_is_one_code(text: str, around: str) -> None:
    assert found(around.format(text)) == {"hts:8481803055"}


@each("text", SPELLINGS)
def test_what_a_tool_is_given_as_a_code_may_be_spelled_in_any_way(text: str) -> None:
    for given in (text, f" HTS {text}", f"heading no. {text} "):
        code = tariff_code(given)
        assert code is not None
        assert (code.canonical, code.text) == ("8481803055", "8481.80.3055")
    assert tariff_code(f"{text}1") is None


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("2025 8481.80", {"hts:848180"}),
        ("9903.01.25-9903.01.30", {"hts:99030125", "hts:99030130"}),
        ("8481.80.3055/8481.80.3056;7320.20.10", {"hts:8481803055", "hts:8481803056", "hts:73202010"}),
        ("8481.80.30 | 55 | Other", {"hts:84818030", "hts:8481803055"}),
        ("9903.88.03 25 percent, 9903.01.25 10%", {"hts:99038803", "hts:99030125"}),
        ("9902.01.01 1/ Frozen corn, 9903.45.21 12/", {"hts:99020101", "hts:99034521"}),
        ("headings 8407, 8408 and 8409", {"hts:8407", "hts:8408", "hts:8409"}),
        ("8481 Taps, cocks", {"hts:8481"}),
        ("In 2024 there were 1234 units at 1,500,000.50 and 12,345,678", set()),
        ("call 202-555-1234", set()),
        ("1 2 3 4 5 6 7 8 and 3.14159", set()),
        ("CAS No. 7782-78-7", {"cas:7782787"}),
        (
            "19 CFR 134.11; 19 C.F.R. § 134.12; 19 CFR part 134",
            {"cfr:19.134.11", "cfr:19.134.12", "cfr:19.134"},
        ),
        ("USTR–2024–0016", {"docket:ustr20240016"}),
    ],
)
def test_what_stands_around_a_code_is_no_part_of_it(text: str, codes: set[str]) -> None:
    assert found(text) == codes


def test_what_may_be_a_date_or_an_amount_is_not_sure() -> None:
    sure = {
        c.text: c.is_sure
        for c in EVERYWHERE.find("2025-11-23 and 150000 and 8481.80.30 55 and 7320.20.10.30")
    }
    assert sure == {
        "2025-11-23": False,
        "150000": False,
        "8481.80.30 55": False,
        "8481.80.30": True,
        "7320.20.10.30": True,
    }


def test_shorter_codes_lead_down_and_longer_ones_up() -> None:
    (code,) = EVERYWHERE.find("8481.80.3055")
    assert [parent.canonical for parent in EVERYWHERE.parents(code)] == ["84818030", "848180"]
    assert EVERYWHERE.below(code) == ""
    (code,) = EVERYWHERE.find("8481.80.30")
    assert EVERYWHERE.below(code) == "code:hts:84818030"
    (code,) = EVERYWHERE.find("19 CFR 134")
    assert EVERYWHERE.below(code) == "code:cfr:19.134."


PART = {"name": "part", "pattern": r"\bPX[- ]?(\d{4})(?:[- /](\d))?\b", "keep": "digits", "prefixes": True}


def test_own_pattern_finds_its_codes_beside_the_others() -> None:
    own = {"version": 1, "kinds": [PART]}
    assert found("px-1234/5 or PX 1234, 8481.80.30", **own) == {"part:1234.5", "part:1234", "hts:84818030"}
    assert code_kinds_parse(own).form != EVERYWHERE.form
    other = {"version": 1, "kinds": [PART | {"keep": "letters_digits"}]}
    assert code_kinds_parse(other).form != code_kinds_parse(own).form


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ({"version": 2, "kinds": []}, '"version": 1'),
        ({"version": 1, "kinds": {}}, "a list"),
        ({"version": 1, "kinds": [PART] * 21}, "at most 20"),
        ({"version": 1, "kinds": [PART, PART]}, "already exists"),
        ({"version": 1, "kinds": [PART | {"name": "hts"}]}, "already exists"),
        ({"version": 1, "kinds": [PART | {"name": "Part No"}]}, '"name"'),
        ({"version": 1, "kinds": [PART | {"keep": "all"}]}, '"keep"'),
        ({"version": 1, "kinds": [PART | {"prefixes": 1}]}, '"prefixes"'),
        ({"version": 1, "kinds": [PART | {"more": 1}]}, "unknown keys"),
        ({"version": 1, "kinds": [PART | {"pattern": "("}]}, "isn't a valid regular expression"),
        ({"version": 1, "kinds": [PART | {"pattern": "x*"}]}, "matches nothing at all"),
        ({"version": 1, "kinds": [PART | {"pattern": "(?:(?:a{1000}){1000}){9}"}]}, "repeats"),
        ({"version": 1, "kinds": [PART | {"pattern": r"(?:[A-Z0-9]+-?)+\?"}]}, "too long"),
        ({"version": 1, "kinds": [PART | {"pattern": r"(a|a)+$x"}]}, "too long"),
    ],
)
def test_bad_patterns_are_refused_in_words(kinds: Any, says: str) -> None:
    with pytest.raises(CodesInvalid, match=says):
        code_kinds_parse(kinds)


def test_hostile_pattern_that_came_through_is_left_out_and_named() -> None:
    """One that nothing at the door showed: it must cost a bounded time, and other codes must be found all the same."""
    hostile = PART | {"name": "slow", "pattern": r"(§|§)+$x"}
    kinds = code_kinds_parse({"version": 1, "kinds": [hostile]}, is_probed=False)
    began = time.process_time()
    for _ in range(20):
        assert [c.canonical for c in kinds.find("§" * 200 + " 8481.80.30 x")] == ["84818030"]
    assert kinds.late == ["slow"]
    assert time.process_time() - began < 5  # three times its limit, then nothing


@pytest.mark.parametrize(
    "run", ["1", "1.", "1 ", "12 ", "12.", "1234-", "8481.80", "19 CFR ", "A-2024", "1-1"]
)
def test_time_is_linear_when_a_run_has_no_end(run: str) -> None:
    text = run * (30_000 // len(run))
    began = time.process_time()
    EVERYWHERE.find(text)
    assert time.process_time() - began < 5
    assert EVERYWHERE.late == []

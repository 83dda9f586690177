"""A code's own line, row or section comes before passages that mention the code, whatever kind of code it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from apps.collections.index import code_patterns
from apps.collections.ingestion.codes import EVERYWHERE
from apps.collections.models import Collection
from apps.collections.search import SearchResult, search_run
from apps.collections.search.heads import HEAD, LISTED, heads_of, is_about_codes
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest

PARTS = {
    "version": 1,
    "kinds": [{"name": "part", "pattern": r"\bPX[- ]?\d{4}\b", "keep": "letters_digits", "prefixes": True}],
}
# As a PDF gives them: lines of equal length that end anywhere, a schedule after its notes.
NOTES = b"""U.S. Notes

36. (a) Except as provided for in headings 9903.74.10 and 9903.74.11, headings 9903.74.08 and 9903.74.09 provide the
ordinary customs duty treatment of parts of vehicles. The rates of duty of 9903.74.08 are in addition to any special
rate. For 9903.74.08, 9903.74.08 and again 9903.74.08 the importer declares the parts of vehicles as provided for in
9903.74.08 apply to parts, and the duty of 25% of heading 9903.74.08 is collected on parts of heavy vehicles.
"""
SCHEDULE = b"""Subchapter III, rates that apply for a time

9903.74.07 1/ Buses, as provided for in subdivision (g) of note 38 ........ 10%

9903.74.08 1/ Vehicle components, as provided for in subdivision (i) of note 38 ........ The duty + 25%

9903.74.09 1/ Vehicle components of other countries, subdivision (j) ........ The duty + 15%
"""


def told(text: str, written: str, headings: Sequence[str] = ()) -> int:
    (code,) = EVERYWHERE.find(written)
    return heads_of(text, headings, {code.lexeme: code.text}, EVERYWHERE.find).get(code.lexeme, 0)


@pytest.mark.parametrize(
    ("text", "code", "level"),
    [
        ("9903.74.08 1/ Vehicle parts .... 25%", "9903.74.08", HEAD),
        ("25% 1/\n9903.74.08 Vehicle parts", "9903.74.08", HEAD),
        ("8481.80.10 Ball valves .... 5.6% No.\n8481.80.30 Gate valves .... 4% m", "8481.80.30", HEAD),
        ("| Code | What |\n| --- | --- |\n| 8481.80.30 | hand operated valves |", "8481.80.30", HEAD),
        ("## Heading 8481.80.30: valves", "8481.80.30", HEAD),
        ("(a) 8481.80.30 Valves of iron", "8481.80.30", HEAD),
        ("8481,80\n8481.80.30,Valves of iron,4%", "8481.80.30", HEAD),
        ("19 CFR 134.11 Country of origin marking", "19 CFR 134.11", HEAD),
        ("CAS No. 7782-78-7: nitrosyl hydrogen sulfate", "7782-78-7", HEAD),
        ("Docket No. USTR-2024-0016 Request for comments", "USTR-2024-0016", HEAD),
        ("３９０３．１１．１１\n８４８１．８０．３０ Valves", "8481.80.30", HEAD),
        ("8481.80.30\n8481.90.10", "8481.80.30", LISTED),
        ("| 3 | 8481.80.30 | valves |", "8481.80.30", LISTED),
        ("The duty of 8481.80.30 is 4%.", "8481.80.30", 0),
        ("as provided for in headings\n8481.80.30 and 8481.80.10.", "8481.80.30", 0),
        ("as provided for in headings\n8481.80.30.", "8481.80.30", 0),
        ("goods classified under\n8481.80.30 Valves are free", "8481.80.30", 0),
        ("in addition to the rates\n8481.80.30 shall be free", "8481.80.30", 0),
        ("8481.80.30, 8481.80.10 and 8481.90.10 are free", "8481.80.30", 0),
        ("see 19 CFR 134.1,\n19 CFR 134.11 Marking", "19 CFR 134.11", 0),
    ],
)
def test_head_of_a_line_is_told_from_a_line_that_a_sentence_runs_through(
    text: str, code: str, level: int
) -> None:
    assert told(text, code) == level


def test_section_named_by_a_code_tells_of_it() -> None:
    assert told("Valves of iron are free.", "8481.80.30", ["Chapter 84", "Heading 8481.80.30"]) == HEAD
    assert told("Valves of iron are free.", "8481.80.30", ["Heading 8481.80.30", "Notes"]) == 0


@pytest.mark.parametrize(
    ("query", "is_one"),
    [
        ("9903.74.08", True),
        ("HTS 9903.74.08", True),
        ("What is the rate of duty on heading 9903.74.08?", True),
        ("Was bedeutet die Nummer 9903.74.08?", True),
        ("Does 9903.74.08 cover steel parts from Brazil that arrived before November?", False),
    ],
)
def test_look_up_is_told_from_a_question_that_only_names_a_code(query: str, is_one: bool) -> None:
    assert is_about_codes(query, ["9903.74.08"]) is is_one


@pytest.fixture
def asking(cast: Cast, collection: Collection) -> Iterator[Any]:
    def of(query: str, **more: Any) -> SearchResult:
        return search_run(
            tenant=cast.tenant, actor=cast.actor("viewer"), collections=[collection], query=query, **more
        )

    with tenant_scope(cast.tenant.pk):
        yield of


def test_own_line_of_a_schedule_comes_before_notes_that_repeat_the_code(
    cast: Cast, collection: Collection, asking: Any
) -> None:
    for number in range(4):
        ingest(cast, collection, f"notes{number}.txt", NOTES + b"\n" * number)
    ingest(cast, collection, "schedule.txt", SCHEDULE)
    for query in (
        "9903.74.08",
        "99037408",
        "heading 9903.74.08",
        "What is the duty on parts of 9903.74.08?",
    ):
        result = asking(query)
        assert [code.found for code in result.codes] == ["exact"]
        assert result.hits[0].document_name == "schedule.txt", query
        assert {hit.match for hit in result.hits} == {"exact"}
    # A question with a topic of its own is answered by what answers it.
    topic = "Which importer declares the special customs treatment of vehicles collected under 9903.74.08?"
    assert asking(topic).hits[0].document_name.startswith("notes")
    assert asking(topic, is_lookup=True).hits[0].document_name == "schedule.txt"


def test_shorter_code_finds_the_own_lines_of_longer_ones_first(
    cast: Cast, collection: Collection, asking: Any
) -> None:
    for number in range(3):
        ingest(cast, collection, f"notes{number}.txt", NOTES + b"\n" * number)
    ingest(cast, collection, "schedule.txt", SCHEDULE)
    result = asking("9903.74")
    assert [code.found for code in result.codes] == ["near"]
    assert (result.hits[0].document_name, result.hits[0].match) == ("schedule.txt", "near")


@pytest.mark.parametrize("is_configured", [True, False])
def test_own_row_of_a_part_comes_before_letters_that_mention_it(
    cast: Cast, collection: Collection, asking: Any, is_configured: bool
) -> None:
    if is_configured:
        code_patterns.code_patterns_set(tenant=cast.tenant, actor=cast.actor("admin"), patterns=PARTS)
    for number in range(4):
        letter = b"# Letter %d\n\nPX-4471 and PX-4472 arrived late. We sent PX-4471 back; PX-4471 is due on Monday."
        ingest(cast, collection, f"letter{number}.md", letter % number)
    table = b"| Part | Description | Price |\n| --- | --- | --- |\n| PX-4471 | hex bolt, zinc | 4.20 |\n| PX-4480 | nut | 1.10 |\n"
    ingest(cast, collection, "catalogue.md", b"# Parts\n\n" + table)
    for query in ("PX-4471", "part px-4471", "What is PX-4471?"):
        result = asking(query)
        assert result.hits[0].document_name == "catalogue.md", query
        assert bool(result.codes) is is_configured
    assert asking("PX-4471", legs=("vector",)).hits  # nothing is read where codes don't count


def test_definition_of_a_name_comes_before_what_calls_it(
    cast: Cast, collection: Collection, asking: Any
) -> None:
    for number in range(3):
        calls = b"user_name_read(user_name_read(1))\nprint(user_name_read(2), user_name_read(%d))\n" % number
        ingest(cast, collection, f"calls{number}.txt", calls)
    defined = b"def user_name_read(number: int) -> str:\n    value = table[number]\n    return value.name\n"
    ingest(cast, collection, "defined.txt", defined)
    assert asking("user_name_read").hits[0].document_name == "defined.txt"

"""Questions by rules over two sentences: what joins them, and what does not; and what is planned for a whole job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apps.collections.models import Chunk
from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.plan import Candidate, Slot
from apps.datasets.generation.rule_pools import MADE, MOST_OF_A_TABLE, candidates_by_rules, facts_of
from apps.datasets.generation.rule_questions import NO_SENTENCE, Made, question_make
from apps.datasets.models import GenerationState
from apps.datasets.rows import selectors
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.datasets.support import drive, make_open_library, start


def passage(text: str, at: int, document: str = "port-rules.pdf") -> CorpusPassage:
    return CorpusPassage(
        chunk_id=at,
        document_id=len(document),
        document=document,
        collection="Ports",
        text=text,
        char_start=0,
        page=None,
        headings=(),
        kind="doc",
        name="",
    )


def pair(kind: str, first: str, second: str, *documents: str) -> str:
    names = documents or ("port-rules.pdf", "port-rules.pdf")
    made = question_make([passage(first, 1, names[0]), passage(second, 2, names[1])], kind, "easy")
    return made.question if made else ""


LINKED = {
    "one subject": (
        "Harbour Net of Zenda is a register of all berths.",
        "Harbour Net of Zenda requires a yearly report from each captain.",
        "What is Harbour Net of Zenda, and what does it require?",
    ),
    "many of one subject": (
        "Pilots of the Zenda Port are required to submit a log.",
        "Pilots of the Zenda Port are responsible for the northern terminal.",
        "What are pilots of the Zenda Port required to do, and what are they responsible for?",
    ),
    "a name that the first brings up": (
        "Captains of Ruritania must submit a plan to the Zenda Harbour Board.",
        "The Zenda Harbour Board is responsible for the safety of piers.",
        "What must Captains of Ruritania submit, and what is the Zenda Harbour Board responsible for?",
    ),
}
APART = {
    "the same words": (
        "The customs fee for ships of Ruritania is 12 euros per day.",
        "The choir of Ruritania has 40 singers and an organist.",
    ),
    "one of an enumeration": (
        "Clients of Ruritania have four parts: the Zenda Net, the Zenda Log, a pier and a pilot.",
        "The Zenda Net is responsible for the safety of piers.",
    ),
    "one of many of a kind, of two documents": (
        "A yearly berth permit is a paper of the port.",
        "A yearly berth permit requires a plan of the ship.",
    ),
    "one of many of a kind, in two cases": (
        "When a berth is closed, the yearly berth permit office must notify all captains.",
        "Before a berth is closed, the yearly berth permit office must submit a plan.",
    ),
    "singular and plural": (
        "Harbour Rules of Zenda are a single paper with one number.",
        "Harbour Rules of Zenda defines what a berth may cost.",
    ),
    "what it is, twice": (
        "Harbour Net of Zenda is a register of all berths.",
        "Harbour Net of Zenda is the oldest program in the country.",
    ),
}


@pytest.mark.parametrize("case", LINKED)
def test_two_facts_are_asked_where_the_first_leads_to_the_second(case: str) -> None:
    first, second, question = LINKED[case]
    assert pair("multi_hop", first, second) == question


@pytest.mark.parametrize("case", APART)
def test_two_facts_that_nothing_joins_are_no_question(case: str) -> None:
    first, second = APART[case]
    assert pair("multi_hop", first, second, "a.pdf", "bb.pdf") == ""


def test_like_statements_of_two_things_are_compared_and_nothing_else() -> None:
    fee = "The customs fee for ships of Ruritania is 12 euros per day."
    assert pair("comparison", fee, "The customs fee for ships of Zenda is 15 euros.").endswith(
        "and how does the customs fee for ships of Zenda compare?"
    )
    assert pair("comparison", fee, "The customs fee for ships of Ruritania covers the pilots of Zenda.") == ""
    assert pair("comparison", fee, "The choir of Zenda is a group of 40 singers.") == ""
    assert pair("comparison", fee, fee) == ""
    bodies = (
        "The Zenda Board and Port describes five piers.",
        "The Zenda Board and the Pilots of the Port describes all.",
    )
    assert pair("comparison", *bodies) == "", "one of them is part of the other"
    same = fee.replace("12", "14")
    of_two = pair("comparison", f"{fee}", same, "rules-old.pdf", "rules-new-ones.pdf")
    assert of_two == ""  # What it is, each document says of its own day.
    report = "The yearly report of the Zenda Board describes {}."
    assert pair(
        "comparison", report.format("five piers"), report.format("all pilots"), "old.pdf", "newer.pdf"
    ) == (
        "What does the yearly report of the Zenda Board describe, according to “old”, and how does “newer” compare?"
    )


def row(name: str, cell: str) -> str:
    return f"| Setting | Default |\n|---|---|\n| {name} | {cell} |"


def test_rows_are_compared_by_figures_of_one_measure() -> None:
    first = row("PIER_LOG_DELAY", "5000")
    assert pair("comparison", first, row("PIER_NET_DELAY", "1000")) == (
        "How do the setting “PIER_LOG_DELAY” and the setting “PIER_NET_DELAY” compare in “Default” in “port rules”?"
    )
    made = question_make([passage(first, 1), passage(row("PIER_NET_DELAY", "1000"), 2)], "comparison", "easy")
    assert made is not None
    assert made.told == "The setting “PIER_LOG_DELAY”: 5000\nThe setting “PIER_NET_DELAY”: 1000"
    assert pair("comparison", row("North pier", "120 m"), row("Old berth", "80 m")) != "", "one unit"
    assert pair("comparison", first, row("CHOIR_SIZE", "40")) == "", "two measures"
    assert pair("comparison", first, row("PIER_NET_DELAY", "5000")) == "", "no difference"
    words = row("PIER_LOG_NAME", "what a log is called"), row("PIER_NET_NAME", "what a net is called")
    assert pair("comparison", *words) == "", "words"


def test_facts_of_a_job_leave_out_what_is_answered_in_two_ways_and_most_rows_of_a_table() -> None:
    one = "The Harbour Board of Zenda includes five captains."
    other = "The Harbour Board of Zenda includes three pilots and a clerk."
    assert facts_of([passage(one, 1), passage(other, 2, "b.pdf")]) == []
    assert len(facts_of([passage(one, 1), passage(one, 2, "b.pdf")])) == 1
    rows = "\n".join(f"| PIER_{n} | what pier {n} is for |" for n in range(9))
    table = f"| Setting | Purpose |\n|---|---|\n{rows}"
    facts = facts_of([passage(table, 1), passage(one, 2, "b.pdf")])
    assert len(facts) == MOST_OF_A_TABLE + 1
    assert facts[0][0].sentence == one, "a sentence says more than a row"


CODES = "\n\n" + "; ".join(f"84{n}.10.00" for n in range(10, 40))
SAID = (
    f"Of plans.\n\nThe harbour master of Zenda must submit a yearly plan to the council. The choir of Zenda has 40 singers.{CODES}",
    f"Of logs.\n\nThe chief pilot of Zenda must submit a monthly log to the council.{CODES}",
    f"Of fees.\n\nThe yearly fee for a berth in the port of Zenda is 120 euros and is paid in March of each year.{CODES}",
)


def planned(cast: Cast, slots: Sequence[Slot], texts: tuple[str, ...] = SAID) -> list[Candidate]:
    library = make_open_library(cast, "Port", texts)
    groups = [(chunk.pk,) for chunk in library.chunks]
    with tenant_scope(cast.tenant.pk):
        pools = dict.fromkeys(sorted({slot.type for slot in slots}), groups)
        found = [
            candidates_by_rules(cast.actor("member"), {library.collection.pk: "Port"}, slots, asked)
            for asked in (pools, dict(reversed(pools.items())))
        ]
    assert found[0] == found[1], "the order of the types must not matter"
    return found[0]


@pytest.mark.django_db(transaction=True)
def test_no_two_rows_of_a_job_ask_the_same_whatever_their_type(cast: Cast) -> None:
    kinds = ("factual", "how_to", "injected")
    levels = ("easy", "medium", "hard")
    slots = [Slot(n, kinds[n % 3], levels[n // 3]) for n in range(9)]
    candidates = planned(cast, slots)
    made = [Made(**candidate.data[MADE]) for candidate in candidates]
    assert len(made) == 4, "as many as the texts have"
    assert len({one.question for one in made}) == len({one.quotes[0] for one in made}) == len(made)
    assert sum(candidate.slot.type == "how_to" for candidate in candidates) == 2, "the scarce choose first"


@pytest.mark.django_db(transaction=True)
def test_questions_with_another_word_in_them_are_one(cast: Cast) -> None:
    texts = tuple(
        f"Of fees.\n\nThe yearly customs fee for a berth of the {side} terminal of Zenda is {n} euros."
        for n, side in enumerate(("northern", "southern", "western"), 12)
    )
    slots = [Slot(n, "factual", "easy") for n in range(3)]
    assert len(planned(cast, slots, texts)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("found")
def test_a_job_makes_fewer_rows_rather_than_poor_ones_and_says_why(cast: Cast) -> None:
    library = make_open_library(cast, "Port", SAID)
    shares: dict[str, Any] = {"factual": 3, "how_to": 3, "comparison": 1, "multi_hop": 1}
    with tenant_scope(cast.tenant.pk):
        job = drive(start(cast, library.collection, rows=8, types=shares))
        assert job.state == GenerationState.COMPLETED, job.reason
        questions = [row.question for row in selectors.job_rows(actor=cast.actor("viewer"), job=job)]
        assert len(questions) == len(set(questions)) == job.kept == 4
        assert sum(part["missing"] for part in job.shortfall) == 4
        assert {part["why"] for part in job.shortfall} == {NO_SENTENCE}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("found")
def test_a_job_without_any_sentence_ends_and_says_so(cast: Cast) -> None:
    codes = "; ".join(f"84{n}.10.00" for n in range(10, 60))
    library = make_open_library(cast, "Port", (codes,))
    with tenant_scope(cast.tenant.pk):
        job = drive(start(cast, library.collection, rows=2, types={"factual": 1}))
        assert (job.state, job.kept) == (GenerationState.COMPLETED, 0)
        assert {part["why"] for part in job.shortfall} == {NO_SENTENCE}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("found")
def test_a_row_of_a_table_is_made_with_its_cell_as_the_answer(cast: Cast) -> None:
    table = "\n".join(
        ["| Setting | Purpose | Default |", "|---|---|---|"]
        + [f"| PIER_{n}_LIMIT | how many ships may lie at pier {n} | {n} ships |" for n in range(3, 8)]
    )
    library = make_open_library(cast, "Port", (table,))
    Chunk.objects.filter(pk=library.chunks[0].pk).update(text=table)
    with tenant_scope(cast.tenant.pk):
        job = drive(start(cast, library.collection, rows=2, types={"factual": 1}))
        rows = list(selectors.job_rows(actor=cast.actor("viewer"), job=job))
    assert len(rows) == 2, job.shortfall
    for made in rows:
        assert "|" not in made.answer
        assert ";" not in made.answer
        assert made.answer in table

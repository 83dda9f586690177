"""Documents that a question names, and what a document says of itself for that: pure, no database."""

from __future__ import annotations

from datetime import date

import pytest

from apps.collections.ingestion.covers import MAX_CHARS, cover_of
from apps.collections.ingestion.types import ExtractedDocument, PageText
from apps.collections.search.document_order import WantedDocuments
from apps.collections.search.named import MOST
from apps.collections.search.types import Ranked, SearchHit


class Upload:
    name = "d41d8cd98f00b204e9800998ecf8427e.pdf"
    dated: date | None = None


def covered(text: str) -> str:
    page = PageText(1, text)
    return cover_of(Upload(), ExtractedDocument("application/pdf", (page,)))


def candidate(
    pk: int, cover: str, score: float, form: str = "2:english", dated: date | None = None
) -> Ranked:
    return Ranked(score, pk, pk, None, None, None, None, None, cover, form, dated)


def ordered(query: str, rows: list[Ranked]) -> list[Ranked]:
    return WantedDocuments(query).rows_ordered(rows)


def places(query: str, rows: list[Ranked]) -> list[int]:
    return [row.chunk_id for row in ordered(query, rows)]


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        ("For the quarterly period ended March 31, 2023", "March 31, 2023 · Q1 2023"),
        # Apple's years end in September, and its third quarter of 2023 in July.
        (
            "For the quarterly period ended July 1, 2023. Sales of the third quarter of 2023",
            "July 1, 2023 · Q2 2023 · Q3 2023",
        ),
        (
            "For the quarter ended October 29, 2023. The third quarter of fiscal year 2024",
            "October 29, 2023 · Q3 2023 · Q3 2024",
        ),
        # Quarters that the report compares its own with, however often, are not its own.
        (
            "For the three months ended 30 June 2022. Q2 2021, Q2 2021, Q2 2021, Q3 2030",
            "30 June 2022 · Q2 2022",
        ),
        ("For the fiscal year ended December 31, 2023", "December 31, 2023"),
        ("For the quarter ended February 30, 2023", "February 30, 2023"),
        ("For the quarter ended 03/04/2023", "03/04/2023"),
    ],
)
def test_document_says_which_quarter_it_is_about(text: str, quarters: str) -> None:
    assert covered(text) == quarters


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        # What it adds up since its year began shows which quarter of that year it is, whatever it speaks of.
        (
            "For the quarterly period ended December 31, 2022. Six Months Ended December 31, 2022. Q1 2023, Q1 2023",
            "December 31, 2022 · Q4 2022 · Q2 2023",
        ),
        (
            "For the quarter ended March 31, 2023\nThree Months Ended March 31, Nine Months Ended\nMarch 31,\n2023 2022",
            "March 31, 2023 · Q1 2023 · Q3 2023",
        ),
        (
            "For the quarterly period ended October 29, 2022. Thirty-nine weeks ended October 29, 2022",
            "October 29, 2022 · Q3 2022",
        ),
        # To another day: of the year before, or by a company it has bought.
        (
            "For the quarter ended March 31, 2023. Nine months ended September 30, 2022",
            "March 31, 2023 · Q1 2023",
        ),
        ("For the quarter ended 30.06.2022", "30.06.2022 · Q2 2022"),
    ],
)
def test_fiscal_quarter_is_read_from_what_is_added_up(text: str, quarters: str) -> None:
    assert covered(text) == quarters


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Memo\nDate: May 5, 2024\nLamps", "May 5, 2024"),
        ("Guidance\n\nIssued on 5 May 2024 by the board", "5 May 2024"),
        ("Berlin, 5. Mai 2024\nSehr geehrte Damen", "5. Mai 2024"),
        ("# Rates\n**2024-05-05**\n", "2024-05-05"),
        ("Preisliste, Stand: 05.05.2024", "05.05.2024"),
        # What the text tells of happened then; the document is not of that day.
        ("Ada Lovelace (born December 10, 1815) wrote notes.", ""),
        ("The battle of May 5, 1862 was lost.", ""),
    ],
)
def test_date_is_the_documents_own(text: str, day: str) -> None:
    assert covered(text) == day


def test_kind_of_company_is_no_company() -> None:
    form = (
        "BOREALIS CORPORATION\nSmaller Reporting Company [ ] Shell Company [ ]\n"
        "Each smaller reporting company, and each shell company, and a smaller reporting company. "
        "The Company sells lamps. The Company grows. The Company pays Borealis Corporation."
    )
    assert covered(form) == "BOREALIS CORPORATION"
    assert covered("The Company sells lamps. This Company grows.") == ""
    assert covered("The Ford Motor Company sells cars.") == "The Ford Motor Company"


def test_long_title_does_not_cost_the_period() -> None:
    class Long(Upload):
        name = f"{'a very long name of a file ' * 5}.pdf"

    page = PageText(
        1, "For the quarter ended March 31, 2023 Borealis and Acme Brothers Holding Inc\nFORM 10-Q"
    )
    line = cover_of(Long(), ExtractedDocument("application/pdf", (page,), title="some words of a title " * 5))
    assert line.endswith(" · Form 10-Q · March 31, 2023 · Q1 2023")
    assert line.startswith("some words of a title")
    assert len(line) <= MAX_CHARS


def test_document_says_which_form_it_is() -> None:
    assert covered("FORM 10-Q\nAcme, Inc.").endswith("Form 10-Q")
    assert "Form" not in covered("In the form of 10-K filers, any form 3 is filed.")


def test_document_named_in_full_comes_before_its_likes() -> None:
    reports = [
        candidate(1, "Acme Inc · Q1 2023", 5.2),
        candidate(2, "Borealis Inc · Q1 2023", 5.0),
        candidate(3, "Borealis Inc · Q2 2023", 5.1),
        candidate(4, "Acme Inc · Q2 2023", 5.3),
        candidate(5, "", 5.4, form=""),
    ]
    found = ordered("What did Borealis pay in Q1 2023?", reports)
    assert found[0].chunk_id == 2
    assert found[0].score <= 5.0 + 2 * MOST
    assert {row.chunk_id for row in found} == {1, 2, 3, 4, 5}


def test_name_does_not_bring_a_passage_about_something_else() -> None:
    rows = [candidate(1, "Tariffs", 9.0), candidate(2, "Borealis Inc", 9.0 - MOST - 0.1)]
    assert ordered("What are the duties of Borealis?", rows)[0].chunk_id == 1


def test_what_all_documents_are_called_parts_none() -> None:
    rows = [candidate(n, "Report", 5.0 - n / 10) for n in range(19)] + [candidate(19, "", 4.9)]
    found = {row.chunk_id: row.score for row in ordered("What does the report say?", rows)}
    assert found == pytest.approx({row.chunk_id: row.score for row in rows}, abs=0.1)


def test_questions_without_candidates_or_names_stay_as_they_are() -> None:
    assert ordered("anything", []) == []
    rows = [candidate(1, "", 2.0), candidate(2, "", 1.0)]
    assert ordered("anything", rows) == rows


# Apple's years end in September, Microsoft's in June, Acme's with the calendar; each answers alike.
FILINGS = [
    candidate(11, "Acme Inc · Form 10-Q · September 30, 2022 · Q3 2022", 5.0),
    candidate(12, "Acme Inc · Form 10-Q · March 31, 2023 · Q1 2023", 5.2),
    candidate(13, "Acme Inc · Form 10-Q · June 30, 2023 · Q2 2023", 5.1),
    candidate(21, "Borealis Corp · Form 10-Q · December 31, 2022 · Q4 2022 · Q1 2023", 5.2),
    candidate(22, "Borealis Corp · Form 10-Q · April 1, 2023 · Q1 2023 · Q2 2023", 5.1),
    candidate(23, "Borealis Corp · Form 10-Q · July 1, 2023 · Q2 2023 · Q3 2023", 5.0),
    candidate(31, "Minutes of the board", 5.3),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What did Acme earn in Q3 2022?", {11}),
        ("What did Acme earn in the third quarter of 2022?", {11}),
        ("What did Acme earn in the three months ended June 30, 2023?", {13}),
        ("Acme's cash as of September 30, 2022", {11}),
        ("Was verdiente Acme im dritten Quartal 2022?", {11}),
        ("Borealis, quarter ended June 2023", {23}),  # its June ends on the first of July
        # Whether the fiscal year or the calendar is meant, a question need not say.
        ("What did Borealis earn in Q2 2023?", {22, 23}),
        ("What did Borealis earn in its fiscal 2023 second quarter?", {22}),
        ("What did Borealis earn in calendar Q2 2023?", {23}),
        ("What was the latest profit of Acme?", {13}),
        ("the most recent 10-Q of Borealis", {23}),
        ("der neueste Bericht von Acme", {13}),
        ("le dernier rapport de Borealis", {23}),
        ("el informe más reciente de Acme", {13}),
        # The quarter that is named is meant, whatever is newer.
        ("the latest Acme report, for Q3 2022", {11}),
        # What is set aside or measured from is not.
        ("Acme since Q3 2022, in the latest report", {13}),
    ],
)
def test_period_and_age_part_the_reports_of_one_company(query: str, first: set[int]) -> None:
    for filings in (FILINGS, FILINGS[::-1]):
        assert set(places(query, filings)[: len(first)]) == first


def test_period_of_another_company_is_not_what_is_asked() -> None:
    # Only the other company has this quarter: its report does not pass those of the company that is named.
    assert set(places("What did Acme earn in Q3 2023?", FILINGS)[:3]) == {11, 12, 13}


def test_period_orders_all_companies_where_none_is_named() -> None:
    assert set(places("Who earned most in Q1 2023?", FILINGS)[:3]) == {12, 21, 22}
    assert set(places("Who earned most in the latest report?", FILINGS)[:2]) == {13, 23}


@pytest.mark.parametrize(
    "query",
    [
        "What did they earn?",
        "growth by quarter",
        "since the third quarter of 2022",
        "current assets",
        "Q3",
        "Q5 2022",
    ],
)
def test_question_without_period_or_age_is_ordered_by_what_answers(query: str) -> None:
    rows = [candidate(row.chunk_id, row.cover, row.score) for row in FILINGS]
    by_score = [row.chunk_id for row in sorted(rows, key=lambda row: -row.score)]
    found = ordered(query, [row._replace(cover="") for row in rows])
    assert [row.chunk_id for row in found] == by_score
    wanted = WantedDocuments(query)
    wanted.rows_ordered(rows)
    assert wanted.note == ""


def test_period_does_not_bring_a_passage_about_something_else() -> None:
    rows = [candidate(1, "Q2 2022", 9.0), candidate(2, "Q3 2022", 9.0 - MOST - 0.1)]
    assert places("What are the duties in Q3 2022?", rows) == [1, 2]
    rows = [candidate(1, "March 2021", 9.0), candidate(2, "March 2024", 9.0 - MOST - 0.1)]
    assert places("What are the latest duties?", rows) == [1, 2]


def test_date_that_people_gave_counts_before_the_cover() -> None:
    rows = [
        candidate(1, "Rates · 2 May 2024", 5.1, dated=date(2020, 1, 1)),
        candidate(2, "Rates · 2 May 2023", 5.0),
        candidate(3, "Rates", 5.05, dated=date(2025, 1, 1)),
    ]
    assert places("the latest rates", rows) == [3, 2, 1]


def test_result_says_what_the_age_did() -> None:
    def told(*covers: str) -> str:
        wanted = WantedDocuments("latest rate")
        wanted.rows_ordered([candidate(n, cover, 5.0) for n, cover in enumerate(covers)])
        return wanted.note

    assert "newer documents come first" in told("2 May 2023", "2 May 2024")
    assert "no date" in told("Rates", "Duties")
    assert "the same date" in told("Rates · 2 May 2023", "Duties · 2 May 2023")
    assert "don't differ" in told("2 May 2023", "Duties")


def test_reranker_reads_no_cover_so_period_and_age_speak_after_it_too() -> None:
    def after(query: str, *reranked: tuple[int, float | None]) -> list[int]:
        wanted = WantedDocuments(query)
        wanted.rows_ordered(FILINGS)
        return [hit.document_id for hit in wanted.hits_ordered([hit_of(*one) for one in reranked])]

    assert after("Acme in Q3 2022", (13, 2.2), (12, 1.0), (11, 1.6), (31, None)) == [11, 13, 12, 31]
    assert after("latest of Acme", (11, 2.2), (12, 1.0), (13, 2.0), (31, None)) == [13, 11, 12, 31]
    assert after("Acme", (11, 2.2), (12, 2.1), (13, 2.0), (31, None)) == [11, 12, 13, 31]


def hit_of(document: int, score: float | None) -> SearchHit:
    return SearchHit(
        chunk_id=document,
        document_id=document,
        document_name="report",
        version=1,
        collection_id=1,
        text="",
        index=0,
        kind="text",
        char_start=0,
        char_end=0,
        page_start=1,
        page_end=1,
        headings=[],
        metadata={},
        media_type="application/pdf",
        score=1.0,
        vector_rank=None,
        lexical_rank=1,
        exact_rank=None,
        distance=None,
        bm25=1.0,
        rerank_score=score,
    )

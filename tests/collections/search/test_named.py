"""Documents that a question names, and what a document says of itself for that: pure, no database."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from apps.collections.ingestion.covers import cover_of
from apps.collections.ingestion.types import ExtractedDocument, PageText
from apps.collections.search.named import MOST, named_first


class Upload:
    name = "d41d8cd98f00b204e9800998ecf8427e.pdf"
    dated: date | None = None


def covered(text: str) -> str:
    page = PageText(1, text)
    return cover_of(Upload(), ExtractedDocument("application/pdf", (page,)))


def candidate(pk: int, cover: str, score: float, form: str = "2:english") -> dict[str, Any]:
    return {"chunk_id": pk, "document_id": pk, "cover": cover, "form": form, "score": score}


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
    found = named_first("What did Borealis pay in Q1 2023?", reports)
    assert found[0]["chunk_id"] == 2
    assert found[0]["score"] <= 5.0 + MOST
    assert {row["chunk_id"] for row in found} == {1, 2, 3, 4, 5}


def test_name_does_not_bring_a_passage_about_something_else() -> None:
    rows = [candidate(1, "Tariffs", 9.0), candidate(2, "Borealis Inc", 9.0 - MOST - 0.1)]
    assert named_first("What are the duties of Borealis?", rows)[0]["chunk_id"] == 1


def test_what_all_documents_are_called_parts_none() -> None:
    rows = [candidate(n, "Report", 5.0 - n / 10) for n in range(19)] + [candidate(19, "", 4.9)]
    found = {row["chunk_id"]: row["score"] for row in named_first("What does the report say?", rows)}
    assert found == pytest.approx({row["chunk_id"]: row["score"] for row in rows}, abs=0.1)


def test_questions_without_candidates_or_names_stay_as_they_are() -> None:
    assert named_first("anything", []) == []
    rows = [candidate(1, "", 2.0), candidate(2, "", 1.0)]
    assert named_first("anything", rows) == rows

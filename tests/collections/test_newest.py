"""Questions for the newest: which are, in any language, and how far the age of a document goes. Pure, no database."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from apps.collections.search.named import MOST
from apps.collections.search.newest import Newest, lifts, newest_asked


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("What is the latest rate?", "latest"),
        ("most recent filing of Acme", "most recent"),
        ("Current policy on travel", "Current"),
        ("What does our current handbook say?", "current"),
        ("up-to-date rates", "up-to-date"),
        ("Was ist der aktuelle Zollsatz?", "aktuelle"),
        ("Quel est le dernier rapport ?", "dernier"),
        ("¿Cuál es la tarifa más reciente?", "más reciente"),
        ("какая последняя версия", "последняя"),
        ("ما هو أحدث تقرير", "أحدث"),
        ("מה התעריף הנוכחי", "הנוכחי"),
        ("最新的税率是多少", "最新"),
        ("現行の税率は？", "現行"),
        ("อัตราภาษีล่าสุด", "ล่าสุด"),
        ("नवीनतम दर क्या है", "नवीनतम"),
        ("최신 보고서", "최신"),
    ],
)
def test_words_for_the_newest_are_heard(query: str, asked: str) -> None:
    assert newest_asked(query) == asked


@pytest.mark.parametrize(
    "query",
    [
        "What is the duty on lamps?",
        "the current through the resistor",
        "What is the current?",
        "alternating current source",
        "current transformer ratio",
        "current account deficit",
        "older than the latest report",
        "not the current version",
        "What does “latest” mean?",
        "docker pull app:latest",
        "the latest_version field",
        "actual duty rate",
        "ultimate owner",
        "concurrent requests",
        "2021年5月現在の党員数は？",
    ],
)
def test_words_that_look_like_it_are_not(query: str) -> None:
    assert newest_asked(query) == ""


def test_age_orders_what_answers_alike_and_nothing_else() -> None:
    days = [date(2021, 1, 1), None, date(2024, 1, 1), date(2023, 1, 1), date(2026, 1, 1)]
    scores = [5.0, 5.1, 4.5, 4.9, 5.1 - MOST - 0.1]
    found = lifts(scores, days)
    assert found == pytest.approx([MOST / 3, 0.0, MOST, MOST / 2, 0.0])
    assert lifts([3.0, 2.0], [date(2021, 1, 1)] * 2) == [0.0, 0.0]  # the same date parts nothing
    assert lifts([], []) == []


def test_result_says_what_the_age_did() -> None:
    def rows(*days: date | None) -> list[dict[str, Any]]:
        return [
            {"chunk_id": n, "document_id": n, "score": 5.0 - n / 10, "dated": day}
            for n, day in enumerate(days)
        ]

    newest = Newest("latest rate")
    assert [row["chunk_id"] for row in newest.rows_ordered(rows(date(2020, 1, 1), date(2021, 1, 1)))] == [
        1,
        0,
    ]
    assert "from newer documents come first" in newest.note
    for days, told in (((None, None), "no date"), ((date(2020, 1, 1),) * 2, "the same date")):
        newest = Newest("latest rate")
        assert [row["chunk_id"] for row in newest.rows_ordered(rows(*days))] == [0, 1]
        assert told in newest.note
    quiet = Newest("rate")
    same = rows(date(2020, 1, 1), date(2021, 1, 1))
    assert quiet.rows_ordered(same) is same
    assert quiet.note == ""

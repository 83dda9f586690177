"""Questions for the newest: which are, in any language, and how far the age of a document goes. Pure, no database."""

from __future__ import annotations

from datetime import date

import pytest

from apps.collections.search.named import MOST
from apps.collections.search.newest import newest_asked, newest_lifts


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("What is the latest rate?", "latest"),
        ("most recent filing of Acme", "most recent"),
        ("Current policy on travel", "Current"),
        ("What does our current handbook say?", "current"),
        ("up-to-date rates", "up-to-date"),
        ("Was ist der aktuelle Zollsatz?", "aktuelle"),
        ("Umsatz im letzten Quartal", "letzten Quartal"),
        ("Was steht im letzten Quartalsbericht?", "letzten Quartalsbericht"),
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
    found = newest_asked(query)
    assert found is not None
    assert found.text == asked
    assert query[: found.end].endswith(asked)


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
        "current assets and current liabilities",
        "the current portion of long-term debt",
        "to be filed by 1 May at the latest",
        "Comment les ventes ont-elles évolué ces dernières années ?",
        "¿Cómo cambió en los últimos cinco años?",
        "Por último, ¿qué dice el contrato?",
        "la tarifa actualizada",
        "Was zählt letzten Endes?",
        "Umsatz der letzten drei Jahre",
    ],
)
def test_words_that_look_like_it_are_not(query: str) -> None:
    assert newest_asked(query) is None


def test_age_lifts_the_newest_most_and_an_undated_document_not() -> None:
    days = {1: date(2021, 1, 1), 2: None, 3: date(2024, 1, 1), 4: date(2023, 1, 1)}
    found = newest_lifts({1: 5.0, 2: 5.1, 3: 4.5, 4: 4.9}, days, dict.fromkeys(days, 0.0))
    assert found == pytest.approx({1: MOST / 3, 3: MOST, 4: MOST / 2})


def test_newer_document_about_something_else_or_of_another_company_takes_nothing() -> None:
    days = {1: date(2021, 1, 1), 2: date(2023, 1, 1), 3: date(2026, 1, 1)}
    far = newest_lifts({1: 5.0, 2: 5.0, 3: 5.0 - MOST - 0.1}, days, dict.fromkeys(days, 0.0))
    assert (far[1], far[2]) == (MOST / 2, MOST)
    other = newest_lifts(dict.fromkeys(days, 5.0), days, {1: 1.5, 2: 1.4, 3: 0.1})
    assert (other[1], other[2]) == (MOST / 2, MOST)


@pytest.mark.parametrize(
    "days",
    [
        {},
        {1: None, 2: None},
        {1: date(2021, 1, 1), 2: date(2021, 1, 1)},  # the same date parts nothing
        {1: date(2021, 1, 1), 2: None},
    ],
)
def test_age_says_nothing_without_two_dates(days: dict[int, date | None]) -> None:
    assert newest_lifts(dict.fromkeys(days, 3.0), days, dict.fromkeys(days, 0.0)) == {}

"""Days, quarters and fiscal years as people write them: pure, no database."""

from __future__ import annotations

from datetime import date

import pytest

from apps.collections.ingestion.periods import (
    AskedPeriod,
    Period,
    agreement,
    day_read,
    period_of,
    periods_asked,
    quarter_ended,
    quarter_words,
)
from tests.walked import each

Q3_2022 = 2022 * 4 + 2


@each(
    "words, year",
    [
        ("Q3 2022", ""),
        ("Q3, 2022", ""),
        ("Q3/2022", ""),
        ("Q3 of 2022", ""),
        ("2022 Q3", ""),
        ("2022Q3", ""),
        ("2022-Q3", ""),
        ("Q3'22", ""),
        ("3Q22", ""),
        ("3Q 2022", ""),
        ("third quarter 2022", ""),
        ("third quarter of 2022", ""),
        ("3rd quarter of 2022", ""),
        ("third quarter (Q3) of 2022", ""),
        ("2022's third quarter", ""),
        ("Q3 FY2022", "fiscal"),
        ("Q3 FY22", "fiscal"),
        ("3QFY22", "fiscal"),
        ("FY22 Q3", "fiscal"),
        ("fiscal Q3 2022", "fiscal"),
        ("third fiscal quarter of 2022", "fiscal"),
        ("third quarter of the fiscal year 2022", "fiscal"),
        ("fiscal 2022 third quarter", "fiscal"),
        ("third calendar quarter of 2022", "calendar"),
        ("Q3 CY2022", "calendar"),
        ("drittes Quartal 2022", ""),
        ("dritten Quartal des Geschäftsjahres 2022", "fiscal"),
        ("3. Quartal 2022", ""),
        ("troisième trimestre de 2022", ""),
        ("3e trimestre de l'exercice 2022", "fiscal"),
        ("tercer trimestre de 2022", ""),
        ("tercer trimestre del ejercicio 2022", "fiscal"),
    ],
)
def test_quarter_is_heard_in_every_spelling(words: str, year: str) -> None:
    asked = f"How much was earned in {words}?"
    (found,) = periods_asked(asked)
    assert (found.quarter, found.end, found.year) == (Q3_2022, None, year)
    assert asked[slice(*found.span)] == words


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("the three months ended June 30, 2022", date(2022, 6, 30)),
        ("the quarter ended 30 June 2022", date(2022, 6, 30)),
        ("the period ending 2022-06-30", date(2022, 6, 30)),
        ("cash as of September 30, 2022", date(2022, 9, 30)),
        ("cash as at 30th September 2022", date(2022, 9, 30)),
        ("the quarter ended February 2024", date(2024, 2, 29)),
        ("the June 2022 quarter", date(2022, 6, 30)),
        ("Bilanz zum 30. Juni 2022", date(2022, 6, 30)),
        ("Bilanz per 30.06.2022", date(2022, 6, 30)),
        ("bilan au 1er juillet 2022", date(2022, 7, 1)),
        ("balance al 30 de junio de 2022", date(2022, 6, 30)),
    ],
)
def test_end_of_a_period_is_heard(words: str, end: date) -> None:
    assert [(one.quarter, one.end) for one in periods_asked(words)] == [(None, end)]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Q3",
        "the third quarter",
        "2022",
        "Q5 2022",
        "Q3 20221",
        "Audi Q3 2.0 TDI",
        "part 3Q2213",
        "the period ended 30 February 2022",
        "the period ended 03/04/2022",
        "the letter that came on June 30, 2022",
        "as of now",
    ],
)
def test_what_names_no_period_is_not_heard_as_one(words: str) -> None:
    assert periods_asked(words) == []


@pytest.mark.parametrize(
    "words",
    [
        "since Q3 2022",
        "before the third quarter of 2022",
        "other than Q3 2022",
        "not as of June 30, 2022",
        "nicht das dritte Quartal 2022",
        "seit dem dritten Quartal 2022",
        "avant le troisième trimestre 2022",
        "después del tercer trimestre de 2022",
    ],
)
def test_period_that_a_question_sets_aside_is_marked(words: str) -> None:
    (found,) = periods_asked(words)
    assert found.is_set_aside


def test_several_periods_are_heard_in_order() -> None:
    found = periods_asked("Compare Q2 2022, the quarter ended June 30, 2023, and the first quarter of 2021")
    assert [(one.quarter and quarter_words(one.quarter), one.end) for one in found] == [
        ("Q2 2022", None),
        (None, date(2023, 6, 30)),
        ("Q1 2021", None),
    ]


@pytest.mark.parametrize(
    ("line", "end", "quarters"),
    [
        ("Acme Inc · July 1, 2023 · Q2 2023 · Q3 2023", date(2023, 7, 1), {"Q2 2023", "Q3 2023"}),
        ("2022 Q3 AAPL", date(2022, 9, 30), {"Q3 2022"}),
        ("10 Q 2023-06-30", date(2023, 6, 30), set()),
        ("20230630 report", date(2023, 6, 30), set()),
        # What the document says itself stands behind its name.
        ("downloaded 2024-01-05 · June 30, 2023 · Q2 2023", date(2023, 6, 30), {"Q2 2023"}),
        ("Minutes · May 2024", date(2024, 5, 31), set()),
        ("Duty 2021", date(2021, 12, 31), set()),
        ("Bericht · 30. Juni 2022", date(2022, 6, 30), set()),
        ("Rapport · 30 juin 2022", date(2022, 6, 30), set()),
        ("Quality · ISO 9001:2015", None, set()),
        ("HTS 2009.11.00 and 20091100", None, set()),
        ("Part 2022-23", None, set()),
        ("", None, set()),
    ],
)
def test_line_about_a_document_says_its_period(line: str, end: date | None, quarters: set[str]) -> None:
    found = period_of(line)
    assert found.end == end
    assert {quarter_words(quarter) for quarter in found.quarters} == quarters


@pytest.mark.parametrize(
    ("end", "quarter"),
    [
        (date(2022, 6, 30), "Q2 2022"),
        (date(2022, 6, 25), "Q2 2022"),  # years of 52 weeks
        (date(2023, 7, 1), "Q2 2023"),
        (date(2024, 1, 28), "Q4 2023"),
    ],
)
def test_quarter_goes_by_its_middle(end: date, quarter: str) -> None:
    assert quarter_words(quarter_ended(end)) == quarter


@pytest.mark.parametrize(
    ("line", "asked", "agrees"),
    [
        ("July 1, 2023 · Q2 2023 · Q3 2023", "Q2 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "Q3 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "fiscal Q3 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "fiscal Q2 2023", 0.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "calendar Q2 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "calendar Q3 2023", 0.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "Q1 2023", 0.0),
        # A fiscal year that goes with the calendar.
        ("June 30, 2023 · Q2 2023", "fiscal Q2 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "the quarter ended July 1, 2023", 1.0),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "the quarter ended June 2023", 0.5),
        ("July 1, 2023 · Q2 2023 · Q3 2023", "as of March 31, 2023", 0.0),
        ("Letter · 3 November 2023", "Q4 2023", 0.5),
        ("Letter · 3 November 2023", "Q3 2023", 0.0),
        ("Letter · 3 November 2023", "fiscal Q4 2023", 0.0),
        ("Minutes · May 2023", "Q2 2023", 0.5),
        ("Annual report 2023", "Q2 2023", 0.5),
        ("Annual report 2022", "Q2 2023", 0.0),
        ("Annual report 2023", "as of December 31, 2023", 0.0),
        ("Annual report", "Q2 2023", 0.0),
    ],
)
def test_period_of_a_document_agrees_with_the_one_asked_for(line: str, asked: str, agrees: float) -> None:
    (one,) = periods_asked(asked)
    assert agreement(period_of(line), one) == agrees


def test_nothing_agrees_with_nothing() -> None:
    assert agreement(Period(), AskedPeriod(Q3_2022, None, "", (0, 0))) == 0.0


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("June 30, 2022", date(2022, 6, 30)),
        (" Sept. 5 2022 ", date(2022, 9, 5)),
        ("30 June 2022", date(2022, 6, 30)),
        ("3. März 2022", date(2022, 3, 3)),
        ("30.06.2022", date(2022, 6, 30)),
        ("30/06/2022", date(2022, 6, 30)),
        ("03/04/2022", None),
        ("31/31/2022", None),
        ("Zork 30, 2022", None),
        ("30 February 2022", None),
        ("on June 30, 2022", None),
    ],
)
def test_day_is_read_or_refused(text: str, day: date | None) -> None:
    assert day_read(text) == day

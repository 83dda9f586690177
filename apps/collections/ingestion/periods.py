"""Days, quarters and fiscal years as people write them: which a line about a document names, and which a question. Pure.

A quarter is a number, four times the year and 0 to 3, so that quarters are ordered and counted. Fiscal quarters are called
by the year of the fiscal year, which may be a year ahead of the calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache

# From the end of a quarter back to its middle: fiscal quarters end some days before or after a calendar month does.
_TO_THE_MIDDLE = timedelta(days=46)
_SAME_END = timedelta(days=7)  # years of 52 or 53 weeks: their June ends between 24 June and 7 July

_MONTHS = {
    name: number
    for number, names in enumerate(
        """
        january jan januar jänner janvier janv enero ene
        february feb februar février févr febrero
        march mar märz mär mars marzo
        april apr avril avr abril abr
        may mai mayo
        june jun juni juin junio
        july jul juli juillet juil julio
        august aug août agosto ago
        september sep sept septembre septiembre
        october oct oktober okt octobre octubre
        november nov novembre noviembre
        december dec dezember dez décembre déc diciembre dic
        """.strip().splitlines(),
        1,
    )
    for name in names.split()
}
_MONTH = rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = rf"""(?:
    (?P<month_first>{_MONTH})\s+(?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<year_third>\d{{4}})
  | (?P<day_first>\d{{1,2}})(?:\.|st|nd|rd|th|er|º)?\s+(?:de\s+)?(?P<month_second>{_MONTH}),?\s+(?:del?\s+)?(?P<year_last>\d{{4}})
  | (?P<iso>\d{{4}}-\d{{2}}-\d{{2}}) | (?P<dots>\d{{1,2}}\.\d{{1,2}}\.\d{{4}}) | (?P<slashes>\d{{1,2}}/\d{{1,2}}/\d{{4}})
  | (?P<digits>(?:19|20)\d{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))
)(?!\d)"""
_ANY_DAY = re.compile(rf"(?<![\w.])(?:{_DAY})", re.IGNORECASE | re.VERBOSE)
_ANY_MONTH = re.compile(
    rf"(?<!\w)(?P<month>{_MONTH})\s+(?:del?\s+)?(?P<year>(?:19|20)\d{{2}})(?!\d)", re.IGNORECASE
)
_ANY_YEAR = re.compile(r"(?<![\w.,:/-])(?:FY\s?)?(?P<year>19[5-9]\d|20[0-4]\d)(?![\w/]|[.,-]\d)")

_ORDINALS = {
    word: number
    for number, words in enumerate(
        (
            "first 1st erste ersten erstes erster 1. premier 1er primer 1º",
            "second 2nd zweite zweiten zweites zweiter 2. deuxième second 2e 2ème segundo 2º",
            "third 3rd dritte dritten drittes dritter 3. troisième 3e 3ème tercer 3º",
            "fourth 4th vierte vierten viertes vierter 4. quatrième 4e 4ème cuarto 4º",
        )
    )
    for word in words.split()
}
_ORDINAL = "|".join(re.escape(word) for word in sorted(_ORDINALS, key=len, reverse=True))
_FISCAL = r"(?:fiscal|financial|FY|geschäftsjahr(?:e?s)?|exercice|ejercicio|año\s+fiscal)"
_CALENDAR = r"(?:calendar|CY|kalenderjahr(?:e?s)?)"
_NUMBER = rf"""(?:(?P<fiscal_ahead>{_FISCAL})\s+|(?P<calendar_ahead>{_CALENDAR})\s+)?(?:
    Q\s?(?P<q>[1-4]) | (?P<of_q>[1-4])Q
  | (?P<word>{_ORDINAL})\s+(?:(?P<fiscal_quarter>fiscal|geschäfts)\s*-?|(?P<calendar_quarter>calendar)\s+)?(?:quarter|quartals?|trimestre)(?:\s*\(Q[1-4]\))?
)"""
# Two digits are a year behind an apostrophe, a word for a fiscal year, or in “3Q22” alone.
_YEAR = rf"""(?:
    (?:(?P<fiscal>{_FISCAL})|(?P<calendar>{_CALENDAR}))?[\s-]?(?:year\s+)?['’]?(?P<year>(?:19|20)\d{{2}})
  | (?:(?P<fiscal_short>FY)\s?['’]?|['’])(?P<short>\d{{2}})
)"""
_BETWEEN = r"[\s,/_-]*(?:(?:of|in|de|du|del|des|im)\s+)?(?:(?:the|the\s+company['’]s|our|l['’]|el|dem)\s*)?"
_QUARTERS = tuple(
    re.compile(rf"(?<![\w.])(?:{pattern})(?![\w/]|[.,-]\d)", re.IGNORECASE | re.VERBOSE)
    for pattern in (
        rf"{_NUMBER}{_BETWEEN}{_YEAR}",
        rf"{_YEAR}(?:['’]s)?[\s,/_-]*{_NUMBER}",
        r"(?P<of_q>[1-4])Q[\s-]?(?:(?P<fiscal_short>FY)\s?)?(?P<short>\d{2})",
    )
)
# Words in front of the day on which something ends or of which a balance is.
_ENDS = re.compile(
    rf"""(?<!\w)(?:end(?:ed|ing|s)|as\s+(?:of|at)|endete[nr]?|endend[er]?|zum|per|bis\s+zum|au|clos(?:e)?(?:\s+le)?
    |terminée?(?:\s+le)?|arrêtée?s?\s+au|al|terminad[oa](?:\s+el)?|finalizad[oa](?:\s+el)?)\s*:?\s+
    (?:{_DAY}|(?P<month>{_MONTH})\s+(?P<year>(?:19|20)\d{{2}})(?!\d))
    | (?<!\w)(?P<month_of>{_MONTH})\s+(?P<year_of>(?:19|20)\d{{2}})(?=\s+quarter\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_DIGIT = re.compile(r"\d")
# What a question sets aside or measures from is not what it asks about.
_BUT_NOT = re.compile(
    r"(?:\b(?:not|than|before|after|since|until|without|except|excluding|unlike|prior\s+to|preceding|following"
    r"|nicht|vor|nach|seit|ohne|außer|avant|après|depuis|sans|sauf|antes\s+del?|después\s+del?|desde|sin|salvo)"
    r"\s+(?:(?:in|for|the|our|its|their|this|der|die|das|dem|den|le|la|el)\s+)*)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Period:
    """What a document is about in time, as far as its line says.

    Attributes:
        end: the day on which its period ends, or its date; the last day of the month, quarter or year where no more is known.
        quarters: by which it calls itself, by the calendar or the fiscal year.
        is_exact: the day is written.
    """

    end: date | None = None
    quarters: frozenset[int] = frozenset()
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class AskedPeriod:
    """One period that a question names.

    Attributes:
        quarter: None where it names the day of the end.
        end: the last day of a month where it names only that.
        year: which year it means: ``fiscal``, ``calendar``, or "" where it does not say.
        span: where in the question.
        is_set_aside: the question means others (“since Q3 2022”, “not the first quarter of 2023”).
    """

    quarter: int | None
    end: date | None
    year: str
    span: tuple[int, int]
    is_set_aside: bool = False


def quarter_ended(end: date) -> int:
    """Return the calendar quarter that a period of three months lies in that ends on a day."""
    middle = end - _TO_THE_MIDDLE
    return middle.year * 4 + (middle.month - 1) // 3


def quarter_words(quarter: int) -> str:
    """Return a quarter as people ask for it: ``Q3 2022``."""
    return f"Q{quarter % 4 + 1} {quarter // 4}"


def day_read(text: str) -> date | None:
    """Read a whole text as a day; None where it is none, or day and month may be mistaken (03/04/2023)."""
    match = _ANY_DAY.fullmatch(text.strip())
    return _day(match) if match else None


@lru_cache(maxsize=8_192)
def period_of(line: str) -> Period:
    """Return what a line about a document says of its time: title, file name, cover.

    The last day counts, because what a document says itself stands behind its title and name; then the newest quarter,
    month and year.
    """
    quarters = frozenset(quarter for quarter, _, _ in _quarters_in(line))
    days = [day for match in _ANY_DAY.finditer(line) if (day := _day(match))]
    if days:
        return Period(days[-1], quarters, is_exact=True)
    ends = [
        *map(_quarter_end, quarters),
        *(_month_end(int(m["year"]), _month(m["month"])) for m in _ANY_MONTH.finditer(line)),
    ] or [date(int(m["year"]), 12, 31) for m in _ANY_YEAR.finditer(line)]
    return Period(max(ends, default=None), quarters)


def periods_asked(question: str) -> list[AskedPeriod]:
    """Return the quarters and ends of periods that a question names, in its order."""
    if _DIGIT.search(question) is None:  # each has a year
        return []
    found = [
        AskedPeriod(quarter, None, year, match.span()) for quarter, year, match in _quarters_in(question)
    ]
    for match in _ENDS.finditer(question):
        month, year = match["month"] or match["month_of"], match["year"] or match["year_of"]
        end = _month_end(int(year), _month(month)) if month else _day(match)
        if end is not None:
            found.append(AskedPeriod(None, end, "", match.span()))
    return sorted(
        (replace(one, is_set_aside=bool(_BUT_NOT.search(question[: one.span[0]]))) for one in found),
        key=lambda one: one.span,
    )


def agreement(period: Period, asked: AskedPeriod) -> float:
    """Return how well the period of a document agrees with one that is asked for: 1 where it is that one.

    It is half where the document may be about it: one of a day or a year, or one that ends some days from the day asked
    for, as quarters of 13 weeks do. A quarter of the fiscal year is not looked for by the calendar, nor the other way.
    """
    if period.end is None:
        return 0.0
    if asked.quarter is None:
        if asked.end is None or not period.is_exact:
            return 0.0
        return 1.0 if period.end == asked.end else 0.5 * (abs(period.end - asked.end) <= _SAME_END)
    if period.quarters:
        by_calendar = {quarter_ended(period.end)} if period.is_exact else set()
        known = period.quarters
        if asked.year == "fiscal":
            known = known - by_calendar or known
        elif asked.year == "calendar":
            known = frozenset(by_calendar) or known
        return float(asked.quarter in known)
    if asked.year == "fiscal":
        return 0.0
    if period.is_exact:
        return 0.5 * (asked.quarter == period.end.year * 4 + (period.end.month - 1) // 3)
    is_of_the_year = (period.end.month, period.end.day) == (12, 31)
    of_the_month = period.end.year * 4 + (period.end.month - 1) // 3
    return 0.5 * (asked.quarter == of_the_month or (is_of_the_year and asked.quarter // 4 == period.end.year))


def _quarters_in(text: str) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Yield quarters with the year that is meant (fiscal, calendar or ""), none twice for the same letters."""
    taken: list[tuple[int, int]] = []
    for pattern in _QUARTERS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())
            found = match.groupdict()
            number = found.get("q") or found.get("of_q")
            quarter = int(number) - 1 if number else _ORDINALS[match["word"].lower()]
            year = int(found.get("year") or 2000 + int(match["short"]))
            said = {name.partition("_")[0] for name, words in found.items() if words}
            kind = "fiscal" if "fiscal" in said else "calendar" if "calendar" in said else ""
            yield year * 4 + quarter, kind, match


def _day(match: re.Match[str]) -> date | None:
    """Return the day of a match of ``_DAY``; None for one that does not exist or may be another."""
    try:
        if match["iso"]:
            return date.fromisoformat(match["iso"])
        if match["digits"]:
            return date.fromisoformat(match["digits"])
        if match["dots"]:
            day, month, year = map(int, match["dots"].split("."))
            return date(year, month, day)
        if match["slashes"]:
            one, other, year = map(int, match["slashes"].split("/"))
            month, day = min(one, other), max(one, other)
            return date(year, month, day) if day > 12 or day == month else None
        written = match["year_third"] or match["year_last"]
        named = match["month_first"] or match["month_second"]
        return date(int(written), _month(named), int(match["day_second"] or match["day_first"]))
    except ValueError:  # 30 February
        return None


def _month(name: str) -> int:
    return _MONTHS[name.rstrip(".").lower()]


def _month_end(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _quarter_end(quarter: int) -> date:
    return _month_end(quarter // 4, quarter % 4 * 3 + 3)

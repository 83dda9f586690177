"""What a passage cannot say of its document: title, name, whose it is, date and period, in one line for search.

Twenty reports of one form differ in little else. The line is looked for with every passage, by words and by meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from apps.collections.ingestion.types import ExtractedDocument

MAX_CHARS = 200
_HEAD_CHARS = 6_000  # where a document says who and when; its first pages
_BODY_CHARS = 300_000
_MAX_PART = 80
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_APART = re.compile(r"[_\s]+|(?<=\d)-(?=[A-Za-z])|(?<=[A-Za-z])-(?=\d)")
_NAMES_SOMETHING = re.compile(r"[^\W\d_]{2,}")
_WORD = re.compile(r"\w+")
# A name that a program made up says nothing: hashes, UUIDs, numbers alone.
_MADE_UP = re.compile(r"^[0-9a-f]{8,}(?:[ -][0-9a-f]{4,})*$", re.IGNORECASE)
_DATE = (
    r"(?:[A-Z][a-z]{2,8}\.?\s+\d{1,2}\s*,\s*\d{4}|\d{1,2}\.?\s+[A-Z][a-zé]{2,8}\.?\s+\d{4}|\d{4}-\d{2}-\d{2}"
    r"|\d{1,2}[./]\d{1,2}[./]\d{4})"
)
_PERIOD = re.compile(
    r"(?i:\b(?:quarter(?:ly)?|fiscal|months?|weeks?|year|period)\b[^.\n]{0,30}?\b(?:ended|ending)\b)\s*:?\s+(?P<end>"
    + _DATE
    + ")"
)
_ANY_DATE = re.compile(_DATE)
_FORM = re.compile(r"\b(?:FORM|Form)[ \t]+(?P<form>\d{1,3}-[A-Z]{1,3}|[A-Z]{1,3}-\d{1,4}[A-Z]?)\b")
_OF_QUARTER = re.compile(r"(?i)quarter|\b(?:three|3)\s+months|\b(?:thirteen|13|fourteen|14)\s+weeks")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ORDINALS = ("first", "second", "third", "fourth")
_SAID_QUARTER = re.compile(
    r"(?i)\b(?:(?P<word>first|second|third|fourth)\s+quarter\s+of\s+(?:the\s+)?(?:fiscal\s+)?(?:year\s+)?"
    r"|Q(?P<digit>[1-4])\s+(?:FY\s*)?)(?P<year>(?:19|20)\d{2})\b"
)
_TO_THE_MIDDLE = timedelta(days=46)  # from the end of a quarter: its middle, whatever day it ends on
_QUARTERS_AHEAD = 4  # a fiscal year is ahead of the calendar by at most: FY2024 may begin in February 2023
_COMPANY = re.compile(
    r"\b(?P<name>[A-Z][\w&'’.-]*(?:[ \t]+(?:(?:of|and|the|für|de|&)[ \t]+)?[A-Z][\w&'’.-]*){0,5}?,?[ \t]+"
    r"(?:Inc|INC|Incorporated|INCORPORATED|Corp|CORP|Corporation|CORPORATION|Company|COMPANY|Ltd|LTD|Limited|LLC|LLP|PLC|plc"
    r"|GmbH|AG|SE|KG|S\.A|SA|NV|BV|AB|Oy|Co))\b"
)


class Named(Protocol):
    """What a cover takes from a document's row."""

    name: str
    dated: date | None


def cover_of(document: Named, extracted: ExtractedDocument) -> str:
    """Return the line of a document, "" where nothing is known of it; at most ``MAX_CHARS`` characters.

    Source files have none: their passages say their path and what they are in.
    """
    if extracted.code is not None:
        return ""
    head = extracted.body_text[:_HEAD_CHARS]
    parts = [
        _said(extracted.title),
        name_words(document.name),
        _company(head, extracted.body_text),
        _form(head),
        document.dated.isoformat() if document.dated else "",
        *_period(head, extracted.body_text),
    ]
    line = ""
    for part in parts:
        fresh = part[:_MAX_PART].strip()
        if not _words(fresh) <= _words(line):
            line = f"{line} · {fresh}" if line else fresh
    return line[:MAX_CHARS]


def name_words(name: str) -> str:
    """Return a file's name as words, "" for one that says nothing."""
    words = " ".join(_APART.sub(" ", _ENDING.sub("", name.replace("\x00", ""))).split())
    return words if _NAMES_SOMETHING.search(words) and not _MADE_UP.match(words) else ""


def _said(title: str) -> str:
    words = " ".join(title.split())
    return "" if _ENDING.search(words) else name_words(words)


def _company(head: str, body: str) -> str:
    """Return the company named at the beginning that the document speaks of most: not the exchange, the bank, the court."""
    found = dict.fromkeys(" ".join(match["name"].split()) for match in _COMPANY.finditer(head))
    said = body[:_BODY_CHARS].lower()  # the cover may be in capitals
    return max(found, key=lambda name: said.count(name.lower()), default="")


def _form(head: str) -> str:
    """Return the form that a document says it is, as ``Form 10-Q``."""
    match = _FORM.search(head[: _HEAD_CHARS // 4])
    return f"Form {match['form']}" if match else ""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _period(head: str, body: str) -> list[str]:
    """Return the end of the period that a document is about, and its quarter as people ask for it; else its date."""
    match = _PERIOD.search(head)
    if match is None:
        dates = _ANY_DATE.search(head[: _HEAD_CHARS // 4])
        return [" ".join(dates.group().split())] if dates else []
    end = " ".join(match["end"].split())
    # The number of months stands before the word.
    is_quarter = _OF_QUARTER.search(head[max(0, match.start() - 12) : match.end()])
    day = _day(end) if is_quarter else None
    return [end, *(_quarters(day, body[:_BODY_CHARS]) if day else ())]


def _day(text: str) -> date | None:
    """Read a date that names its month or is written as ISO 8601; None where day and month may be mistaken."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    named = re.search(r"[A-Za-z]{3}", text)
    try:
        if named and len(numbers) == 2:
            return date(max(numbers), _MONTHS.index(named.group().lower()) + 1, min(numbers))
        return date(*numbers) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None
    except ValueError:  # a month of another language, or a day that does not exist
        return None


def _quarters(end: date, body: str) -> list[str]:
    """Name the quarter that ends on a day, by the calendar and by the fiscal year that the text speaks of most.

    Quarters of other periods, to which a report compares its own, are told by how far fiscal years may be from the
    calendar.
    """
    middle = end - _TO_THE_MIDDLE
    own = middle.year * 4 + (middle.month - 1) // 3
    said = Counter(
        int(match["year"]) * 4
        + (int(match["digit"]) - 1 if match["digit"] else _ORDINALS.index(match["word"].lower()))
        for match in _SAID_QUARTER.finditer(body)
    )
    fiscal = [(times, -n) for n, times in said.items() if own <= n <= own + _QUARTERS_AHEAD]
    numbers = dict.fromkeys([own, -max(fiscal)[1] if fiscal else own])
    return [f"Q{n % 4 + 1} {n // 4}" for n in numbers]

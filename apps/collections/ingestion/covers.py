"""What a passage cannot say of its document: title, name, whose it is, date and period, in one line for search.

Twenty reports of one form differ in little else. The line is looked for with every passage, by words and by meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Protocol

from apps.collections.ingestion.periods import day_read, quarter_ended, quarter_words

if TYPE_CHECKING:
    from apps.collections.ingestion.types import ExtractedDocument

MAX_CHARS = 200
_HEAD_CHARS = 6_000  # where a document says who and when; its first pages
_BODY_CHARS = 300_000
_MAX_PART = 80
_APART_BY = " · "
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
# A date of its own: alone in a line, maybe behind a place, or said to be it. Others are of what the text tells.
_OWN_DATE = re.compile(
    rf"^[ \t#*_>-]*(?:[^\W\d_]+,[ \t]*)?(?P<alone>{_DATE})[ \t.*_]*$"
    r"|\b(?i:dated?|issued|published|released|posted|updated|revised|modified|adopted|approved|effective|version|as\s+of"
    r"|datum|stand|vom|gültig\s+ab|veröffentlicht|aktualisiert|publié|mis\s+à\s+jour|fecha|publicado|actualizado)\b"
    rf"[^\w\n]{{0,4}}(?:(?i:on|of|from|as\s+of|am|le|el)[ \t]+)?(?P<said>{_DATE})",
    re.MULTILINE,
)
_FORM = re.compile(r"\b(?:FORM|Form)[ \t]+(?P<form>\d{1,3}-[A-Z]{1,3}|[A-Z]{1,3}-\d{1,4}[A-Z]?)\b")
_OF_QUARTER = re.compile(r"(?i)quarter|\b(?:three|3)\s+months|\b(?:thirteen|13|fourteen|14)\s+weeks")
_ORDINALS = ("first", "second", "third", "fourth")
_SAID_QUARTER = re.compile(
    r"(?i)\b(?:(?P<word>first|second|third|fourth)\s+quarter\s+of\s+(?:the\s+)?(?:fiscal\s+)?(?:year\s+)?"
    r"|Q(?P<digit>[1-4])\s+(?:FY\s*)?)(?P<year>(?:19|20)\d{2})\b"
)
# What a report adds up since its fiscal year began, besides its quarter: in the second and the third.
_SINCE_THE_YEAR_BEGAN = (
    (r"(?:six|6)\s+months|(?:twenty[-\s](?:six|seven)|26|27)\s+weeks", 1),
    (r"(?:nine|9)\s+months|(?:thirty[-\s]nine|forty|39|40)\s+weeks", 2),
)
_QUARTERS_AHEAD = 4  # a fiscal year is ahead of the calendar by at most: FY2024 may begin in February 2023
_COMPANY = re.compile(
    r"\b(?P<name>[A-Z][\w&'’.-]*(?:[ \t]+(?:(?:of|and|the|für|de|&)[ \t]+)?[A-Z][\w&'’.-]*){0,5}?,?[ \t]+"
    r"(?:Inc|INC|Incorporated|INCORPORATED|Corp|CORP|Corporation|CORPORATION|Company|COMPANY|Ltd|LTD|Limited|LLC|LLP|PLC|plc"
    r"|GmbH|AG|SE|KG|S\.A|SA|NV|BV|AB|Oy|Co))\b"
)

_MAY_BE_A_KIND = re.compile(r"(?i)\b(?:company|corporation|limited)\Z")
_THE_COMPANY = re.compile(r"(?i)(?:the|this|our|each|such|any|every)\s+\w+\Z")


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
    names = [_said(extracted.title), name_words(document.name), _company(head, extracted.body_text)]
    times = [document.dated.isoformat() if document.dated else "", *_period(head, extracted.body_text)]
    line = _joined("", [*names, _form(head), *times])
    if len(line) <= MAX_CHARS:
        return line
    # A long title must not cost the period: it alone parts a report from the one before.
    room = MAX_CHARS - len(_joined("", [_form(head), *times])) - len(_APART_BY)
    return _joined(_joined("", names)[:room].strip(), [_form(head), *times])[:MAX_CHARS]


def _joined(line: str, parts: Iterable[str]) -> str:
    """Return a line with more parts; none that says nothing fresh."""
    for part in parts:
        fresh = part[:_MAX_PART].strip()
        if not _words(fresh) <= _words(line):
            line = f"{line}{_APART_BY}{fresh}" if line else fresh
    return line


def name_words(name: str) -> str:
    """Return a file's name as words, "" for one that says nothing."""
    words = " ".join(_APART.sub(" ", _ENDING.sub("", name.replace("\x00", ""))).split())
    return words if _NAMES_SOMETHING.search(words) and not _MADE_UP.match(words) else ""


def _said(title: str) -> str:
    words = " ".join(title.split())
    return "" if _ENDING.search(words) else name_words(words)


def _company(head: str, body: str) -> str:
    """Return the company named at the beginning that the document speaks of most: not the exchange, the bank, the court.

    Kinds of companies have no name: “Smaller Reporting Company” on a form, “the Company” in a contract. The text writes
    them in small letters too.
    """
    said = body[:_BODY_CHARS]
    lower = said.lower()  # the cover may be in capitals
    names = dict.fromkeys(" ".join(match["name"].split()) for match in _COMPANY.finditer(head))
    kinds = {name for name in names if _MAY_BE_A_KIND.search(name) and name.lower() in said}
    found = [name for name in names if name not in kinds and not _THE_COMPANY.match(name)]
    return max(found, key=lambda name: lower.count(name.lower()), default="")


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
        found = _OWN_DATE.search(head[: _HEAD_CHARS // 4])
        return [" ".join((found["alone"] or found["said"]).split())] if found else []
    end = " ".join(match["end"].split())
    # The number of months stands before the word.
    is_quarter = _OF_QUARTER.search(head[max(0, match.start() - 12) : match.end()])
    return [end, *(_quarters(end, body[:_BODY_CHARS]) if is_quarter else ())]


def _quarters(end: str, body: str) -> list[str]:
    """Name the quarter that ends on a day, by the calendar and by the fiscal year; [] where the day can't be read.

    Which quarter of its fiscal year it is, a report shows by what it adds up to the same day: six months in its second.
    Where it adds up nothing, the quarter it speaks of most is taken. Others, to which a report compares its own, are told
    by how far fiscal years may be from the calendar.
    """
    day = day_read(end)
    if day is None:
        return []
    own = quarter_ended(day)
    said = Counter(
        int(match["year"]) * 4
        + (int(match["digit"]) - 1 if match["digit"] else _ORDINALS.index(match["word"].lower()))
        for match in _SAID_QUARTER.finditer(body)
    )
    place = _place_in_year(end, body)
    near = range(own, own + _QUARTERS_AHEAD + 1)
    fiscal = [n for n in near if (said[n] if place is None else n % 4 == place)]
    best = min(fiscal, key=lambda n: (-said[n], n), default=own)
    return [quarter_words(n) for n in dict.fromkeys([own, best])]


def _place_in_year(end: str, body: str) -> int | None:
    """Return which quarter of its fiscal year ends on a day, 1 or 2, by the longest time added up to it; None if none is."""
    # The year stands once above several columns, or in another line: month and day alone.
    day = re.sub(r"[\s,]*\b\d{4}\b", "", end).strip()
    if not re.search(r"[^\W\d]", day):
        return None
    until = r"\s+(?:ended|ending)\s+" + r"\s+".join(map(re.escape, day.split())) + r"\b"
    places = [n for months, n in _SINCE_THE_YEAR_BEGAN if re.search(rf"(?i)\b(?:{months}){until}", body)]
    return max(places, default=None)

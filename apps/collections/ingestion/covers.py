"""What a passage cannot say of its document: title, name, whose it is, date and period, in one line for search.

Twenty reports of one form differ in little else. The line is looked for with every passage, by words and by meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import date

    from apps.collections.ingestion.types import ExtractedDocument

MAX_CHARS = 200
_HEAD_CHARS = 6_000  # where a document says who and when; its first pages
_BODY_CHARS = 300_000
_MAX_PART = 80
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_APART = re.compile(r"[_\s]+|(?<=\d)-(?=[A-Za-z])|(?<=[A-Za-z])-(?=\d)")
_NAMES_SOMETHING = re.compile(r"[^\W\d_]{2,}")
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
        document.dated.isoformat() if document.dated else "",
        _period(head),
    ]
    line = ""
    for part in parts:
        fresh = part[:_MAX_PART].strip()
        if fresh and fresh.lower() not in line.lower():
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


def _period(head: str) -> str:
    match = _PERIOD.search(head)
    if match is not None:
        return " ".join(match["end"].split())
    dates = _ANY_DATE.search(head[: _HEAD_CHARS // 4])
    return " ".join(dates.group().split()) if dates else ""

"""Identifiers, codes, numbers and dates of a text: what a passage must not lose, and what search finds exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LEXEME_PREFIX = "id:"
_MAX_IDENTIFIER = 200

# Runs of letters and digits joined by one of . _ / : - without spaces: 8539.50.00, get_user_name, INV-100234.
# Only from the start of a word: from each letter of a run of 100,000 it would take minutes, with the GIL held.
_JOINED = re.compile(r"(?<![^\W_])[^\W_]+(?:[._/:\-‐‑][^\W_]+)+")
_CAMEL = re.compile(r"\b[a-z]+[A-Z][A-Za-z0-9]*\b")
_MIXED = re.compile(r"(?<![\w.:/\-])(?:[^\W\d_]+\d|\d+[^\W\d_])[^\W_]*(?!\w|[._/:\-]\w)")
# Part of whatever the three find: most questions have none of it.
_SIGN = re.compile(r"\d|[._/:\-‐‑][^\W_]|[a-z][A-Z]")
_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)%?")
_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
)
_DATE = re.compile(
    rf"\b(?:(?:{_MONTHS})\.?\s+\d{{1,2}},?\s+\d{{4}}|\d{{1,2}}\s+(?:{_MONTHS})\.?,?\s+\d{{4}})\b"
)
_MONTH_STEMS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE_REACH = 60  # characters on either side of where a month's name begins
_GATHERED_CHARS = 4_000_000
_APART = " \x00 "  # no blank, no part of a word: it ends a date too
_HYPHENS = str.maketrans({"‐": "-", "‑": "-"})


def identifier_list(text: str) -> list[str]:
    """List the distinct identifiers of a text, lower-cased, in order of appearance.

    An identifier is a run joined by ``. _ / : -`` that holds a digit, an underscore or a dot (``8539.50.00``,
    ``get_user_name``, ``INV-100234``, ``foo.bar``), a camelCase name, or a run mixing letters and digits
    (``GPT4``). Words that are only hyphenated or joined by a slash (``well-known``, ``and/or``) are not.
    """
    return _identifiers(_distinct(text)) if _SIGN.search(text) else []


def _identifiers(text: str) -> list[str]:
    found: dict[str, None] = {}
    for match in _JOINED.finditer(text):
        token = match.group().translate(_HYPHENS).lower()
        if len(token) <= _MAX_IDENTIFIER and (
            "_" in token or "." in token or any(ch.isdigit() for ch in token)
        ):
            found[token] = None
    for pattern in (_CAMEL, _MIXED):
        for match in pattern.finditer(text):
            if len(match.group()) <= _MAX_IDENTIFIER:
                found[match.group().lower()] = None
    return list(found)


def _distinct(text: str) -> str:
    """Keep each run without blanks once: nothing looked for here holds a blank, and prose repeats its words."""
    words: dict[str, None] = {}
    start = 0
    while start < len(text):
        end = start + _GATHERED_CHARS
        end = len(text) if end >= len(text) else text.find(" ", end)
        end = len(text) if end < 0 else end
        words.update(dict.fromkeys(text[start:end].split()))
        start = end
    return "\n".join(words)


def identifier_lexemes(text: str) -> list[str]:
    """List the ``id:`` lexemes of a text for a tsvector; use it for chunks and for questions alike."""
    return [LEXEME_PREFIX + token for token in identifier_list(text)]


def facts(text: str) -> frozenset[str]:
    """Collect the distinct identifiers, numbers (of two characters and more) and written dates of a text."""
    distinct = _distinct(text)
    found = set(_identifiers(distinct))
    found.update(m.group() for m in _NUMBER.finditer(distinct) if len(m.group()) > 1)
    found.update(" ".join(date.lower().split()) for date in _dates(text))
    return frozenset(found)


def _dates(text: str) -> Iterator[str]:
    """Yield the dates of a text, some twice; only around names of months: the pattern is slow over 50 MB."""
    for stem in _MONTH_STEMS:
        at = text.find(stem)
        while at != -1:
            for match in _DATE.finditer(text, max(0, at - _DATE_REACH), at + _DATE_REACH):
                yield match.group()
            at = text.find(stem, at + len(stem))


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How many of the source's distinct facts the chunks kept.

    Attributes:
        total: distinct facts of the source.
        kept: how many of them occur in some chunk.
        lost: the missing ones, sorted, at most 50.
    """

    total: int
    kept: int
    lost: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Give the kept share, 1.0 for a source without facts."""
        return self.kept / self.total if self.total else 1.0


def fidelity_measure(source: str, chunks: Iterable[str]) -> Fidelity:
    """Measure which share of the source's distinct facts occurs in some chunk.

    Args:
        source: all text that the chunks should cover.
        chunks: the chunks' texts.
    """
    wanted = facts(source)
    missing = set(wanted)
    for several in _gathered(chunks):
        if not missing:
            break
        missing -= facts(several)
    return Fidelity(len(wanted), len(wanted) - len(missing), tuple(sorted(missing)[:50]))


def _gathered(chunks: Iterable[str]) -> Iterator[str]:
    """Join chunks, so that each word they repeat is looked at once; nothing looked for spans the mark between them."""
    parts: list[str] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= _GATHERED_CHARS:
            yield _APART.join(parts)
            parts, size = [], 0
    yield _APART.join(parts)

"""Passages in a tool's result: the one form in which a model may cite them piece by piece. Pure.

A result whose text is a JSON object with ``results``, a list of objects that each have an ``id`` and a ``text``, holds
passages. A model reads that JSON as it stands, and cites a passage by writing its id in brackets (``[c12]``); a provider
that has a form of its own for passages is given them in it, and the same marks are put where it says that it cites. The
text is all there is to it: what is stored, cut or cleared of a result is what the model is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

_START: Final = re.compile(r'\s*\{[^\x00]*?"results"\s*:\s*\[\s*\{')
_ID: Final = re.compile(r"[A-Za-z][\w.:-]{0,63}", re.ASCII)
_MOST_PASSAGES: Final = 200
_MOST_PIECES: Final = 40
_LEAST_PIECE: Final = 40
# Where a sentence or a line begins. What comes before a small piece ("No. 5", "U.S.") is joined to it by its length.
_BEGIN: Final = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=\S)|(?<!\n)\n+(?=\S)|(?<=[。！？])(?=\S)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage.

    Attributes:
        id: what a mark names: a letter, then letters, digits, ``.``, ``:``, ``_`` or ``-``; at most 64 characters.
        text: its words, not blank.
        title: of what it stands in, "" for unknown.
        beside: whatever else is told of it, JSON.
    """

    id: str
    text: str
    title: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of one result, and whatever else the result says, JSON."""

    passages: tuple[Passage, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)


def passages_read(content: str) -> Passages | None:
    """Return the passages in a result's text; None where it is not in their form, or holds none.

    ``title``, or ``document`` with ``page`` and ``headings``, becomes the title. Nothing is lost: what is neither id, text
    nor title is ``beside``.
    """
    if not _START.match(content):
        return None
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return None  # cut off in the middle
    rows = told.pop("results", None)
    if not isinstance(rows, list) or len(rows) > _MOST_PASSAGES:
        return None
    found = [_passage(row) for row in rows]
    if None in found:
        return None
    passages = tuple(passage for passage in found if passage is not None)
    return Passages(passages, {name: value for name, value in told.items() if value})


def pieces_of(text: str) -> list[str]:
    """Cut a passage into what can be cited by itself: sentences and lines, none blank, which joined are the text again."""
    starts, end = [0], len(text.rstrip())
    for begin in _BEGIN.finditer(text):
        if begin.end() - starts[-1] >= _LEAST_PIECE and begin.end() < end:
            starts.append(begin.end())
    if len(starts) > _MOST_PIECES:
        step = -(-len(starts) // _MOST_PIECES)
        starts = starts[::step]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def marks_of(ids: Sequence[str], text: str) -> str:
    """Return the marks of passages, each once, without those that a text has already."""
    marks = (f"[{name}]" for name in dict.fromkeys(ids))
    return "".join(mark for mark in marks if mark not in text)


def _passage(row: Any) -> Passage | None:
    if not isinstance(row, dict):
        return None
    rest = dict(row)
    name, text = rest.pop("id", None), rest.pop("text", None)
    if not (isinstance(name, str) and _ID.fullmatch(name)):
        return None
    if not (isinstance(text, str) and text.strip()):
        return None
    key = "title" if isinstance(rest.get("title"), str) else "document"
    title = rest.pop(key) if isinstance(rest.get(key), str) else ""
    page, headings = rest.get("page"), rest.get("headings")
    if isinstance(page, int) and not isinstance(page, bool):
        title += f"{', ' if title else ''}page {rest.pop('page')}"
    if isinstance(headings, list) and all(isinstance(heading, str) for heading in headings):
        title = " > ".join(filter(None, [title, *rest.pop("headings")]))
    beside = {key: value for key, value in rest.items() if value not in (None, "", [], {})}
    return Passage(name, text, title, beside)

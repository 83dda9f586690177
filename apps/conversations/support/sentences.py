"""Find the sentences of an answer that its sources do not support. Pure, by words, names, numbers and denials; no model is asked.

A statement with a marker is held against the passages it names, one without against all that the answer cites. What speaks
against it, in this order:

- ``number``: a number that stands in no such passage, or another one that belongs where it stands.
- ``name``: a name that stands neither in a passage nor in the question or a title, two names in each other's place, or one
  in the place where the passage has another.
- ``polarity``: it denies what the passage affirms, or affirms what it denies, or says the opposite.
- ``unsupported``: the passage holds too little of it: each word that says something counts 1, a number 3.

Of a passage in another language only numbers are compared. What rests on such a passage alone is told as ``language``: not
checked. Headings (a table's too), questions, code, lead-ins that end in a colon and sentences of fewer than ``_LEAST_WORDS``
words that say something are no statements.

The constants come from the data of ``benchmarks/unsupported_sentences.py``; docs/decisions.md has the numbers and how they
were chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from apps.conversations.citations.markers import Cited, sentences_of
from apps.conversations.support.denials import denial_doubts, denial_left_out, opposite_said
from apps.conversations.support.names import (
    ReadPassage,
    exchange_fits,
    names_in,
    names_missing,
    numbers_fit,
    order_turned,
    others_fit,
    runs_of,
)
from apps.conversations.support.reading import Read, text_read
from apps.conversations.support.slots import (
    Window,
    exchange_fits_nearby,
    other_fits_nearby,
    parts_of,
    windows_of,
)
from basics.texts import ngettext
from toolloop.language_detection import language_name

LANGUAGE = "language"
"""The reason of a statement that was not checked, as its source is in another language."""
_SHARE = 0.35  # Of a statement's weight, that the passages hold at least.
_NUMBER_WEIGHT = 3.0
_OTHER_NUMBER = (
    0.5  # From here on another number of the passage belongs where this one stands; see ``numbers_fit``.
)
_OTHER_NAME = 0.6
_EXCHANGED = 0.15
_OTHER_NEARBY = 0.5  # See ``other_fits_nearby``.
_TURNED = 0.5  # On the wrong side of half of the words between or more; see ``order_turned``.
_OPPOSITE = 0.5
_LEFT_OUT = 0.8
# A logistic model of five doubts about a denial, fitted on planted and true ones; it flags from _DENIAL_CUT on.
_DENIAL = {"affirmed": 2.35, "alone": 1.62, "unlike": 4.39, "told": 2.38}
_DENIAL_UNHELD, _DENIAL_BASE, _DENIAL_CUT = -2.31, -4.33, 0.0
_LEAST_WORDS = 4
# In these, every noun is written with a capital.
_CAPITAL_NOUNS = frozenset({"German"})
_SKIPPED = re.compile(r"^\s*(#|```|~~~|\|?\s*:?-{3,}|\*\*[^*]+\*\*\s*$)")
_RULE = frozenset("|:-> \t\n")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MARKER = re.compile(r"\[(\d{1,4})\]")
_LEAD = re.compile(r"^[\s>*+|-]*(?:\d{1,3}[.)]\s+)?")
_PAGE = re.compile(r"\(page \d+\)")

Span = tuple[int, int, str]


def unsupported_find(cited: Cited, passages: Mapping[int, str], around: str = "") -> list[Span]:
    """Return where statements stand in ``cited.text`` that were not found supported, as start, end and reason.

    Args:
        cited: the answer with its markers as ``[1]``.
        passages: text of the sources by number; without any nothing is flagged, as nothing is claimed to be from them.
        around: what an answer may name besides: its question, titles of its documents.
    """
    if not passages:
        return []
    sources = _Sources(passages, language_name(cited.text), around)
    found: list[Span] = []
    for start, end, numbers, _, statement in _statements(cited.text):
        reason = sources.reason(statement, numbers)
        if reason:
            found.append((start, end, reason))
    return found


def statements_of(text: str) -> list[tuple[int, int, list[int], str]]:
    """Return the statements of an answer: start, end, the numbers of the sources they name, and their words without markers."""
    return [(start, end, numbers, words) for start, end, numbers, words, _ in _statements(text)]


def _statements(text: str) -> Iterator[tuple[int, int, list[int], str, Read]]:
    """Yield what ``statements_of`` returns, each with its words read."""
    for start, end in _spans(text):
        numbers = [int(number) for number in _MARKER.findall(text[start:end])]
        statement = _PAGE.sub("", _MARKER.sub("", text[start:end])).strip()
        read = text_read(statement)
        if len(read.telling) >= _LEAST_WORDS:
            yield start, end, list(dict.fromkeys(numbers)), statement, read


def compared_with(count: int) -> str:
    """Return the line that says what an answer was compared with: so many passages, "" for none."""
    if not count:
        return ""
    return ngettext(
        "Compared with %(count)s passage by words, names and numbers",
        "Compared with %(count)s passages by words, names and numbers",
        count,
    ) % {"count": count}


def reason_of(span: Sequence[object]) -> str:
    """Return the reason of a stored span; pairs are of before there were several."""
    return str(span[2]) if len(span) > 2 else "unsupported"


class _Sources:
    """The sources of one answer, each group of them read once."""

    def __init__(self, passages: Mapping[int, str], told: str, around: str) -> None:
        self._passages = passages
        self._around = ReadPassage(around)
        self._has_names = told not in _CAPITAL_NOUNS
        self._others = {n for n, text in passages.items() if _differs(told, language_name(text))}
        self._read: dict[tuple[int, ...], ReadPassage] = {}

    def reason(self, statement: Read, numbers: Iterable[int]) -> str:
        """Return what speaks against a statement that names these sources; "" where nothing does."""
        named = [n for n in dict.fromkeys(numbers) if n in self._passages]
        own = [n for n in named or self._passages if n not in self._others]
        # Another language excuses the sentence that names such a source, and one without a marker where there is no other.
        others = [n for n in named or (() if own else self._passages) if n in self._others]
        reason = self._doubt(statement, self._joined(own)) if own else ""
        if not others or (own and not reason):
            return reason
        return "number" if _lacks_number(statement, self._joined([*own, *others]), self._around) else LANGUAGE

    def _joined(self, numbers: Sequence[int]) -> ReadPassage:
        key = tuple(sorted(numbers))
        if key not in self._read:
            self._read[key] = ReadPassage("\n".join(self._passages[n] for n in key))
        return self._read[key]

    def _doubt(self, statement: Read, passage: ReadPassage) -> str:
        if _lacks_number(statement, passage, self._around):
            return "number"
        if _share_held(statement, passage) < _SHARE:
            return "unsupported"
        if numbers_fit(statement, passage) > _OTHER_NUMBER:
            return "number"
        windows = windows_of(statement, passage)
        if self._has_names and (
            _names_doubtful(statement, passage, self._around)
            or _names_misplaced(statement, passage, self._around, windows)
        ):
            return "name"
        return "polarity" if _is_denied_wrongly(statement, passage, windows[0]) else ""


def _lacks_number(statement: Read, passage: ReadPassage, around: ReadPassage) -> bool:
    return any(
        word.raw[0].isdigit() and word.key not in passage.read.at and word.key not in around.read.at
        for word in statement.words
    )


def _share_held(statement: Read, passage: ReadPassage) -> float:
    held = whole = 0.0
    for word in statement.telling:
        weight = _NUMBER_WEIGHT if word.is_number else 1.0
        whole += weight
        held += weight if passage.has(word) else 0.0
    return held / whole


def _names_doubtful(statement: Read, passage: ReadPassage, around: ReadPassage) -> bool:
    names = names_in(statement, passage)
    if not names:
        return False
    runs = runs_of(names)
    return (
        names_missing(statement, names, passage, around)
        or exchange_fits(statement, runs, passage) > _EXCHANGED
        or others_fit(statement, runs, passage) > _OTHER_NAME
        or order_turned(statement, runs, passage) >= _TURNED
    )


def _names_misplaced(
    statement: Read, passage: ReadPassage, around: ReadPassage, windows: Sequence[Window]
) -> bool:
    parts = parts_of(statement, passage)
    if exchange_fits_nearby(statement, parts, passage, windows) > _EXCHANGED:
        return True
    return other_fits_nearby(statement, parts, passage, around, windows) > _OTHER_NEARBY


def _is_denied_wrongly(statement: Read, passage: ReadPassage, window: Window) -> bool:
    score = -inf
    if any(word.heads for word in statement.words):
        doubts = denial_doubts(statement, passage, window)
        score = _DENIAL_BASE + _DENIAL_UNHELD * (1 - window[0])
        score += sum(weight * doubts[name] for name, weight in _DENIAL.items())
    return (
        score > _DENIAL_CUT
        or denial_left_out(statement, passage) > _LEFT_OUT
        or opposite_said(statement, passage, window) > _OPPOSITE
    )


def _spans(text: str) -> list[tuple[int, int]]:
    """Return where the sentences stand that state something, each with the markers behind it."""
    found: list[tuple[int, int]] = []
    is_code = False
    at = 0
    lines = text.splitlines(keepends=True)
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        start, at = at, at + len(line)
        if _FENCE.match(line):
            is_code = not is_code
        if is_code or _SKIPPED.match(line) or not line.strip():
            continue
        if {"|", "-"} <= set(below) <= _RULE:  # what stands above it are a table's headings
            continue
        lead = _LEAD.match(line)
        begin = start + (lead.end() if lead else 0)
        # The end of a table's row is inside of its last cell.
        for first, last in _with_markers(text, begin, start + len(line.rstrip(" \t\n|"))):
            body = _MARKER.sub("", text[first:last]).rstrip(' \t|*_"”»)')
            if not body.endswith((":", "?")):
                found.append((first, last))
    return found


def _with_markers(text: str, start: int, end: int) -> Iterable[tuple[int, int]]:
    """Return the sentences of a line; markers that stand behind a full stop belong to what is before them."""
    spans: list[tuple[int, int]] = []
    for first, last in sentences_of(text[start:end]):
        piece = text[start + first : start + last]
        markers = re.match(r"(?:\[\d{1,4}\]\s*)+", piece)
        if markers and spans:
            spans[-1] = (spans[-1][0], start + first + len(markers.group().rstrip()))
            first += markers.end()
        if text[start + first : start + last].strip():
            spans.append((start + first, start + last))
    return spans


def _differs(one: str, other: str) -> bool:
    return bool(one and other and one != other)

"""Find the sentences of an answer that none of its sources supports. Pure, by shared words and numbers; no model is asked.

A statement with a marker is held against the passages it names, one without against all that the answer cites. It counts
as supported when the passage holds enough of its weight: each word that says something counts 1, one with a digit 3. A
number that stands in no such passage makes it unsupported at once. Where answer and passage are in different languages only
numbers are compared, and such a passage counts for a statement without a marker only where the answer cites no other. Headings (a table's too), questions, code, lead-ins that end in a colon and sentences of fewer than
``_LEAST_WORDS`` such words are no statements.

The shares were chosen on ``benchmarks/unsupported_sentences.py``; docs/decisions.md has its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from apps.conversations.citations import Cited, sentences_of, words_weighted
from toolloop.languages import language_name

_SHARE_NAMED = 0.25  # Of a statement's weight, in one of the passages it names.
_SHARE_ANY = 0.5  # The same, in any passage that the answer cites.
_LEAST_WORDS = 4
_SKIPPED = re.compile(r"^\s*(#|```|~~~|\|?\s*:?-{3,}|\*\*[^*]+\*\*\s*$)")
_RULE = frozenset("|:-> \t\n")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MARKER = re.compile(r"\[(\d{1,4})\]")
_LEAD = re.compile(r"^[\s>*+|-]*(?:\d{1,3}[.)]\s+)?")
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_PAGE = re.compile(r"\(page \d+\)")


def unsupported_find(cited: Cited, passages: Mapping[int, str]) -> list[list[int]]:
    """Return where statements without support stand in ``cited.text``, as [start, end].

    Args:
        cited: the answer with its markers as ``[1]``.
        passages: text of the sources by number; without any nothing is flagged, as nothing is claimed to be from them.
    """
    if not passages:
        return []
    text = cited.text
    weights = {number: _weighted(passage) for number, passage in passages.items()}
    told = language_name(text)
    others = {n for n, passage in passages.items() if _differs(told, language_name(passage))}
    found: list[list[int]] = []
    for start, end in _statements(text):
        numbers = _named(text, start, end)
        statement = _weighted(_PAGE.sub("", _MARKER.sub("", text[start:end])))
        if len(statement) < _LEAST_WORDS:
            continue
        share = _SHARE_NAMED if numbers else _SHARE_ANY
        # A source in another language excuses the sentence that names it, and no other one.
        named = [n for n in numbers if n in weights]
        against = named or [n for n in weights if n not in others] or list(weights)
        if not any(_holds(statement, weights[n], share, n in others) for n in against):
            found.append([start, end])
    return found


def _weighted(text: str) -> dict[str, float]:
    """Return the words that say something; 1,000 and 1000 are one number."""
    return {
        _THOUSANDS.sub("", word) if word[0].isdigit() else word: weight
        for word, weight in words_weighted(text).items()
    }


def _holds(
    statement: Mapping[str, float], passage: Mapping[str, float], share: float, is_other: bool
) -> bool:
    digits = {word for word in statement if word[0].isdigit()}
    if not digits <= passage.keys():
        return False
    if is_other:
        return True
    return _overlap(statement, passage) >= share


def _overlap(statement: Mapping[str, float], passage: Mapping[str, float]) -> float:
    """Return the share of a statement's weight that stands in a passage; word forms count when they begin alike."""
    stems = {word[:5] for word in passage if len(word) > 5}
    held = sum(
        weight
        for word, weight in statement.items()
        if word in passage or (len(word) > 5 and word[:5] in stems)
    )
    return held / sum(statement.values())


def _statements(text: str) -> list[tuple[int, int]]:
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


def _named(text: str, start: int, end: int) -> Sequence[int]:
    return [int(number) for number in _MARKER.findall(text[start:end])]


def _differs(one: str, other: str) -> bool:
    return bool(one and other and one != other)

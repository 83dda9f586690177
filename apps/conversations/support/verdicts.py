"""What a second check says of an answer's statements, and how that changes what the first one has found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.conversations.support.sentences import LANGUAGE, reason_of, statements_of

SUPPORTED, CONTRADICTED, NOT_SAID = "supported", "contradicted", "not_said"
MOST = 40
"""Statements of one answer that are checked a second time."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of an answer; ``numbers`` are the sources it is held against: those it names, else all."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]


def statements_to_check(text: str, numbers: Sequence[int]) -> list[Statement]:
    """Return the statements of an answer whose sources have these numbers, at most ``MOST``."""
    found = []
    for start, end, named, words in statements_of(text):
        known = tuple(number for number in named if number in numbers)
        found.append(Statement(start, end, words, known or tuple(numbers)))
    return found[:MOST]


def spans_again(
    spans: Sequence[Sequence[int | str]],
    statements: Sequence[Statement],
    verdicts: Mapping[int, str],
    *,
    is_strict: bool,
    reads_languages: bool,
) -> list[list[int | str]]:
    """Return the spans of the first check as the second one changes them.

    Supported statements lose their mark and contradicted ones get one. A mark about a number stays: numbers are compared
    more surely than read.

    Args:
        spans: start, end and reason, as stored.
        verdicts: by the statement's place in ``statements``; one that is missing changes nothing.
        is_strict: what is not said gets a mark as well.
        reads_languages: its word counts where the source is in another language.
    """
    found: dict[tuple[int, int], str] = {(int(span[0]), int(span[1])): reason_of(span) for span in spans}
    for place, verdict in verdicts.items():
        one = statements[place]
        at, before = (one.start, one.end), found.get((one.start, one.end), "")
        if before == "number" or (before == LANGUAGE and not reads_languages):
            continue
        if verdict == SUPPORTED:
            found.pop(at, None)
        elif (verdict == CONTRADICTED or is_strict) and before in ("", LANGUAGE):
            found[at] = "unsupported"
    return [[start, end, reason] for (start, end), reason in sorted(found.items())]


__all__ = ["CONTRADICTED", "MOST", "NOT_SAID", "SUPPORTED", "Statement", "spans_again", "statements_to_check"]

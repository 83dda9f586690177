"""What a scorer is, what it reads and what it gives. Plain values, no database, no model.

A score lies between 0 and 1, 1 being best; ``None`` is "unscored": the scorer could not tell. It is never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from apps.datasets.records.record import Record
from basics.texts import gettext_noop


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage that a target found or cited.

    Attributes:
        start, end: characters of the document's text, end exclusive.
    """

    chunk_id: int | None
    document_id: int | None
    start: int
    end: int
    text: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a target made, in order."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A passage that belongs to the right answer, and where it stands now.

    Attributes:
        chunks: current chunks that hold it, with their gains; empty when the passage cannot be found any more.
    """

    document_id: int | None
    start: int
    end: int
    quote: str
    chunks: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What a target gave for a row.

    Attributes:
        text: the answer as people read it.
        raw: the answer as the model wrote it, where it has a form; "" where that is the text.
        limit: the limit that ended the loop, as ``toolloop.limits`` names it; "" where it ended by itself, None without a loop.
        is_reached: what the row plants has come to the target.
        retrieved: passages it was given or found, best first.
        citations: passages that the answer cites.
        calls: tool calls in order.
        labels: passages of the right answer, mapped to current chunks; see ``labels_map``.
        error: why there is no answer, "" when there is one.
    """

    text: str = ""
    retrieved: Sequence[ScoredPassage] = ()
    citations: Sequence[ScoredPassage] = ()
    calls: Sequence[Call] = ()
    labels: Sequence[Label] = ()
    latency_ms: float | None = None
    cost_usd: float | None = None
    error: str = ""
    raw: str = ""
    limit: str | None = None
    is_reached: bool = False


@dataclass(frozen=True, slots=True)
class ScoreValue:
    """One score of one answer.

    Attributes:
        name: of the score, for example ``accuracy``; a scorer may give several.
        value: 0 to 1, or None for "unscored"; then ``reason`` says why.
        level: on the scale the judge used (1 to 5), None where there is none.
        reason: in words, for people.
        evidence: words of the answer or a source that it rests on.
        details: further facts as JSON.
    """

    name: str
    value: float | None
    level: float | None = None
    reason: str = ""
    evidence: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """Scores one answer. ``author`` names scorer and version; a change of what it computes is another version."""

    @property
    def author(self) -> str: ...

    @property
    def is_judge(self) -> bool:
        """Whether a model or heuristic judges: such scores gate only when people were found to agree with it."""

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Return the scores, "unscored" ones included."""


NO_ANSWER = gettext_noop("The target gave no answer.")
NO_REFERENCE = gettext_noop("The row has no reference answer.")


def unscored(name: str, reason: str) -> ScoreValue:
    """Return the score that says: it could not be told, and why."""
    return ScoreValue(name, None, reason=reason)

"""Retrieval scores from labels that are anchored to documents and characters, and citations checked against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from apps.datasets.records.record import Record
from apps.evaluations.scorers import metrics
from apps.evaluations.scorers.base import Label, ScoredPassage, ScoreValue, TargetResult, unscored
from apps.evaluations.scorers.text import RuleScorer
from basics.texts import gettext as _
from basics.texts import gettext_noop

# A chunk holds a label when one of the two lies by half in the other. Less is the overlap of neighbouring chunks.
_HALF = 0.5
COVERAGE_ALARM = 0.98
_NO_LABELS = gettext_noop("The row names no passages.")
LABELLED = ("retrieval", "citations")
"""Kinds of scorers that use the row's labelled passages."""


def gains_of(start: int, end: int, chunks: Iterable[tuple[int, int, int]]) -> dict[int, float]:
    """Return which chunks hold the characters from start to end, with gain 1.

    Args:
        chunks: (id, start, end) of the current chunks of the document that overlap them.

    Returns:
        Those that share at least half of themselves or of the passage; else the one that shares most.
    """
    shares = {}
    for key, begin, stop in chunks:
        shared = min(end, stop) - max(start, begin)
        if shared > 0:
            shares[key] = shared / min(end - start, stop - begin)
    if not shares:
        return {}
    held = {key: 1.0 for key, share in shares.items() if share >= _HALF}
    return held or {max(shares, key=lambda key: shares[key]): 1.0}


def label_coverage(rows: Iterable[Sequence[Label]]) -> float | None:
    """Return the share of labels whose passage still stands in a current chunk; None where there is no label.

    Below ``COVERAGE_ALARM`` a change of retrieval scores says nothing: documents were changed under the labels.
    """
    labels = [label for row in rows for label in row]
    return sum(1 for label in labels if label.chunks) / len(labels) if labels else None


class Retrieval(RuleScorer):
    """Recall, precision, reciprocal rank, average precision and nDCG of the passages a target found."""

    kind: ClassVar[str] = "retrieval"
    k: int = Field(10, ge=1, le=100)

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score the ranking; unscored where a label's passage is not found in the documents any more."""
        gains: dict[int, float] = {}
        for label in outcome.labels:
            gains.update(label.chunks)
        names = [f"recall@{self.k}", f"precision@{self.k}", "mrr", f"map@{self.k}", f"ndcg@{self.k}"]
        if not outcome.labels:
            return [unscored(name, _NO_LABELS) for name in names]
        if not all(label.chunks for label in outcome.labels):
            why = _("A labelled passage is no longer in the documents. Label this row again.")
            return [unscored(name, why) for name in names]
        if outcome.error:
            return [ScoreValue(name, 0.0, reason=outcome.error) for name in names]
        ranked = list(dict.fromkeys(p.chunk_id for p in outcome.retrieved if p.chunk_id is not None))
        values = [
            metrics.recall_at(ranked, gains, self.k),
            metrics.precision_at(ranked, gains, self.k),
            metrics.reciprocal_rank(ranked, gains),
            metrics.average_precision(ranked, gains, self.k),
            metrics.ndcg_at(ranked, gains, self.k),
        ]
        return [ScoreValue(name, value) for name, value in zip(names, values, strict=True)]


class Citations(RuleScorer):
    """Whether an answer cites the labelled passages and no others: ``citation_recall`` and ``citation_precision``."""

    kind: ClassVar[str] = "citations"

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score the citations by overlap of characters in the same document."""
        names = ["citation_recall", "citation_precision"]
        if not outcome.labels:
            return [unscored(name, _NO_LABELS) for name in names]
        if not outcome.citations:
            why = outcome.error or _("The answer cites nothing.")
            return [ScoreValue(name, 0.0, reason=why) for name in names]
        found = sum(any(_meets(c, label) for c in outcome.citations) for label in outcome.labels)
        right = [any(_meets(c, label) for label in outcome.labels) for c in outcome.citations]
        wrong: Mapping[str, Any] = {
            "beside": [c.document for c, ok in zip(outcome.citations, right, strict=True) if not ok]
        }
        return [
            ScoreValue(names[0], found / len(outcome.labels)),
            ScoreValue(names[1], sum(right) / len(right), details=wrong),
        ]


def _meets(citation: ScoredPassage, label: Label) -> bool:
    if citation.chunk_id is not None and citation.chunk_id in label.chunks:
        return True
    return (
        label.document_id is not None
        and citation.document_id == label.document_id
        and citation.start < label.end
        and label.start < citation.end
    )

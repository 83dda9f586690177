"""Judges for where no model has a key: they count words. They say of themselves that they do no more than that.

They let the whole loop be seen and tested in minutes. What they give is a hint, never a verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from apps.collections.ingestion.identifiers import facts
from apps.datasets.record import Record
from apps.datasets.rubric import LEVELS, SIX, Rubric, value_of
from apps.evaluations.scorers.base import Outcome, ScoreValue, unscored
from apps.evaluations.scorers.judges import claims_score
from toolloop.sentences import content_terms

NOTE = "Counted by words; no model has judged this."
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MARKER = re.compile(r"\[\^?[cC]?\d[\d,;\scC]*\]")
_SUPPORTED = 0.6
_LONG_SENTENCE = 40  # words


@dataclass(frozen=True, slots=True)
class LexicalRubric:
    """The six scores by shared words, whole levels as a model would give them."""

    rubric: Rubric = SIX
    is_judge: bool = True

    @property
    def author(self) -> str:
        """Return rubric and version, marked as lexical."""
        return f"lexical:{self.rubric.author}"

    def score(self, row: Record, outcome: Outcome) -> list[ScoreValue]:
        """Grade the criteria of the six-score rubric; others are unscored, as words say nothing about them."""
        names = [criterion.name for criterion in self.rubric.criteria]
        if not outcome.text.strip():
            why = outcome.error or "The target gave no answer."
            return [ScoreValue(name, 0.0, level=1, reason=why) for name in names]
        shares = _shares(row, outcome)
        return [
            _graded(name, shares[name])
            if name in shares
            else unscored(name, "Words cannot tell; this needs a model as judge.")
            for name in names
        ]


@dataclass(frozen=True, slots=True)
class LexicalFaithfulness:
    """Sentences whose words and numbers stand in one passage count as supported."""

    is_judge: bool = True
    version: int = 1

    @property
    def author(self) -> str:
        """Return its version, marked as lexical."""
        return f"lexical:faithfulness@{self.version}"

    def score(self, row: Record, outcome: Outcome) -> list[ScoreValue]:
        """Check every sentence."""
        passages = [
            (p.chunk_id, set(content_terms(p.text)), facts(p.text)) for p in outcome.retrieved
        ]
        if not outcome.text.strip():
            return [unscored("faithfulness", "There is no answer to check.")]
        if not passages:
            return [unscored("faithfulness", "The target found no passages to check against.")]
        claims: list[dict[str, Any]] = []
        for sentence in _sentences(outcome.text):
            terms, numbers = set(content_terms(sentence)), facts(sentence)
            if not terms:
                continue
            held = (
                chunk
                for chunk, words, known in passages
                if numbers <= known and len(terms & words) >= _SUPPORTED * len(terms)
            )
            chunk = next(held, None)
            verdict = "not_stated" if chunk is None else "supported"
            claims.append({"claim": sentence, "verdict": verdict, "quote": "", "chunk": chunk})
        return [claims_score(claims)]


def _shares(row: Record, outcome: Outcome) -> dict[str, float]:
    text = _MARKER.sub("", outcome.text)
    answer = set(content_terms(text))
    reference = set(content_terms(row.answer))
    asked = set(content_terms(row.question))
    sources = set(content_terms(" ".join(s.quote for s in row.sources)))
    found = set(content_terms(" ".join(p.text for p in outcome.retrieved)))
    sentences = _sentences(text) or [text]
    wanted_facts = facts(row.answer)
    return {
        "completeness": _part(reference, answer),
        "accuracy": _part(answer, reference | sources | found | asked),
        "relevance": max(_part(asked, answer), _part(answer, asked | reference)),
        "clarity": sum(len(s.split()) <= _LONG_SENTENCE for s in sentences) / len(sentences),
        "specificity": _part(set(wanted_facts), set(facts(text))),
        "reasoning": min(1.0, 0.5 * bool(outcome.citations) + 0.5 * _part(sources, answer)),
    }


def _part(wanted: set[str], have: set[str]) -> float:
    return len(wanted & have) / len(wanted) if wanted else 1.0


def _graded(name: str, share: float) -> ScoreValue:
    level = 1 + round(share * (LEVELS - 1))
    return ScoreValue(name, value_of(level), level=level, reason=NOTE)


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.split(_MARKER.sub("", text)) if s.strip()]

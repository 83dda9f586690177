"""Judges for where no model has a key: they count words. They say of themselves that they do no more than that.

They let the whole loop be seen and tested in minutes. What they give is a hint, never a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from apps.collections.ingestion.identifiers import facts
from apps.datasets.records.record import Record
from apps.datasets.records.rubric import LEVELS, SIX, Rubric, value_of
from apps.evaluations.scorers.base import NO_ANSWER, ScoredPassage, ScoreValue, TargetResult, unscored
from apps.evaluations.scorers.claims import NOT_STATED, SUPPORTED, ClaimFinding, found_in
from basics.texts import gettext_noop
from toolloop.best_sentences import content_terms

NOTE = gettext_noop("Word count; no model judged this.")
_NOT_BY_WORDS = gettext_noop("A word count can't score this. Choose a model as judge.")
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

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Grade the criteria of the six-score rubric; others are unscored, as words say nothing about them."""
        names = [criterion.name for criterion in self.rubric.criteria]
        if not outcome.text.strip():
            why = outcome.error or NO_ANSWER
            return [ScoreValue(name, 0.0, level=1, reason=why) for name in names]
        shares = _shares(row, outcome)
        return [
            _graded(name, shares[name]) if name in shares else unscored(name, _NOT_BY_WORDS) for name in names
        ]


@dataclass(frozen=True, slots=True)
class ByWords:
    """A checker that counts words: see ``claims.Checker``. A statement is a sentence."""

    def author(self, kind: str, version: int) -> str:
        """Return kind and version, marked as lexical."""
        return f"lexical:{kind}@{version}"

    def claims(self, text: str, passages: Sequence[ScoredPassage]) -> list[ClaimFinding]:
        """Take sentences whose words and numbers stand in one passage as supported, by its sentence that shares most."""
        known = [(p, set(content_terms(p.text)), facts(p.text)) for p in passages]
        found = []
        for sentence in _stated(text):
            held = next((p for p, words, numbers in known if _holds(sentence, words, numbers)), None)
            quote = "" if held is None else _nearest(sentence, held.text)
            verdict = NOT_STATED if held is None else SUPPORTED
            found.append(found_in(sentence, verdict, quote, [] if held is None else [held]))
        return found

    def against(self, claims: Sequence[str], reference: str) -> list[bool]:
        """Take claims whose words and numbers stand in the reference as supported."""
        words, numbers = set(content_terms(reference)), facts(reference)
        return [_holds(claim, words, numbers) for claim in claims]

    def serving(self, question: str, text: str) -> list[ClaimFinding]:
        """Take sentences that share a word with the question as useful."""
        asked = set(content_terms(question))
        return [
            ClaimFinding(sentence, "useful" if asked & set(content_terms(sentence)) else "useless")
            for sentence in _stated(text)
        ]

    def useful(self, question: str, reference: str, passages: Sequence[ScoredPassage]) -> list[ClaimFinding]:
        """Take passages that hold a sentence of the reference as useful."""
        wanted = _stated(reference)
        found = []
        for passage in passages:
            words, numbers = set(content_terms(passage.text)), facts(passage.text)
            held = next((s for s in wanted if _holds(s, words, numbers)), None)
            quote = "" if held is None else _nearest(held, passage.text)
            verdict = "useless" if held is None else "useful"
            found.append(found_in(passage.document, verdict, quote, [passage]))
        return found


def _stated(text: str) -> list[str]:
    """Return the sentences that say something."""
    return [sentence for sentence in _sentences(text) if content_terms(sentence)]


def _holds(sentence: str, words: Collection[str], numbers: Collection[str]) -> bool:
    terms = set(content_terms(sentence))
    return facts(sentence) <= set(numbers) and len(terms & set(words)) >= _SUPPORTED * len(terms)


def _nearest(sentence: str, text: str) -> str:
    """Return the sentence of a text that shares most words with another one."""
    terms = set(content_terms(sentence))
    parts = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    return max(parts, key=lambda part: len(terms & set(content_terms(part))), default="")


def _shares(row: Record, outcome: TargetResult) -> dict[str, float]:
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

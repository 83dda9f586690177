"""Scores of answers that rest on passages, claim by claim. The names are those of RAGAS (Es et al. 2024).

Where nothing is there to judge, nothing is asked. Every score says in its details what was found, with the words it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from apps.datasets.records.parts import EMPTY_ANSWERS
from apps.datasets.records.record import Record
from apps.datasets.records.rubric import level_of
from apps.evaluations.scorers import metrics
from apps.evaluations.scorers.base import NO_ANSWER, NO_REFERENCE, ScoreValue, TargetResult, unscored
from apps.evaluations.scorers.claims import (
    MOST_PASSAGES,
    NOT_IN_REFERENCE,
    Checker,
    ClaimFinding,
    UnreadError,
)
from apps.evaluations.scorers.turns import asked_in
from basics.texts import Told, gettext_noop, shortened
from basics.texts import gettext as _

_MOST_REASON = 1_000
_NOTHING_TO_CHECK = gettext_noop("There is no answer to check.")
_NO_CLAIM = gettext_noop("The answer makes no claim.")
_NO_PASSAGES = gettext_noop("The target found no passages to check against.")
_FOUND_NONE = gettext_noop("The target found no passages.")


@dataclass(frozen=True, slots=True)
class RagJudge:
    """One of ``RAG`` by one checker: its kind is the name of the score that it gives."""

    kind: str
    checker: Checker
    is_judge: bool = True
    version: int = 1

    @property
    def author(self) -> str:
        """Return kind, version and who checks."""
        return self.checker.author(self.kind, self.version)

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score an answer; see ``Scorer``. The level is the share on the scale that people grade by."""
        try:
            found = RAG[self.kind](self.checker, row, outcome)
        except UnreadError as problem:
            return [unscored(self.kind, problem.reason)]
        return [found if found.value is None else replace(found, level=level_of(found.value))]


def faithfulness(checker: Checker, row: Record, outcome: TargetResult) -> ScoreValue:
    """Return the share of the answer's claims that a passage supports."""
    name, passages = "faithfulness", outcome.retrieved[:MOST_PASSAGES]
    if not outcome.text.strip():
        return unscored(name, _NOTHING_TO_CHECK)
    if not passages:
        return unscored(name, _NO_PASSAGES)
    found = checker.claims(outcome.text, passages)
    if not found:
        return unscored(name, _NO_CLAIM)
    return _share(name, found, [one.is_supported for one in found], _("Not supported: %(claims)s"))


def answer_relevancy(checker: Checker, row: Record, outcome: TargetResult) -> ScoreValue:
    """Return the share of the answer's statements that serve the question."""
    name = "answer_relevancy"
    if not outcome.text.strip():
        return ScoreValue(name, 0.0, reason=outcome.error or NO_ANSWER)
    found = checker.serving(asked_in(row), outcome.text)
    if not found:
        return unscored(name, _("The answer makes no statement."))
    return _share(name, found, [one.verdict == "useful" for one in found], _("Not relevant: %(claims)s"))


def context_recall(checker: Checker, row: Record, outcome: TargetResult) -> ScoreValue:
    """Return the share of the reference's claims that the passages found support."""
    name, passages = "context_recall", outcome.retrieved[:MOST_PASSAGES]
    if not _has_reference(row):
        return unscored(name, NO_REFERENCE)
    if not passages:
        return ScoreValue(name, 0.0, reason=outcome.error or _FOUND_NONE)
    found = checker.claims(row.answer, passages)
    if not found:
        return unscored(name, _("The reference makes no claim."))
    return _share(name, found, [one.is_supported for one in found], _("Not found: %(claims)s"))


def context_precision(checker: Checker, row: Record, outcome: TargetResult) -> ScoreValue:
    """Return the average precision of the ranking: mean of the precision at each useful passage; 0 where none is useful."""
    name, passages = "context_precision", outcome.retrieved[:MOST_PASSAGES]
    if not _has_reference(row):
        return unscored(name, NO_REFERENCE)
    if not passages:
        return ScoreValue(name, 0.0, reason=outcome.error or _FOUND_NONE)
    found = checker.useful(asked_in(row), row.answer, passages)
    useful = [n for n, one in enumerate(found) if one.verdict == "useful"]
    places = range(len(found))
    value = metrics.average_precision(places, dict.fromkeys(useful, 1.0), len(found)) if useful else 0.0
    told = ", ".join(str(n + 1) for n in places if n not in useful)
    return ScoreValue(
        name,
        value,
        reason=_("Passages that aren't useful: %(numbers)s.") % {"numbers": told} if told else "",
        details=_details(found),
    )


def noise_robustness(checker: Checker, row: Record, outcome: TargetResult) -> ScoreValue:
    """Return 1 minus RAGAS' noise sensitivity: the share of claims that are wrong although a passage states them.

    The claims are those of ``faithfulness``, so that with both of them chosen they are asked for once.
    """
    name, passages = "noise_robustness", outcome.retrieved[:MOST_PASSAGES]
    if not outcome.text.strip():
        return unscored(name, _NOTHING_TO_CHECK)
    if not _has_reference(row):
        return unscored(name, NO_REFERENCE)
    if not passages:
        return unscored(name, _NO_PASSAGES)
    found = checker.claims(outcome.text, passages)
    if not found:
        return unscored(name, _NO_CLAIM)
    taken = [one for one in found if one.is_supported]
    right = iter(checker.against([one.claim for one in taken], row.answer) if taken else ())
    is_sound = [not one.is_supported or next(right) for one in found]
    told = [
        one if sound else replace(one, verdict=NOT_IN_REFERENCE)
        for one, sound in zip(found, is_sound, strict=True)
    ]
    return _share(name, told, is_sound, _("From a passage, but not in the reference: %(claims)s"))


RAG: dict[str, Callable[[Checker, Record, TargetResult], ScoreValue]] = {
    one.__name__: one
    for one in (faithfulness, answer_relevancy, context_recall, context_precision, noise_robustness)
}


def _has_reference(row: Record) -> bool:
    return bool(row.answer.strip()) and row.expected not in EMPTY_ANSWERS


def _share(name: str, found: Sequence[ClaimFinding], is_good: Sequence[bool], otherwise: Told) -> ScoreValue:
    rest = [one.claim for one, good in zip(found, is_good, strict=True) if not good]
    reason = shortened(otherwise % {"claims": "; ".join(rest)}, _MOST_REASON) if rest else ""
    return ScoreValue(name, sum(is_good) / len(found), reason=reason, details=_details(found))


def _details(found: Sequence[ClaimFinding]) -> dict[str, list[dict[str, object]]]:
    return {"claims": [asdict(one) for one in found]}

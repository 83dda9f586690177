"""One answer with all that is known of it: its scores and who gave them, what each judge found and where, passages and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.datasets.records.record import Record, from_values
from apps.evaluations.models import Score, ScoreAuthor, Trial
from apps.evaluations.results.labels import author_told, label
from apps.evaluations.results.outcomes import outcome_of
from apps.evaluations.results.withheld import trials_readable
from apps.evaluations.scorers.base import TargetResult
from basics.errors import Missing
from basics.texts import number_told
from tenancy.actors import Actor

GOOD_VERDICTS = ("supported", "useful")
_VERDICTS = {
    "supported": gettext_lazy("Supported"),
    "useful": gettext_lazy("Useful"),
    "useless": gettext_lazy("Not useful"),
    "contradicted": gettext_lazy("Contradicted"),
    "not_stated": gettext_lazy("Not stated"),
    "unverified": gettext_lazy("Quote not found"),
    "not_in_reference": gettext_lazy("Not in reference"),
}


@dataclass(frozen=True, slots=True)
class ShownScore:
    """A score in words; ``value`` is None where it could not be told, and ``score.reason`` says why."""

    score: Score
    name: str
    by: str
    replicates: Sequence[float]


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """One thing that a judge of claims found; ``place`` says in which document and where its words stand."""

    text: str
    verdict: str
    is_good: bool
    quote: str
    place: str


@dataclass(frozen=True, slots=True)
class TrialSheet:
    """An answer as its page shows it.

    Attributes:
        scores: by rules and judges; people's grades stay out, for others may still grade this answer blind.
        findings: (score in words, what its judge found), for scores of claims.
        labels: (quote, whether it still stands in the documents and was found, in words; whether it was found) of the
            row's passages.
    """

    trial: Trial
    record: Record
    outcome: TargetResult
    scores: Sequence[ShownScore]
    findings: Sequence[tuple[ShownScore, Sequence[ShownFinding]]]
    labels: Sequence[tuple[str, str, bool]]


def trial_sheet(*, actor: Actor, pk: int) -> TrialSheet:
    """Return one answer of an experiment. Raises Missing."""
    actor.require("evaluation.read")
    rows = Trial.objects.visible_to(actor).select_related("arm", "experiment__dataset", "content")
    trial: Trial | None = trials_readable(rows, actor).filter(pk=pk).first()
    if trial is None:
        raise Missing("answer")
    given = Score.objects.visible_to(actor).filter(trial=trial)
    scores = [
        ShownScore(one, label(one.name), author_told(one.author), one.details.get("replicates", ()))
        for one in given.exclude(author_kind=ScoreAuthor.PERSON).order_by("pk")
    ]
    found = [(one, _findings(one.score.details)) for one in scores]
    outcome = outcome_of(trial)
    retrieved = {p.chunk_id for p in outcome.retrieved}
    return TrialSheet(
        trial,
        from_values(trial.content.data),
        outcome,
        scores,
        [(one, findings) for one, findings in found if findings],
        [
            (x.quote, _label_told(set(x.chunks), retrieved), bool(set(x.chunks) & retrieved))
            for x in outcome.labels
        ],
    )


def _findings(details: Mapping[str, Any]) -> list[ShownFinding]:
    return [
        ShownFinding(
            text=str(one.get("claim", "")),
            verdict=str(_VERDICTS.get(str(one.get("verdict")), one.get("verdict"))),
            is_good=one.get("verdict") in GOOD_VERDICTS,
            quote=str(one.get("quote", "")),
            place=_place(one),
        )
        for one in details.get("claims", ())
    ]


def _place(one: Mapping[str, Any]) -> str:
    if one.get("start") is None:
        return ""
    return _("%(document)s, characters %(start)s to %(end)s") % {
        "document": one.get("document") or _("Document"),
        "start": number_told(one["start"]),
        "end": number_told(one["end"]),
    }


def _label_told(chunks: set[int], retrieved: set[int | None]) -> str:
    if not chunks:
        return _("No longer in the documents")
    return _("Found") if chunks & retrieved else _("Not found")

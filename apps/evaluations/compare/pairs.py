"""Pairwise verdicts inside an experiment: each row's answers of two arms, judged in both orders.

A pair is judged by the job of the answer that came later: answers are kept under the experiment's lock, so of two jobs
exactly one finds the other's answer older than its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db.models.functions import Length

from apps.datasets.records.record import Record
from apps.evaluations.judges.asking import CachedAsk
from apps.evaluations.judges.scoring import judge_options
from apps.evaluations.models import Arm, Experiment, Preference, Trial
from apps.evaluations.scorers.judges import PairVerdict, pairwise_judge
from apps.evaluations.scorers.metrics import token_f1
from apps.evaluations.statistics.preferences import bradley_terry, length_controlled_win_rate
from apps.evaluations.statistics.values import Estimate
from basics.texts import gettext as _
from basics.texts import number_told
from batches.awaited import together
from tenancy.actors import Actor

PAIRWISE = "pairwise"
_VERSION = 1
_LONGER: Any = Length("b__answer") - Length("a__answer")
_SAME = 0.05  # of two lexical scores: nothing to choose between them


def pairwise_models(scorers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return who judges pairs in an experiment; () where nobody does."""
    for spec in scorers:
        if spec.get("kind") == PAIRWISE:
            return judge_options(PAIRWISE, spec.get("options") or {}).models
    return ()


def pairs_due(trial: Trial) -> list[Trial]:
    """Return the answers to the same row that this trial's answer is compared with: those that were there before it."""
    if trial.answered_at is None or not trial.answer.strip():
        return []
    rows = Trial.objects.filter(
        tenant_id=trial.tenant_id,
        experiment_id=trial.experiment_id,
        row_ref=trial.row_ref,
        repeat=trial.repeat,
        answered_at__lt=trial.answered_at,
    )
    rows = rows.exclude(pk=trial.pk).exclude(answer="").select_related("arm")
    return list(rows.order_by("arm__position"))


def pairs_judge(
    trial: Trial, row: Record, others: Sequence[Trial], asks: Sequence[tuple[str, CachedAsk | None]]
) -> list[Preference]:
    """Return the verdicts, not saved; it blocks while judges think.

    Args:
        asks: each judge's name and who asks it; None counts words.
    """
    return together(
        partial(_pair_judge, trial, row, other, name, ask) for other in others for name, ask in asks
    )


def _pair_judge(trial: Trial, row: Record, other: Trial, name: str, ask: CachedAsk | None) -> Preference:
    a, b = sorted((trial, other), key=lambda one: one.arm.position)
    verdict = (
        _lexical(row, a.answer, b.answer) if ask is None else pairwise_judge(ask, row, a.answer, b.answer)
    )
    kind = "lexical" if ask is None else "judge"
    author = f"{kind}:{PAIRWISE}@{_VERSION}" + ("" if ask is None else f":{name}")
    return Preference(
        tenant_id=trial.tenant_id,
        experiment_id=trial.experiment_id,
        a=a,
        b=b,
        better=verdict.better or "",
        is_flip=verdict.is_flip,
        reason=verdict.reason,
        author=author[:300],
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms by all their rows.

    Attributes:
        unscored: rows whose judgement could not be read.
        controlled: how often B would win if both answers were equally long; None where that cannot be told.
    """

    a: Arm
    b: Arm
    a_wins: int
    b_wins: int
    ties: int
    flips: int
    unscored: int
    controlled: float | None

    @property
    def judged(self) -> int:
        """Return the rows with a verdict."""
        return self.a_wins + self.b_wins + self.ties


@dataclass(frozen=True, slots=True)
class Strength:
    """An arm's place: the chance (with its interval) that it beats an arm of mean strength; None where none is finite."""

    arm: Arm
    wins: float
    games: int
    chance: Estimate | None


@dataclass(frozen=True, slots=True)
class PairSummary:
    """The pairwise verdicts of an experiment.

    Attributes:
        strengths: the strongest first.
        flip_rate: share of the verdicts that followed the order of the answers.
        problem: why there are no strengths, "" when there are.
    """

    pairs: Sequence[Pair]
    strengths: Sequence[Strength]
    verdicts: int
    flips: int
    authors: Sequence[str]
    problem: str

    @property
    def flip_rate(self) -> float:
        """Return the share of flips."""
        return self.flips / self.verdicts if self.verdicts else 0.0


def pairs_summary(*, actor: Actor, experiment: Experiment) -> PairSummary | None:
    """Return the verdicts of an experiment, in two queries; None where it judges no pairs."""
    actor.require("evaluation.read")
    if not pairwise_models(experiment.scorers):
        return None
    arms = list(Arm.objects.visible_to(actor).filter(experiment=experiment).order_by("position"))
    place = {arm.pk: n for n, arm in enumerate(arms)}
    rows = Preference.objects.visible_to(actor).filter(experiment=experiment)
    wins = np.zeros((len(arms), len(arms)))
    by_pair: dict[tuple[int, int], list[tuple[str, bool, int]]] = {}
    authors: set[str] = set()
    for a, b, better, is_flip, author, longer in rows.order_by("pk").values_list(
        "a__arm_id", "b__arm_id", "better", "is_flip", "author", _LONGER
    ):
        by_pair.setdefault((a, b), []).append((better, is_flip, longer))
        authors.add(author)
        if better == "tie":
            wins[place[a], place[b]] += 0.5
            wins[place[b], place[a]] += 0.5
        elif better:
            won, lost = (a, b) if better == "a" else (b, a)
            wins[place[won], place[lost]] += 1
    pairs = [_pair(arms[place[a]], arms[place[b]], given) for (a, b), given in sorted(by_pair.items())]
    strengths, problem = _strengths(arms, wins)
    return PairSummary(
        pairs, strengths, sum(p.judged for p in pairs), sum(p.flips for p in pairs), sorted(authors), problem
    )


def _pair(a: Arm, b: Arm, given: Sequence[tuple[str, bool, int]]) -> Pair:
    scored = [(better, longer) for better, _, longer in given if better]
    values = {"a": 0.0, "b": 1.0, "tie": 0.5}
    controlled = (
        length_controlled_win_rate([values[x] for x, _ in scored], [float(n) for _, n in scored])
        if scored
        else None
    )
    return Pair(
        a,
        b,
        sum(better == "a" for better, _, _ in given),
        sum(better == "b" for better, _, _ in given),
        sum(better == "tie" for better, _, _ in given),
        sum(is_flip for _, is_flip, _ in given),
        sum(not better for better, _, _ in given),
        controlled,
    )


def _strengths(arms: Sequence[Arm], wins: np.ndarray) -> tuple[list[Strength], str]:
    games = wins + wins.T
    try:
        found: list[Estimate | None] = [_chance(one) for one in bradley_terry(wins)]
        problem = ""
    except ValueError:
        found = [None] * len(arms)
        problem = _(
            "Strengths can't be computed yet, because an arm has won or lost every comparison, or "
            "there are none."
        )
    made = [Strength(arm, float(wins[n].sum()), int(games[n].sum()), found[n]) for n, arm in enumerate(arms)]
    made.sort(key=lambda s: -(s.chance.value if s.chance else s.wins / s.games if s.games else 0))
    return made, problem


def _chance(log_strength: Estimate) -> Estimate:
    """Return the chance to beat an arm of mean strength (0), from a log strength with its interval."""
    value, low, high = (
        float(1 / (1 + np.exp(-x))) for x in (log_strength.value, log_strength.low, log_strength.high)
    )
    return Estimate(value, low, high)


def _lexical(row: Record, a: str, b: str) -> PairVerdict:
    first, second = token_f1(a, row.answer), token_f1(b, row.answer)
    if not row.answer.strip():
        return PairVerdict(None, reason=_("There is no reference, so no words can be counted."))
    better = "tie" if abs(first - second) < _SAME else "a" if first > second else "b"
    reason = _("Shared words with the reference: A %(a)s, B %(b)s. No model judged this.") % {
        "a": number_told(first, 2),
        "b": number_told(second, 2),
    }
    return PairVerdict(better, reason=reason)  # type: ignore[arg-type]

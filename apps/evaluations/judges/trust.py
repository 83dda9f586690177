"""How far a judge agrees with people, beside how far people agree with each other, per score and rubric version."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.datasets.records.rubric import LEVELS
from apps.evaluations.models import (
    AnnotationQueue,
    Arm,
    AssignmentState,
    JudgeCheck,
    RubricVersion,
    Score,
    ScoreAuthor,
)
from apps.evaluations.results.series import ArmScores
from apps.evaluations.statistics.agreement import (
    cohen_kappa,
    cohen_kappa_interval,
    fleiss_kappa_interval,
    krippendorff_alpha_interval,
    percent_agreement_interval,
)
from apps.evaluations.statistics.values import Estimate
from basics.texts import number_told
from tenancy.actors import Actor

BAR = 0.6
"""Lower end of the judge's kappa with people from which its score may stop a release."""
LEAST = 20
"""Fewer answers that both have graded say nothing, however well they agree."""
NARROW = 0.2
"""Width of an interval of agreement from which more grades would teach little."""
_LEVELS = range(1, LEVELS + 1)


@dataclass(frozen=True, slots=True)
class People:
    """How far people agree about one score: the ceiling for any judge.

    Attributes:
        n: answers that two or more have graded.
        alpha: Krippendorff's ordinal alpha, for any number of people and gaps.
        cohen: mean quadratic kappa over the pairs of people who share 10 answers or more.
        fleiss: Fleiss' kappa, where every answer was graded by the same number of people; it knows no order of levels.
        percent: share of equal levels.
    """

    n: int
    alpha: Estimate | None
    cohen: float | None
    fleiss: Estimate | None
    percent: Estimate | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """One score of one judge.

    Attributes:
        n: answers that judge and people have graded.
        judge_human: quadratic kappa of the judge's level with the people's median level.
        percent: share of equal levels, which alone misleads where nearly all are equal.
        people: how far people agree with each other.
        pairs: (judge's level, people's median level) of each answer.
        has_drifted: before the arm's experiment it graded gold answers otherwise than before; then it may not gate.
    """

    name: str
    author: str
    n: int
    judge_human: Estimate | None
    percent: Estimate | None
    people: People
    pairs: Sequence[tuple[float, float]] = field(default_factory=tuple, repr=False)
    has_drifted: bool = False

    @property
    def human_human(self) -> Estimate | None:
        """Return the ceiling."""
        return self.people.alpha

    def is_trusted(self, bar: float = BAR) -> bool:
        """Return whether the score may gate: enough answers, and the interval's lower end at the bar."""
        if self.has_drifted or self.n < LEAST or self.judge_human is None:
            return False
        return self.judge_human.low >= bar

    def told(self, bar: float = BAR) -> str:
        """Return in a sentence whether the score may gate, and why not."""
        if self.has_drifted:
            return _(
                "It now grades the gold answers differently, so people's agreement was with a different "
                "judge."
            )
        if self.n < LEAST:
            return _(
                "People have graded %(n)s of the answers that this judge graded; %(least)s are needed."
            ) % {"n": self.n, "least": LEAST}
        if self.judge_human is None:
            return _("People or the judge used only one level, so agreement can't be measured.")
        kappa = self.judge_human
        told = (
            ngettext(
                "Agreement with people (kappa) %(kappa)s, 95 %% interval %(low)s to %(high)s, %(count)s answer; its lower end reaches the bar of %(bar)s.",
                "Agreement with people (kappa) %(kappa)s, 95 %% interval %(low)s to %(high)s, %(count)s answers; its lower end reaches the bar of %(bar)s.",
                self.n,
            )
            if self.is_trusted(bar)
            else ngettext(
                "Agreement with people (kappa) %(kappa)s, 95 %% interval %(low)s to %(high)s, %(count)s answer; its lower end does not reach the bar of %(bar)s.",
                "Agreement with people (kappa) %(kappa)s, 95 %% interval %(low)s to %(high)s, %(count)s answers; its lower end does not reach the bar of %(bar)s.",
                self.n,
            )
        )
        return told % {
            "kappa": number_told(kappa.value, 2),
            "low": number_told(kappa.low, 2),
            "high": number_told(kappa.high, 2),
            "count": self.n,
            "bar": number_told(bar, None),
        }


def agreement_list(*, actor: Actor, version: RubricVersion) -> list[Agreement]:
    """Return the agreement for every score and judge of a rubric's version, in one query.

    Answers that no person has graded are not read. Of a person who graded an answer again the last grade counts.
    """
    actor.require("evaluation.read")
    rows = Score.objects.visible_to(actor).filter(rubric_version=version, level__isnull=False)
    # Grades that were undone stay in the history and count no more.
    counted = Q(assignment__isnull=True) | Q(assignment__state=AssignmentState.DONE)
    rows = rows.filter(counted)
    graded = rows.filter(author_kind=ScoreAuthor.PERSON).values("trial")
    rows = rows.filter(trial__in=graded).order_by("pk")
    people: dict[str, dict[int, dict[str, float]]] = {}
    judges: dict[tuple[str, str], dict[int, float]] = {}
    for name, kind, author, trial, level in rows.values_list(
        "name", "author_kind", "author", "trial_id", "level"
    ):
        if level is None:
            continue
        if kind == ScoreAuthor.PERSON:
            who = author.partition("#")[0]
            people.setdefault(name, {}).setdefault(trial, {})[who] = level
        elif kind == ScoreAuthor.JUDGE:
            judges.setdefault((name, author), {})[trial] = level
    among = {name: _people(graded) for name, graded in people.items()}
    return [
        _agreement(name, author, given, people.get(name, {}), among.get(name, _people({})))
        for (name, author), given in sorted(judges.items())
    ]


def queue_agreement(*, actor: Actor, queue: AnnotationQueue) -> list[tuple[str, Estimate]]:
    """Return how far people agree in one queue: per score Krippendorff's ordinal alpha, the widest interval first."""
    actor.require("evaluation.read")
    rows = Score.objects.visible_to(actor).filter(
        assignment__item__queue=queue, assignment__state=AssignmentState.DONE, level__isnull=False
    )
    given: dict[str, dict[int, dict[int | None, float]]] = {}
    for name, trial, user, level in rows.order_by("pk").values_list("name", "trial_id", "user_id", "level"):
        if level is not None:
            given.setdefault(name, {}).setdefault(trial, {})[user] = level
    found = []
    for name, units in given.items():
        levels = [list(unit.values()) for unit in units.values() if len(unit) > 1]
        alpha = krippendorff_alpha_interval(levels, level="ordinal") if levels else None
        if alpha is not None:
            found.append((name, alpha))
    return sorted(found, key=lambda one: one[1].low - one[1].high)


def enough_told(found: Sequence[tuple[str, Estimate]]) -> str:
    """Return whether further grades would still teach something about how far people agree, "" where nothing is known."""
    if not found:
        return ""
    name, widest = found[0]
    told = (
        _(
            "People's agreement is precise enough (least precise for %(score)s: %(alpha)s, 95 %% interval %(low)s to %(high)s). More grades would change little."
        )
        if widest.high - widest.low <= NARROW
        else _(
            "People's agreement isn't precise enough yet: alpha of %(score)s is %(alpha)s, 95 %% interval %(low)s to %(high)s. More grades will narrow it."
        )
    )
    return told % {
        "score": name,
        "alpha": number_told(widest.value, 2),
        "low": number_told(widest.low, 2),
        "high": number_told(widest.high, 2),
    }


def arm_agreements(*, actor: Actor, arm: Arm, scores: ArmScores) -> dict[str, list[Agreement]]:
    """Return per score of an arm the agreement of the judges who gave it; [] for one that people never graded.

    Args:
        scores: what the arm scored, see ``selectors.arm_scores``.
    """
    actor.require("evaluation.read")
    versions = RubricVersion.objects.visible_to(actor).filter(
        pk__in={version for _, _, version in scores.judges if version is not None}
    )
    known = {
        (one.name, one.author): one
        for version in versions
        for one in agreement_list(actor=actor, version=version)
    }
    checks = JudgeCheck.objects.visible_to(actor).filter(experiment_id=arm.experiment_id)
    drifted = set(checks.filter(is_drifted=True).values_list("author", flat=True))
    found: dict[str, list[Agreement]] = {}
    for name, author, _version in sorted(scores.judges, key=lambda one: one[:2]):
        one = known.get((name, author)) or _agreement(name, author, {}, {}, _people({}))
        one = replace(one, has_drifted=author in drifted)
        found.setdefault(name, []).append(one)
    return found


def trusted_names(agreements: Mapping[str, Sequence[Agreement]], *, bar: float = BAR) -> set[str]:
    """Return the scores whose every judge may gate."""
    return {name for name, found in agreements.items() if all(one.is_trusted(bar) for one in found)}


def _agreement(
    name: str,
    author: str,
    given: Mapping[int, float],
    graded: Mapping[int, Mapping[str, float]],
    people: People,
) -> Agreement:
    both = sorted(set(given) & set(graded))
    pairs = [(given[t], _median(list(graded[t].values()))) for t in both]
    first, second = [round(judge) for judge, _ in pairs], [round(human) for _, human in pairs]
    kappa = cohen_kappa_interval(first, second, weights="quadratic", levels=_LEVELS) if both else None
    percent = percent_agreement_interval(list(zip(first, second, strict=True)))
    return Agreement(name, author, len(both), kappa, percent, people, tuple(pairs))


def _people(graded: Mapping[int, Mapping[str, float]]) -> People:
    units = [given for given in graded.values() if len(given) > 1]
    levels = [list(given.values()) for given in units]
    same_size = bool(units) and len({len(unit) for unit in units}) == 1
    return People(
        n=len(units),
        alpha=krippendorff_alpha_interval(levels, level="ordinal") if units else None,
        cohen=_cohen(units),
        fleiss=fleiss_kappa_interval(levels) if same_size else None,
        percent=percent_agreement_interval(levels),
    )


def _cohen(units: Sequence[Mapping[str, float]], least: int = 10) -> float | None:
    people = sorted({who for unit in units for who in unit})
    found = []
    for one, other in combinations(people, 2):
        shared = [(round(u[one]), round(u[other])) for u in units if one in u and other in u]
        if len(shared) < least:
            continue
        kappa = cohen_kappa(
            [a for a, _ in shared], [b for _, b in shared], weights="quadratic", levels=_LEVELS
        )
        if kappa is not None:
            found.append(kappa)
    return statistics.fmean(found) if found else None


def _median(levels: Sequence[float]) -> float:
    """Return the lower median: of two who disagree, the stricter one."""
    return sorted(levels)[(len(levels) - 1) // 2]

"""How far a judge agrees with people, beside how far people agree with each other, per score and rubric version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.datasets.rubric import LEVELS
from apps.evaluations.models import RubricVersion, Score, ScoreAuthor
from apps.evaluations.statistics.agreement import (
    cohen_kappa_interval,
    krippendorff_alpha_interval,
    percent_agreement,
)
from apps.evaluations.statistics.values import Estimate
from tenancy.actors import Actor

BAR = 0.6
"""Lower end of the judge's kappa with people from which its score may stop a release."""
LEAST = 20
"""Fewer answers that both have graded say nothing, however well they agree."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One score of one judge.

    Attributes:
        n: answers that judge and people have graded.
        judge_human: quadratic kappa of the judge's level with the people's median level.
        percent: share of equal levels, which alone misleads where nearly all are equal.
        human_human: Krippendorff's ordinal alpha among people: the ceiling.
    """

    name: str
    author: str
    n: int
    judge_human: Estimate | None
    percent: float | None
    human_human: Estimate | None

    def is_trusted(self, bar: float = BAR) -> bool:
        """Return whether the score may gate: enough answers, and the interval's lower end at the bar."""
        return self.n >= LEAST and self.judge_human is not None and self.judge_human.low >= bar


def agreement_list(*, actor: Actor, version: RubricVersion) -> list[Agreement]:
    """Return the agreement for every score and judge of a rubric's version, in one query."""
    actor.require("evaluation.read")
    rows = Score.objects.visible_to(actor).filter(rubric_version=version, level__isnull=False)
    people: dict[str, dict[int, list[float]]] = {}
    judges: dict[tuple[str, str], dict[int, float]] = {}
    for name, kind, author, trial, level in rows.values_list(
        "name", "author_kind", "author", "trial_id", "level"
    ):
        if level is None:
            continue
        if kind == ScoreAuthor.PERSON:
            people.setdefault(name, {}).setdefault(trial, []).append(level)
        else:
            judges.setdefault((name, author), {})[trial] = level
    found = []
    for (name, author), given in sorted(judges.items()):
        graded = people.get(name, {})
        both = sorted(set(given) & set(graded))
        first = [round(given[t]) for t in both]
        second = [round(_median(graded[t])) for t in both]
        found.append(
            Agreement(
                name=name,
                author=author,
                n=len(both),
                judge_human=cohen_kappa_interval(
                    first, second, weights="quadratic", levels=range(1, LEVELS + 1)
                )
                if both
                else None,
                percent=percent_agreement(list(zip(first, second, strict=True))),
                human_human=krippendorff_alpha_interval(
                    [levels for levels in graded.values() if len(levels) > 1], level="ordinal"
                ),
            )
        )
    return found


def trusted_authors(
    *, actor: Actor, versions: Sequence[RubricVersion], bar: float = BAR
) -> set[tuple[str, str]]:
    """Return (score, author) of the judges that may gate."""
    return {
        (one.name, one.author)
        for version in versions
        for one in agreement_list(actor=actor, version=version)
        if one.is_trusted(bar)
    }


def _median(levels: Sequence[float]) -> float:
    """Return the lower median: of two who disagree, the stricter one."""
    return sorted(levels)[(len(levels) - 1) // 2]

"""Has a judge drifted? Before an experiment it grades the gold answers of its rubric again, and is compared with itself.

The gold answers are those to which people gave levels that are known to be right. The first check over a set of them is the
reference of the later ones; a set that has changed begins anew, which is how a judge is calibrated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from apps.datasets.records.record import from_values
from apps.datasets.records.rubric import LEVELS
from apps.evaluations.models import AnnotationItem, Experiment, JudgeCheck, RubricVersion
from apps.evaluations.results.outcomes import outcome_of
from apps.evaluations.scorers.base import Scorer
from apps.evaluations.statistics.agreement import cohen_kappa_interval
from apps.evaluations.statistics.paired import bootstrap_mean
from apps.evaluations.statistics.values import Estimate
from batches.awaited import together
from tenancy.actors import Actor

LEAST_GOLD = 10
"""Fewer gold answers tell nothing, and no check is made."""
MOST_GOLD = 100
_ALPHA = 0.05
_LEAST_CHANGE = 0.25
"""Change of the mean, in levels of five, below which a shift is none however sure it is."""
_LEVELS = range(1, LEVELS + 1)
Levels = Mapping[str, Mapping[str, float | None]]
"""Id of a gold item, as text -> score -> level."""


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """One score of a judge over the gold answers.

    Attributes:
        kappa: quadratic kappa with the gold levels; None where one level only was given.
        change: mean of its levels now minus those of the reference, with an interval that is shared among the scores;
            None for the reference itself.
    """

    name: str
    n: int
    kappa: Estimate | None
    change: Estimate | None

    @property
    def is_drifted(self) -> bool:
        """Return whether the judge grades otherwise than it did."""
        moved = self.change
        return moved is not None and moved.excludes(0) and abs(moved.value) >= _LEAST_CHANGE

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "is_drifted": self.is_drifted}


def gold_items(version: RubricVersion) -> list[AnnotationItem]:
    """Return the gold answers of a rubric's version with their rows, the first hundred; [] where they are too few."""
    rows = AnnotationItem.objects.filter(tenant_id=version.tenant_id, queue__rubric_version=version).exclude(
        gold={}
    )
    found = list(rows.select_related("trial__content").order_by("pk")[:MOST_GOLD])
    return found if len(found) >= LEAST_GOLD else []


def gold_grade(scorer: Scorer, items: Sequence[AnnotationItem]) -> dict[str, dict[str, float | None]]:
    """Return the levels that a judge gives the gold answers now; it blocks while the judge thinks."""

    def graded(item: AnnotationItem) -> dict[str, float | None]:
        found = scorer.score(from_values(item.trial.content.data), outcome_of(item.trial))
        return {value.name: value.level for value in found}

    levels = together(partial(graded, item) for item in items)
    return {str(item.pk): given for item, given in zip(items, levels, strict=True)}


def findings_of(items: Sequence[AnnotationItem], now: Levels, before: Levels | None) -> list[DriftFinding]:
    """Return what a check found, per score that the gold answers have.

    Args:
        before: what the reference gave the same answers; None where this is the reference.
    """
    names = sorted({name for item in items for name in item.gold})
    found = []
    for name in names:
        pairs = [
            (float(item.gold[name]), level)
            for item in items
            if name in item.gold and (level := now[str(item.pk)].get(name)) is not None
        ]
        moves = [
            level - was
            for key, given in now.items()
            if (level := given.get(name)) is not None
            and (was := (before or {}).get(key, {}).get(name)) is not None
        ]
        kappa = (
            cohen_kappa_interval(
                [round(a) for a, _ in pairs],
                [round(b) for _, b in pairs],
                weights="quadratic",
                levels=_LEVELS,
            )
            if pairs
            else None
        )
        change = bootstrap_mean(np.asarray(moves), confidence=1 - _ALPHA / len(names)) if moves else None
        found.append(DriftFinding(name, len(pairs), kappa, change))
    return found


def reference_of(version: RubricVersion, author: str, items: Sequence[AnnotationItem]) -> Levels | None:
    """Return what a judge gave these gold answers when it was first checked on them; None when it was not."""
    keys = {str(item.pk) for item in items}
    checks = JudgeCheck.objects.filter(tenant_id=version.tenant_id, rubric_version=version, author=author)
    for levels in checks.order_by("pk").values_list("levels", flat=True).iterator():
        if set(levels) == keys:
            return levels  # type: ignore[no-any-return]
    return None


def check_list(*, actor: Actor, experiment: Experiment) -> list[JudgeCheck]:
    """Return the checks that were made before an experiment."""
    actor.require("evaluation.read")
    rows = JudgeCheck.objects.visible_to(actor).filter(experiment=experiment)
    return list(rows.select_related("rubric_version__rubric").order_by("pk"))

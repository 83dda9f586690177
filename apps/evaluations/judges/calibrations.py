"""Scores on the scale of people: what a judge gives, read by the newest calibration of that judge, with the raw figure beside it.

Scores never change; they are read otherwise where somebody asks for it. A judge that has drifted is not read so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.evaluations.models import Arm, JudgeCalibration, JudgeCheck, RubricVersion, Score, ScoreAuthor
from apps.evaluations.results.selectors import arm_scores
from apps.evaluations.results.series import ArmScores, Series
from apps.evaluations.statistics.calibration import Band
from basics.texts import number_told
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class Reading:
    """One score of one arm on the scale of people.

    Attributes:
        calibration: id of the one that was used; ``number`` is its version, ``n`` the answers that it rests on.
        raw, value: mean of the judge's scores, and of the same on the scale of people.
        low, high: between what that mean lies, as far as the calibration is known (95 %).
    """

    calibration: int
    number: int
    n: int
    raw: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Two arms, and which of their scores are on the scale of people: score -> (A's reading, B's)."""

    a: ArmScores
    b: ArmScores
    readings: Mapping[str, tuple[Reading, Reading]]

    def told(self, name: str) -> str:
        """Return in words how a score was read, "" where it is the judge's own."""
        if name not in self.readings:
            return ""
        a, b = self.readings[name]
        which = (
            _("version %(number)s")
            if a.calibration == b.calibration
            else _("versions %(before)s and %(number)s")
        ) % {"before": a.number, "number": b.number}
        count = min(a.n, b.n)
        return ngettext(
            "Calibrated to people (%(versions)s, %(count)s answer): %(value)s, 95 %% interval %(low)s to %(high)s; the judge's own %(raw_before)s before, %(raw)s now",
            "Calibrated to people (%(versions)s, %(count)s answers): %(value)s, 95 %% interval %(low)s to %(high)s; the judge's own %(raw_before)s before, %(raw)s now",
            count,
        ) % {
            "versions": which,
            "count": count,
            "value": number_told(b.value, 3),
            "low": number_told(b.low, 3),
            "high": number_told(b.high, 3),
            "raw_before": number_told(a.raw, 3),
            "raw": number_told(b.raw, 3),
        }


def band_of(row: JudgeCalibration) -> Band:
    """Return the curve that a calibration keeps."""
    return Band(**{name: tuple(points) for name, points in row.curve.items()})


def calibration_list(*, actor: Actor, version: RubricVersion) -> list[JudgeCalibration]:
    """Return the calibrations of the judges of a rubric's version, the newest first."""
    actor.require("evaluation.read")
    rows = JudgeCalibration.objects.visible_to(actor).filter(rubric_version=version)
    return list(rows.select_related("created_by").order_by("-pk"))


def has_calibration(*, actor: Actor, scores: ArmScores) -> bool:
    """Return whether a judge who gave an arm's scores was calibrated."""
    actor.require("evaluation.read")
    authors = {author for _, author, _ in scores.judges}
    return JudgeCalibration.objects.visible_to(actor).filter(author__in=authors).exists()


def arms_read(*, actor: Actor, a: Arm, b: Arm, is_calibrated: bool) -> Calibrated:
    """Return the scores of two arms, on the scale of people where that is asked for and the judges of both have a calibration.

    A score that several judges gave stays as it is: their mean has no calibration. So does one whose judge has drifted.
    """
    actor.require("evaluation.read")
    first, second = arm_scores(actor=actor, arm=a), arm_scores(actor=actor, arm=b)
    if not is_calibrated:
        return Calibrated(first, second, {})
    known = [_known(actor, arm, scores) for arm, scores in ((a, first), (b, second))]
    names = sorted(known[0].keys() & known[1].keys())
    if not names:
        return Calibrated(first, second, {})
    left, mine = _read(a, first, {name: known[0][name] for name in names})
    right, other = _read(b, second, {name: known[1][name] for name in names})
    return Calibrated(left, right, {name: (mine[name], other[name]) for name in names})


def _known(actor: Actor, arm: Arm, scores: ArmScores) -> dict[str, JudgeCalibration]:
    """Return per score of an arm the calibration of the one judge who gave it."""
    names = [n for n in scores.judged & set(scores.values) if len(scores.authors.get(n, ())) == 1]
    checks = JudgeCheck.objects.visible_to(actor).filter(experiment_id=arm.experiment_id)
    drifted = set(checks.filter(is_drifted=True).values_list("author", flat=True))
    rows = JudgeCalibration.objects.visible_to(actor).filter(
        rubric_version__in={version for _, _, version in scores.judges if version is not None}, name__in=names
    )
    found: dict[str, JudgeCalibration] = {}
    for row in rows.order_by("number"):
        is_its = (row.name, row.author, row.rubric_version_id) in scores.judges
        if is_its and row.author not in drifted:
            found[row.name] = row
    return found


def _read(
    arm: Arm, scores: ArmScores, known: Mapping[str, JudgeCalibration]
) -> tuple[ArmScores, dict[str, Reading]]:
    """Return an arm's scores with some of them read anew, each answer by itself: a mean is read otherwise than its parts."""
    values, repeats = dict(scores.values), dict(scores.repeats)
    readings: dict[str, Reading] = {}
    given = Score.objects.filter(
        tenant_id=arm.tenant_id, trial__arm=arm, value__isnull=False, author_kind=ScoreAuthor.JUDGE
    )
    for name, row in known.items():
        found = given.filter(name=name).values_list("trial__row_ref", "trial__repeat", "value")
        table = np.array(list(found), dtype=np.float64).reshape(-1, 3)
        band = band_of(row)
        read = band.apply(table[:, 2])
        rows, mean = _means(table[:, 0], read)
        values[name] = Series(rows.astype(np.int64), mean)
        repeats[name] = _means(table[:, 1], read)[1].tolist()
        low, high = band.mean_interval(table[:, 2])
        readings[name] = Reading(
            row.pk, row.number, row.n, float(table[:, 2].mean()), float(read.mean()), low, high
        )
    return replace(scores, values=values, repeats=repeats), readings


def _means(keys: Any, values: Any) -> tuple[Any, Any]:
    """Return each key once, ascending, with the mean of its values."""
    once, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return once, np.bincount(places, weights=values) / counts

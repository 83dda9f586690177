"""Writes of calibrations: how a judge's score is read on the scale of people."""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction
from django.db.models import Max

from apps.datasets.records.rubric import value_of
from apps.evaluations.judges.trust import LEAST, agreement_list
from apps.evaluations.models import JudgeCalibration, Rubric, RubricVersion
from apps.evaluations.statistics.calibration import isotonic_band
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


def calibration_create(
    *, tenant: Tenant, actor: Actor, version: RubricVersion, name: str, author: str
) -> JudgeCalibration:
    """Fit a judge's score to people's as they have graded up to now, and keep it as the next version.

    It changes how a score is read, and not how far the judge is trusted: that is measured by what it gave.

    Args:
        name, author: the score and the judge, as ``agreement_list`` names them.

    Raises:
        Missing: people have graded no answer of this judge. Conflict: ``too_few_grades``.
    """
    actor.require("evaluation.write")
    with transaction.atomic():
        rows = Rubric.objects.visible_to(actor).select_for_update()
        if not rows.filter(pk=version.rubric_id).exists():
            raise Missing("rubric")
        found = next(
            (
                one
                for one in agreement_list(actor=actor, version=version)
                if (one.name, one.author) == (name, author)
            ),
            None,
        )
        if found is None:
            raise Missing("judge")
        if found.n < LEAST:
            raise Conflict(
                "too_few_grades",
                _(
                    "People have graded %(n)s of the answers that this judge graded; a calibration needs %(least)s."
                )
                % {"n": found.n, "least": LEAST},
            )
        judge, people = zip(*((value_of(a), value_of(b)) for a, b in found.pairs), strict=True)
        band = isotonic_band(judge, people)
        own = JudgeCalibration.objects.filter(tenant=tenant, rubric_version=version, name=name, author=author)
        row: JudgeCalibration = JudgeCalibration.objects.create(
            tenant=tenant,
            rubric_version=version,
            name=name,
            author=author,
            n=found.n,
            number=(own.aggregate(n=Max("number"))["n"] or 0) + 1,
            curve=asdict(band),
            created_by_id=actor.user_id,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="judge.calibrate",
            object=row,
            data={"score": name, "judge": author, "number": row.number, "answers": found.n},
        )
    return row

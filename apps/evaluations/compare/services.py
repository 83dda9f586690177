"""Writes of baselines: which arm a gate compares with."""

from __future__ import annotations

import re

from django.db import transaction

from apps.evaluations.models import Arm, Baseline, ExperimentState
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def baseline_set(*, tenant: Tenant, actor: Actor, arm: Arm, name: str = "main", note: str = "") -> Baseline:
    """Make an arm the baseline of its dataset from now on; the one before stays in the history.

    Raises:
        Conflict: ``experiment_unfinished``, ``arm_stopped``. Invalid: the name is none.
    """
    actor.require("evaluation.write")
    if not _NAME.fullmatch(name):
        raise Invalid(
            "baseline_invalid",
            _("Use lower-case letters, digits, - and _ in a baseline's name."),
            data={"fields": {"name": [_("Lower-case letters, digits, - and _.")]}},
        )
    if arm.experiment.state != ExperimentState.COMPLETED:
        raise Conflict("experiment_unfinished", _("Wait until the experiment is complete."))
    if arm.stopped_at is not None:
        raise Conflict(
            "arm_stopped", _("This arm was stopped early, so not all its rows were asked. Run it alone.")
        )
    with transaction.atomic():
        row: Baseline = Baseline.objects.create(
            tenant=tenant,
            dataset_id=arm.experiment.dataset_id,
            name=name,
            arm=arm,
            note=note.strip()[:200],
            created_by_id=actor.user_id,
        )
        audit_record(
            tenant=tenant, actor=actor, action="baseline.set", object=row, data={"arm": arm.pk, "name": name}
        )
    return row

"""Make a dataset of the rows that an arm fails."""

from __future__ import annotations

from django.db import transaction

from apps.datasets.models import DatasetVersion
from apps.datasets.services import NewRow, dataset_create, rows_add, version_create
from apps.evaluations.failures import arm_failures, records_of
from apps.evaluations.models import Arm
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.models import Tenant


def failures_collect(
    *, tenant: Tenant, actor: Actor, arm: Arm, name: str, tag: str = "", group: int | None = None
) -> DatasetVersion:
    """Make a dataset of an arm's failing rows and freeze its first version, ready for an experiment of its own.

    Args:
        name: of the dataset.
        tag, group: which of them; all without either.

    Raises:
        Missing: there is no such failing row. Invalid: the name is none, or is taken.
    """
    actor.require("evaluation.read")
    actor.require("dataset.write")
    chosen = arm_failures(tenant=tenant, actor=actor, arm=arm).chosen(tag=tag, group=group)
    if not chosen:
        raise Missing("failing row")
    records = records_of(actor=actor, arm=arm, rows=chosen)
    come = {"experiment": arm.experiment_id, "arm": arm.pk}
    with transaction.atomic():
        dataset = dataset_create(tenant=tenant, actor=actor, name=name)
        rows_add(
            tenant=tenant,
            actor=actor,
            dataset=dataset,
            rows=[
                NewRow(record, lineage={**come, "row": row.row})
                for record, row in zip(records, chosen, strict=True)
            ],
            source=f"failures of experiment {arm.experiment_id}",
        )
        return version_create(
            tenant=tenant, actor=actor, dataset=dataset, note=f"Rows that “{arm.name}” fails"[:200]
        )

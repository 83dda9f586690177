"""Make a dataset of the rows that an arm fails, or put them into a split of their own."""

from __future__ import annotations

from django.db import transaction

from apps.datasets.models import DatasetCheck, DatasetVersion
from apps.datasets.services import NewRow, dataset_create, rows_add, split_assign, version_create
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


def failures_split(
    *, tenant: Tenant, actor: Actor, arm: Arm, into: str, tag: str = "", group: int | None = None
) -> DatasetCheck:
    """Start putting an arm's failing rows into a split of their dataset; rows of the same documents move along.

    Args:
        tag, group: which of them; all without either.

    Raises:
        Missing: there is no such failing row. Invalid: an unknown split. Conflict: rows are being divided already.
    """
    actor.require("evaluation.read")
    chosen = arm_failures(tenant=tenant, actor=actor, arm=arm).chosen(tag=tag, group=group)
    if not chosen:
        raise Missing("failing row")
    return split_assign(
        tenant=tenant,
        actor=actor,
        dataset=arm.experiment.version.dataset,
        into=into,
        row_pks=[row.row for row in chosen],
    )

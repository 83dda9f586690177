"""Add and change rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from apps.datasets.columns import record_columns, record_of
from apps.datasets.models import Dataset, DatasetRow, RowStatus
from apps.datasets.record import FIELDS, Record, from_values, to_values
from basics.errors import Conflict, Invalid
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BATCH = 500


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to add.

    Attributes:
        lineage: where it comes from.
        run_id: the run that answered it.
    """

    record: Record
    status: str = RowStatus.DRAFT.value
    lineage: Mapping[str, Any] = field(default_factory=dict)
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class RowsAdded:
    """What became of rows: ids of those that are new, and how many were there already (or twice in the list)."""

    created: list[int]
    duplicates: int


def rows_add(
    *, tenant: Tenant, actor: Actor, dataset: Dataset, rows: Sequence[NewRow], source: str
) -> RowsAdded:
    """Add rows; one whose content the dataset has already is left out.

    Args:
        source: what adds them, for the audit trail: ``import``, ``conversation``, ``generation 5``.

    Raises:
        Invalid: an unknown status.
    """
    actor.require("dataset.write")
    for row in rows:
        if row.status not in RowStatus.values:
            raise Invalid("row_invalid", f"“{row.status}” is no status of a row.")
    created: list[int] = []
    with transaction.atomic():
        for start in range(0, len(rows), BATCH):
            made = rows_insert(tenant, actor, dataset, rows[start : start + BATCH])
            created += [pk for pk in made if pk is not None]
        Dataset.objects.filter(pk=dataset.pk).update(updated_at=Now())
        audit_record(
            tenant=tenant,
            actor=actor,
            action="dataset.rows_add",
            object=dataset,
            data={"source": source, "rows": len(created)},
        )
    return RowsAdded(created, len(rows) - len(created))


def rows_insert(
    tenant: Tenant, actor: Actor, dataset: Dataset, rows: Sequence[NewRow]
) -> list[int | None]:
    """Insert rows in the caller's transaction; returns their ids in order, None for content that is there already."""
    columns = [record_columns(row.record) for row in rows]
    hashes = [str(values["content_hash"]) for values in columns]
    first = {key: place for place, key in reversed(list(enumerate(hashes)))}
    stored = DatasetRow.objects.filter(dataset=dataset)
    # Two that insert the same content at once: the constraint keeps one, and the ids are read by who made them.
    before = set(stored.filter(content_hash__in=first).values_list("content_hash", flat=True))
    fresh = {key: place for key, place in first.items() if key not in before}
    DatasetRow.objects.bulk_create(
        [
            DatasetRow(
                tenant=tenant,
                dataset=dataset,
                status=rows[place].status,
                lineage=dict(rows[place].lineage),
                run_id=rows[place].run_id,
                created_by_id=actor.user_id,
                **columns[place],
            )
            for place in sorted(fresh.values())
        ],
        ignore_conflicts=True,
    )
    found = dict(stored.filter(content_hash__in=fresh).values_list("content_hash", "pk"))
    return [found.get(key) if fresh.get(key) == at else None for at, key in enumerate(hashes)]


def row_update(
    *, tenant: Tenant, actor: Actor, row: DatasetRow, changes: Mapping[str, Any]
) -> DatasetRow:
    """Change a row's content, split or tags. What was approved goes back to review when its content changes.

    Args:
        changes: fields of ``Record`` with their JSON values.

    Raises:
        Invalid: an unknown field or value.
        Conflict: ``row_exists``, the dataset has this content already.
    """
    actor.require("dataset.write")
    unknown = set(changes) - set(FIELDS) | set(changes) & {"id"}
    if unknown:
        raise Invalid("unknown_field", f"A row has no {', '.join(sorted(unknown))} to change.")
    try:
        with transaction.atomic():
            locked: DatasetRow = (
                DatasetRow.objects.visible_to(actor).select_for_update().get(pk=row.pk)
            )
            before = locked.content_hash
            after = from_values({**to_values(record_of(locked)), **changes})
            # A split says where a row is used; nobody need look at the row again for it.
            if set(changes) - {"split"} and after.content_hash != before:
                locked.status = _status_after_change(locked.status)
            for name, value in record_columns(after).items():
                setattr(locked, name, value)
            locked.save()
            audit_record(
                tenant=tenant,
                actor=actor,
                action="dataset_row.update",
                object=locked,
                data={"fields": sorted(changes), "before": before, "after": after.content_hash},
            )
    except IntegrityError as error:
        raise Conflict("row_exists", "The dataset has a row with this content already.") from error
    return locked


def _status_after_change(status: str) -> str:
    return RowStatus.REVIEW.value if status == RowStatus.APPROVED else status

"""Add and change rows of a dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from apps.datasets.models import Dataset, DatasetRow, RowStatus
from apps.datasets.records.columns import record_columns, record_of
from apps.datasets.records.record import FIELDS, UNHASHED, Record, from_values, to_values
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BATCH = 500
# By hand and as one JSON value: the ORM takes longer to write such a statement than the database to carry it out.
_INSERT = """
INSERT INTO datasets_datasetrow (tenant_id, dataset_id, created_by_id, created_at, updated_at, content_hash,
    question, answer, type, difficulty, expected, language, rationale, steps, sources, scores, tags,
    split, extra, quality, status, lineage, run_id)
SELECT %s, %s, %s, statement_timestamp(), statement_timestamp(), r.* FROM jsonb_to_recordset(%s::jsonb) AS r (
    content_hash text, question text, answer text, type text, difficulty text, expected text,
    language text, rationale text, steps jsonb, sources jsonb, scores jsonb, tags text[],
    split text, extra jsonb, quality float, status text, lineage jsonb, run_id bigint)
ON CONFLICT ON CONSTRAINT dataset_row_once DO NOTHING RETURNING content_hash, id
"""


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
            raise Invalid("row_invalid", _("“%(status)s” isn't a row status.") % {"status": row.status})
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


def rows_insert(tenant: Tenant, actor: Actor, dataset: Dataset, rows: Sequence[NewRow]) -> list[int | None]:
    """Insert rows in the caller's transaction; returns their ids in order, None for content that is there already."""
    columns = [
        {
            **record_columns(row.record),
            "status": row.status,
            "lineage": dict(row.lineage),
            "run_id": row.run_id,
        }
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [tenant.pk, dataset.pk, actor.user_id, json.dumps(columns)])
        made = dict(cursor.fetchall())
    # Of content that comes twice the first row is the one that was made.
    return [made.pop(values["content_hash"], None) for values in columns]


def row_update(*, tenant: Tenant, actor: Actor, row: DatasetRow, changes: Mapping[str, Any]) -> DatasetRow:
    """Change a row's content, split or tags. What was approved goes back to review when its content changes.

    Args:
        changes: fields of ``Record`` with their JSON values.

    Raises:
        Invalid: an unknown field or value.
        Conflict: ``row_exists``, the dataset has this content already.
    """
    actor.require("dataset.write")
    unknown = set(changes) - set(FIELDS) | set(changes) & UNHASHED
    if unknown:
        raise Invalid("unknown_field", f"A row has no {', '.join(sorted(unknown))} to change.")
    try:
        with transaction.atomic():
            locked: DatasetRow = DatasetRow.objects.visible_to(actor).select_for_update().get(pk=row.pk)
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
        raise Conflict("row_exists", _("The dataset already has a row with this content.")) from error
    return locked


def _status_after_change(status: str) -> str:
    return RowStatus.REVIEW.value if status == RowStatus.APPROVED else status

"""Say under which licence the documents are that rows quote; exports carry it on."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from apps.datasets.models import Dataset, DatasetRow
from apps.datasets.records.columns import record_columns, record_of
from apps.datasets.rows.selectors import RowFilter, row_list
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BATCH, MAX_ROWS, MAX_LICENSE = 500, 20_000, 120


def source_license_set(*, tenant: Tenant, actor: Actor, dataset: Dataset, document: str, licence: str) -> int:
    """Set the licence of a document in every row that quotes it; returns how many rows have changed.

    A row keeps its state: nobody need look again because a licence is known now. One that would become the same as
    another row is left as it is.

    Args:
        document: its name among the sources.
        licence: an SPDX identifier or words; "" for unknown.

    Raises:
        Invalid: no row quotes it, more than ``MAX_ROWS`` do, or the licence is too long.
    """
    actor.require("dataset.write")
    licence = " ".join(licence.split())
    if len(licence) > MAX_LICENSE:
        raise _wrong(
            "license",
            _("A licence can have at most %(max_license)s characters; use its SPDX name.")
            % {"max_license": MAX_LICENSE},
        )
    only = RowFilter(source=document)
    with transaction.atomic():
        Dataset.objects.visible_to(actor).select_for_update().get(pk=dataset.pk)
        rows = row_list(actor=actor, dataset=dataset, only=only) if document else DatasetRow.objects.none()
        ids = list(rows.values_list("pk", flat=True)[: MAX_ROWS + 1])
        if not ids:
            raise _wrong("document", _("No row quotes a document with this name."))
        if len(ids) > MAX_ROWS:
            raise _wrong(
                "document",
                _(
                    "More than %(max_rows)s rows quote this document. Set the licence in an exported file and "
                    "import it."
                )
                % {"max_rows": number_told(MAX_ROWS)},
            )
        changed = sum(
            _batch_write(dataset, ids[start : start + BATCH], document, licence)
            for start in range(0, len(ids), BATCH)
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="dataset.source_license",
            object=dataset,
            data={"document": document[:200], "license": licence, "rows": changed},
        )
    return changed


def _batch_write(dataset: Dataset, ids: list[int], document: str, licence: str) -> int:
    new = {}
    locked = DatasetRow.objects.select_for_update().filter(dataset=dataset, pk__in=ids)
    for row in locked.order_by("pk"):
        record = record_of(row)
        sources = tuple(
            replace(source, license=licence) if source.document == document else source
            for source in record.sources
        )
        if sources != record.sources:
            new[row] = record_columns(replace(record, sources=sources))
    hashes = [columns["content_hash"] for columns in new.values()]
    rows = DatasetRow.objects.filter(dataset=dataset, content_hash__in=hashes)
    taken = set(rows.values_list("content_hash", flat=True))
    ready = []
    for row, columns in new.items():
        if columns["content_hash"] in taken:
            continue
        taken.add(columns["content_hash"])
        row.sources, row.content_hash = columns["sources"], columns["content_hash"]
        row.updated_at = timezone.now()
        ready.append(row)
    DatasetRow.objects.bulk_update(ready, ["sources", "content_hash", "updated_at"])
    return len(ready)


def _wrong(field: str, message: str) -> Invalid:
    return Invalid(f"{field}_wrong", message, data={"fields": {field: [message]}})

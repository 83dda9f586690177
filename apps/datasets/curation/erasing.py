"""What datasets made of an erased document or conversation: rows, in every version, exports, and how they were generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Q

from apps.datasets.models import (
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    DatasetVersion,
    GenerationItem,
    PaidCall,
    RowContent,
    RowReview,
    VersionRow,
)
from basics.texts import gettext_noop
from batches.models import BatchLine
from blobs import services as blobs
from erasure.kinds import Erased
from erasure.reports import KEPT, REMOVED, Report
from tenancy.database.base import as_login_role

_VERSION_WHY = gettext_noop("their hash covers the erased rows as well; the other rows are unchanged")


@dataclass(frozen=True, slots=True)
class DatasetParts:
    """What was made of it.

    Attributes:
        rows: ids of rows.
        contents: ids of contents that versions keep of them.
        items: ids of candidates that were generated.
    """

    rows: frozenset[int]
    contents: frozenset[int]
    items: frozenset[int]


def dataset_parts(erased: Erased) -> DatasetParts:
    """Return the rows, contents and candidates that rest on what is erased."""
    tenant = erased.tenant
    rows, contents = Q(pk__in=()), Q(pk__in=())
    for document in erased.documents:
        rows |= Q(sources__contains=[{"document_id": document}])
        contents |= Q(data__sources__contains=[{"document_id": document}])
    for conversation in erased.conversations:
        rows |= Q(lineage__conversation=conversation)
    rows |= Q(run_id__in=erased.runs)
    items = GenerationItem.objects.filter(tenant=tenant, chunks__overlap=list(erased.passages))
    made = set(items.values_list("pk", flat=True)) if erased.passages else set()
    rows |= Q(pk__in=items.filter(pk__in=made, row_id__isnull=False).values("row_id"))
    found = set(DatasetRow.objects.filter(rows, tenant=tenant).values_list("pk", flat=True))
    made |= set(GenerationItem.objects.filter(tenant=tenant, row_id__in=found).values_list("pk", flat=True))
    kept = VersionRow.objects.filter(tenant=tenant, row_ref__in=found)
    contents |= Q(pk__in=kept.values("content_id"))
    ids = RowContent.objects.filter(contents, tenant=tenant).values_list("pk", flat=True)
    return DatasetParts(frozenset(found), frozenset(ids), frozenset(made))


def datasets_made_erase(erased: Erased) -> Callable[[Report], None]:
    """Return what removes rows that rest on it from datasets and from all their versions."""
    parts = dataset_parts(erased)
    tenant = erased.tenant

    def remove(report: Report) -> None:
        if not (parts.rows or parts.contents or parts.items):
            return
        rows = DatasetRow.objects.filter(tenant=tenant, pk__in=parts.rows)
        members = VersionRow.objects.filter(tenant=tenant, content_id__in=parts.contents)
        versions = set(members.values_list("version_id", flat=True))
        datasets = {
            *rows.values_list("dataset_id", flat=True),
            *RowContent.objects.filter(tenant=tenant, pk__in=parts.contents).values_list(
                "dataset_id", flat=True
            ),
        }
        exports = DatasetExport.objects.filter(tenant=tenant, version_id__in=versions)
        for key in exports.exclude(file="").values_list("file", flat=True):
            blobs.drop(tenant.pk, key)
        report.add("datasets.DatasetExport", REMOVED, exports.delete()[0])
        brought = set(rows.filter(lineage__has_key="import").values_list("lineage__import", flat=True))
        imports = DatasetImport.objects.filter(
            tenant=tenant, pk__in=[n for n in brought if isinstance(n, int)]
        )
        for pair in imports.values_list("file", "errors_file"):
            for key in pair:
                blobs.drop(tenant.pk, key)
        report.add("files of imports", REMOVED, imports.update(file="", errors_file="", problems=[]))
        checks = DatasetCheck.objects.filter(tenant=tenant, dataset_id__in=datasets)
        report.add("datasets.DatasetCheck", REMOVED, checks.delete()[0])
        lines = Q(pk__in=())
        for item in parts.items:
            lines |= Q(owner__startswith="generation:", key__startswith=f"{item}-")
        report.add("batches.BatchLine", REMOVED, BatchLine.objects.filter(lines, tenant=tenant).delete()[0])
        with as_login_role():  # versions, reviews and calls are append-only for everybody else
            calls = PaidCall.objects.filter(tenant=tenant, item_id__in=parts.items)
            report.add("datasets.PaidCall", REMOVED, calls.delete()[0])
            items = GenerationItem.objects.filter(tenant=tenant, pk__in=parts.items)
            report.add("datasets.GenerationItem", REMOVED, items.delete()[0])
            report.add("datasets.VersionRow", REMOVED, members.delete()[0])
            contents = RowContent.objects.filter(tenant=tenant, pk__in=parts.contents)
            report.add("datasets.RowContent", REMOVED, contents.delete()[0])
            reviews = RowReview.objects.filter(tenant=tenant, row_id__in=parts.rows)
            report.add("datasets.RowReview", REMOVED, reviews.delete()[0])
            report.add("datasets.DatasetRow", REMOVED, rows.delete()[0])
        kept = DatasetVersion.objects.filter(tenant=tenant, pk__in=versions).count()
        report.add("datasets.DatasetVersion", KEPT, kept, _VERSION_WHY)

    return remove

"""The retention rule of datasets: those that nobody changed for so long are deleted, unless something uses them."""

from __future__ import annotations

from django.db.models import Exists, F, Max, OuterRef, Q, Subquery
from django.db.models.functions import Greatest
from django.utils.translation import gettext_lazy

from apps.datasets.models import (
    JOB_ACTIVE,
    WORK_ACTIVE,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    DatasetVersion,
    GenerationJob,
    GenerationState,
)
from apps.datasets.rows.dataset_services import dataset_delete
from basics.errors import Conflict
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows, Use
from erasure.uses import numbers_listed
from tenancy.actors import system_actor
from tenancy.models import Tenant


def _last(model: type[DatasetRow] | type[DatasetVersion], column: str) -> Subquery:
    of = model.objects.filter(tenant_id=OuterRef("tenant_id"), dataset=OuterRef("pk")).order_by()
    return Subquery(of.values("dataset").annotate(last=Max(column)).values("last"))


def _rows() -> Rows:
    found: Rows = Dataset.objects.annotate(
        since=Greatest(F("updated_at"), _last(DatasetRow, "updated_at"), _last(DatasetVersion, "created_at")),
        bytes=UNKNOWN_SIZE,
    )
    return found


def _is_generated(tenant_id: int) -> Q:
    jobs = GenerationJob.objects.filter(tenant_id=tenant_id, dataset=OuterRef("pk"))
    return Q(Exists(jobs.filter(state__in=JOB_ACTIVE)))


def _is_worked_on(tenant_id: int) -> Q:
    found = Q()
    for model in (DatasetExport, DatasetImport, DatasetCheck):
        work = model.objects.filter(tenant_id=tenant_id, dataset=OuterRef("pk"))
        found |= Q(Exists(work.filter(status__in=WORK_ACTIVE)))
    return found


def _remove(tenant: Tenant, rows: Rows) -> int:
    """Delete datasets, unless somebody has changed them or begun to use them meanwhile."""
    removed, actor = 0, system_actor(tenant.pk)
    for pk in list(rows.values_list("pk", flat=True)):
        Dataset.objects.select_for_update().filter(tenant=tenant, pk=pk).first()
        row = rows.filter(pk=pk).first()
        if row is None:
            continue
        try:
            dataset_delete(tenant=tenant, actor=actor, dataset=row, action="dataset.expire")
        except Conflict:  # rows began to be generated since we looked
            continue
        removed += 1
    return removed


DATASETS = RetentionKind(
    name="datasets",
    label=gettext_lazy("Datasets"),
    what=gettext_lazy("datasets with rows, versions and exports"),
    since=gettext_lazy("the last change of a row or new version"),
    rows=_rows,
    column="updated_at",
    remove=_remove,
)
GENERATED = Use(gettext_lazy("rows are being generated"), _is_generated)
WORKED_ON = Use(gettext_lazy("an import, export or check is under way"), _is_worked_on)


def _is_asked_about(tenant_id: int) -> Q:
    """Of a document: rows are being generated from its collection, or will be when a paused job continues."""
    jobs = GenerationJob.objects.filter(
        tenant_id=tenant_id, state__in=(*JOB_ACTIVE, GenerationState.PAUSED), options__has_key="collections"
    )
    return Q(collection_id__in=numbers_listed(jobs, "options", "collections"))


DOCUMENTS_ASKED = Use(gettext_lazy("dataset rows are being generated from its collection"), _is_asked_about)

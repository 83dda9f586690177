"""What the side bar says of generations and imports of rows that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.datasets.models import DatasetImport, GenerationJob, GenerationState, WorkStatus
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.finished import Work, finished_source


@finished_source(
    "generation",
    texts={
        GenerationState.COMPLETED: gettext_lazy("Rows generated"),
        GenerationState.PAUSED: gettext_lazy("Generation paused"),
    },
    view="datasets:job",
    key="job_pk",
)
def generations(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Work]:
    """Return generation jobs by the name of their dataset."""
    if not actor.can("dataset.read"):
        return {}
    rows = GenerationJob.objects.visible_to(actor).filter(pk__in=pks).select_related("dataset")
    return {
        row.pk: Work(row.dataset.name, reverse("datasets:job", args=[tenant.slug, row.dataset_id, row.pk]))
        for row in rows
    }


@finished_source(
    "rows",
    texts={
        WorkStatus.COMPLETED: gettext_lazy("Rows imported"),
        WorkStatus.FAILED: gettext_lazy("Import failed"),
    },
    view="datasets:import",
    key="import_pk",
)
def imports(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Work]:
    """Return imports of rows by the name of their dataset."""
    if not actor.can("dataset.read"):
        return {}
    rows = DatasetImport.objects.visible_to(actor).filter(pk__in=pks).select_related("dataset")
    return {
        row.pk: Work(row.dataset.name, reverse("datasets:import", args=[tenant.slug, row.dataset_id, row.pk]))
        for row in rows
    }

"""What people are told of generations and imports of rows that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.datasets.models import DatasetImport, GenerationJob, GenerationState, WorkStatus
from notices.sources import Thing, notice_source
from tenancy.actors import Actor
from tenancy.models import Tenant


@notice_source(
    "generation",
    group="work",
    texts={
        GenerationState.COMPLETED: gettext_lazy("Rows generated"),
        GenerationState.PAUSED: gettext_lazy("Generation paused"),
    },
)
def generations(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return generation jobs by the name of their dataset."""
    if not actor.can("dataset.read"):
        return {}
    rows = GenerationJob.objects.visible_to(actor).filter(pk__in=pks).select_related("dataset")
    return {
        row.pk: Thing(row.dataset.name, reverse("datasets:job", args=[tenant.slug, row.dataset_id, row.pk]))
        for row in rows
    }


@notice_source(
    "rows",
    group="work",
    texts={
        WorkStatus.COMPLETED: gettext_lazy("Rows imported"),
        WorkStatus.FAILED: gettext_lazy("Import failed"),
    },
)
def imports(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return imports of rows by the name of their dataset."""
    if not actor.can("dataset.read"):
        return {}
    rows = DatasetImport.objects.visible_to(actor).filter(pk__in=pks).select_related("dataset")
    return {
        row.pk: Thing(
            row.dataset.name, reverse("datasets:import", args=[tenant.slug, row.dataset_id, row.pk])
        )
        for row in rows
    }

"""What the side bar says of imports that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.collections.models import Import, ImportStatus
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.finished import Work, finished_source


@finished_source(
    "import",
    texts={
        ImportStatus.COMPLETED: gettext_lazy("Import finished"),
        ImportStatus.FAILED: gettext_lazy("Import failed"),
    },
    view="collections:import",
    key="import_pk",
)
def imports(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Work]:
    """Return imports by the name of their collection."""
    if not actor.can("document.write"):
        return {}
    rows = Import.objects.visible_to(actor).filter(pk__in=pks).select_related("collection")
    return {
        row.pk: Work(
            row.collection.name, reverse("collections:import", args=[tenant.slug, row.collection_id, row.pk])
        )
        for row in rows
    }

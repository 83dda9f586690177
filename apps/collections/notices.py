"""What people are told of imports that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.collections.models import Import, ImportStatus
from notices.sources import Thing, notice_source
from tenancy.actors import Actor
from tenancy.models import Tenant


@notice_source(
    "import",
    group="work",
    texts={
        ImportStatus.COMPLETED: gettext_lazy("Import finished"),
        ImportStatus.FAILED: gettext_lazy("Import failed"),
    },
)
def imports(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return imports by the name of their collection."""
    if not actor.can("document.write"):
        return {}
    rows = Import.objects.visible_to(actor).filter(pk__in=pks)
    return {
        row.pk: Thing(
            row.collection.name, reverse("collections:import", args=[tenant.slug, row.collection_id, row.pk])
        )
        for row in rows.select_related("collection")
    }

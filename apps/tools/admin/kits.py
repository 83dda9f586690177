"""Which toolkit a collection has, in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.tools.admin.base import ServiceAdmin
from apps.tools.admin.catalog import ALL
from apps.tools.models import CollectionToolkit
from apps.tools.toolkits.services import collection_toolkit_set
from basics.errors import Conflict
from tenancy.actors import Actor
from tenancy.admin_scope import admin_actor
from tenancy.models import Tenant


@admin.register(CollectionToolkit)
class CollectionToolkitAdmin(ServiceAdmin):
    """Toolkits that conversations over a collection are offered besides, as far as the rules allow."""

    owner_may = ALL
    list_display = ("collection", "toolkit", "created_at")
    list_filter = (("toolkit", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("collection", "toolkit")
    search_fields = ("collection__name", "toolkit__name")
    ordering = ("pk",)
    fields = ("tenant", "collection", "toolkit", "created_at")
    readonly_fields = ("created_at",)
    autocomplete_fields = ("collection", "toolkit")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        return [*fields, "collection"] if obj is not None else fields

    def write(
        self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]
    ) -> CollectionToolkit:
        rows = CollectionToolkit.objects.filter(tenant=tenant)
        collection = row.collection if row is not None else values["collection"]
        if row is None and rows.filter(collection=collection).exists():
            raise Conflict(
                "collection_has_toolkit",
                f"“{collection}” already has a toolkit. Open that entry instead.",
                data={"field": "collection"},
            )
        collection_toolkit_set(
            tenant=tenant,
            actor=admin_actor(request, tenant.pk),
            collection=collection.pk,
            toolkit=values["toolkit"].pk,
        )
        return rows.get(collection=collection)

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        row = CollectionToolkit.objects.get(tenant=tenant, pk=pk)
        collection_toolkit_set(tenant=tenant, actor=actor, collection=row.collection_id, toolkit=None)

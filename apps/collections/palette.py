"""What the command palette finds here: collections and documents by name."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.collections.models import Collection, Document
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.palette import Group, Item, palette_source

_SHOWN = 6


@palette_source("collections", order=20)
def collections(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return collections whose name holds the query, the last changed first."""
    if not actor.can("collection.read"):
        return Group(_("Collections"))
    rows = Collection.objects.visible_to(actor).order_by("-updated_at")
    if query:
        rows = rows.filter(name__icontains=query)
    return Group(
        _("Collections"),
        [
            Item(row.name, reverse("collections:detail", args=[tenant.slug, row.pk]), "library")
            for row in rows.only("pk", "name")[:_SHOWN]
        ],
    )


@palette_source("documents", order=30)
def documents(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return documents whose name holds the query; none without one, they are too many to offer."""
    if not query or not actor.can("collection.read"):
        return Group(_("Documents"))
    rows = (
        Document.objects.visible_to(actor)
        .filter(name__icontains=query, collection__owner=None)
        .select_related("collection")
        .order_by("-created_at")
    )
    return Group(
        _("Documents"),
        [
            Item(
                row.name,
                reverse("collections:document", args=[tenant.slug, row.collection_id, row.pk]),
                "file-text",
                hint=row.collection.name,
            )
            for row in rows.only("pk", "name", "collection__name")[:_SHOWN]
        ],
    )

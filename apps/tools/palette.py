"""What the command palette finds here: tools by name."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.tools.catalog.selectors import Choice, catalog_narrow, catalog_read
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.palette import Group, Item, palette_source

_SHOWN = 6


@palette_source("tools", order=40)
def tools(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return tools that hold the words of the query; none without one, the catalog lists them."""
    if not query or not actor.can("tool.run"):
        return Group(_("Tools"))
    found = catalog_narrow(catalog_read(actor=actor), Choice(q=query))
    return Group(
        _("Tools"),
        [
            Item(t.title, reverse("tools:tool", args=[tenant.slug, t.name]), "wrench", hint=t.source)
            for t in found[:_SHOWN]
        ],
    )

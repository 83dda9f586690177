"""What the command palette finds here: the caller's own conversations by title."""

from __future__ import annotations

from django.urls import reverse

from apps.conversations.models import Conversation
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.palette import Group, Item, palette_source

_SHOWN = 6


@palette_source("conversations", order=10)
def conversations(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return conversations whose title holds the query, the last used first."""
    if not actor.can("conversation.read"):
        return Group("Conversations")
    rows = Conversation.objects.visible_to(actor).order_by("-updated_at")
    if query:
        rows = rows.filter(title__icontains=query)
    return Group(
        "Conversations",
        [
            Item(
                str(row),
                reverse("conversations:detail", args=[tenant.slug, row.pk]),
                "message-square",
            )
            for row in rows.only("pk", "title")[:_SHOWN]
        ],
    )

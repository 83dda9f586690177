"""What the command palette finds here: the caller's own conversations, by what was said in them."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.conversations.models import Conversation
from apps.conversations.transcript.search import conversation_find
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.palette import Group, Item, palette_source

_SHOWN = 6


@palette_source("conversations", order=10)
def conversations(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return conversations that hold the query, with the place where; the last used ones without a query."""
    if not actor.can("conversation.read"):
        return Group(_("Conversations"))

    def item(pk: int, title: str, hint: str = "") -> Item:
        url = reverse("conversations:detail", args=[tenant.slug, pk])
        return Item(title or _("New conversation"), url, "message-square", hint)

    if query:
        found = conversation_find(actor=actor, query=query, most=_SHOWN)
        return Group(_("Conversations"), [item(row.pk, row.title, row.excerpt) for row in found])
    rows = Conversation.objects.visible_to(actor).order_by("-updated_at").only("pk", "title")
    return Group(_("Conversations"), [item(row.pk, row.title) for row in rows[:_SHOWN]])

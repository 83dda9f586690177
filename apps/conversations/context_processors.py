"""The side bar's list of recent conversations, read only when a template shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from apps.conversations.selectors import RECENT, conversation_list


@dataclass(frozen=True, slots=True)
class RecentConversation:
    """A line of the list."""

    title: str
    url: str
    is_active: bool


def recent(request: HttpRequest) -> dict[str, Any]:
    """Return ``recent_conversations`` inside a workspace (one query, when used); nothing elsewhere."""
    actor, tenant = getattr(request, "actor", None), getattr(request, "tenant", None)
    if actor is None or tenant is None or not actor.can("conversation.read"):
        return {}

    def read() -> list[RecentConversation]:
        rows: Any = conversation_list(actor=actor).only("pk", "title")[:RECENT]
        return [
            RecentConversation(
                str(row),
                reverse("conversations:detail", args=[tenant.slug, row.pk]),
                row.is_answering,
            )
            for row in rows
        ]

    return {"recent_conversations": SimpleLazyObject(read)}

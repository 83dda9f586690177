"""The side bar's list of recent conversations, read only when a template shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from apps.conversations.transcript.selectors import BUSY, RECENT, conversation_list, live_state


@dataclass(frozen=True, slots=True)
class RecentConversation:
    """A line of the list."""

    pk: int
    title: str
    url: str
    state: str


def recent(request: HttpRequest) -> dict[str, Any]:
    """Return ``recent_conversations`` and ``is_recent_busy`` inside a workspace (one query, when used); nothing elsewhere."""
    actor, tenant = getattr(request, "actor", None), getattr(request, "tenant", None)
    if actor is None or tenant is None or not actor.can("conversation.read"):
        return {}

    def read() -> list[RecentConversation]:
        rows: Any = conversation_list(actor=actor).only("pk", "title", "seen_at")[:RECENT]
        return [
            RecentConversation(
                row.pk, str(row), reverse("conversations:detail", args=[tenant.slug, row.pk]), live_state(row)
            )
            for row in rows
        ]

    rows = SimpleLazyObject(read)
    return {
        "recent_conversations": rows,
        "is_recent_busy": SimpleLazyObject(lambda: any(c.state in BUSY for c in rows)),
    }

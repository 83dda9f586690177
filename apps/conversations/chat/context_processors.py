"""The side bar's list of recent conversations, read only when a template shows it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from apps.conversations.display.days import DayGroup, days_grouped
from apps.conversations.transcript.selectors import BUSY, RECENT, conversation_list_pinned, live_state
from web.reader_zone import reader_zone


@dataclass(frozen=True, slots=True)
class RecentConversation:
    """A line of the list."""

    pk: int
    title: str
    url: str
    state: str
    is_pinned: bool
    updated_at: datetime.datetime


def recent(request: HttpRequest) -> dict[str, Any]:
    """Return ``recent_conversations`` (groups by day) and ``is_recent_busy`` inside a workspace; nothing elsewhere.

    Reading them is one query, when a template uses them.
    """
    actor, tenant = getattr(request, "actor", None), getattr(request, "tenant", None)
    if actor is None or tenant is None or not actor.can("conversation.read"):
        return {}

    def read() -> list[DayGroup[RecentConversation]]:
        found = conversation_list_pinned(actor=actor)
        rows: Any = found.only("pk", "title", "seen_at", "is_pinned", "updated_at")[:RECENT]
        lines = [
            RecentConversation(
                row.pk,
                str(row),
                reverse("conversations:detail", args=[tenant.slug, row.pk]),
                live_state(row),
                row.is_pinned,
                row.updated_at,
            )
            for row in rows
        ]
        return days_grouped(
            lines,
            used_at=attrgetter("updated_at"),
            is_pinned=attrgetter("is_pinned"),
            zone=reader_zone(request),
        )

    groups = SimpleLazyObject(read)
    return {
        "recent_conversations": groups,
        "is_recent_busy": SimpleLazyObject(lambda: any(c.state in BUSY for g in groups for c in g.rows)),
    }

"""Admin of reads and streams: to look at."""

from __future__ import annotations

from django.contrib import admin

from audit.models import AuditStream, ContentRead
from tenancy.admin_scope import JournalAdmin


@admin.register(ContentRead)
class ContentReadAdmin(JournalAdmin):
    """Who read which contents."""

    list_display = ("at", "kind", "door", "actor_name", "actor_kind", "ip")
    list_filter = ("kind", "actor_kind")
    search_fields = ("door", "actor_name", "=request_id")
    ordering = ("-pk",)


@admin.register(AuditStream)
class AuditStreamAdmin(JournalAdmin):
    """Where audit events are sent; the secret is never shown."""

    hidden_fields = frozenset({"secret_encrypted", "lease"})
    list_display = (
        "kind",
        "url",
        "is_operators",
        "is_enabled",
        "sent_count",
        "last_sent_at",
        "failures",
        "error",
    )
    list_filter = ("kind", "is_enabled", "is_operators")
    ordering = ("-pk",)

"""Admin of batches, to look at: what is with a provider, since when, and whose it is."""

from __future__ import annotations

from django.contrib import admin

from batches.models import Batch, BatchLine
from tenancy.admin_scope import JournalAdmin


@admin.register(Batch)
class BatchAdmin(JournalAdmin):
    """What is out, and what has come back."""

    list_display = (
        "pk",
        "tenant",
        "owner",
        "round",
        "model",
        "state",
        "total",
        "done",
        "failed",
        "user_id",
        "sent_at",
        "looked_at",
        "ended_at",
    )
    list_filter = ("state",)
    list_select_related = ("tenant",)
    search_fields = ("owner", "model", "mark")
    ordering = ("-pk",)


@admin.register(BatchLine)
class BatchLineAdmin(JournalAdmin):
    """Single calls; what they ask and what was answered is not shown."""

    list_display = ("pk", "owner", "key", "model", "state", "tries", "cost_usd", "error_message")
    list_filter = ("state",)
    search_fields = ("owner", "key")
    exclude = ("body", "turn", "context")
    ordering = ("-pk",)

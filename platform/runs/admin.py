"""Runs and their journal in the admin: to look at, for nobody to change."""

from __future__ import annotations

from django.contrib import admin

from runs.models import PendingDecision, Run, RunEvent, RunStep, ToolCall, UsageRecord
from tenancy.admin_scope import JournalAdmin, JournalInline


class ToolCallInline(JournalInline):
    model = ToolCall
    fields = ("step", "name", "status", "duration_ms", "attempts", "started_at")
    readonly_fields = fields


@admin.register(Run)
class RunAdmin(JournalAdmin):
    list_display = (
        "id",
        "kind",
        "model",
        "status",
        "error_code",
        "user",
        "created_at",
        "finished_at",
    )
    list_filter = ("status", "kind", "created_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("=id", "model", "error_code", "error_message")
    date_hierarchy = "created_at"
    inlines = (ToolCallInline,)


@admin.register(ToolCall)
class ToolCallAdmin(JournalAdmin):
    list_display = (
        "name",
        "run",
        "step",
        "status",
        "error_code",
        "attempts",
        "duration_ms",
        "started_at",
    )
    list_filter = ("status", "has_side_effects", "name", "started_at")
    list_select_related = ("run",)
    search_fields = ("name", "call_id", "=run__id")


@admin.register(RunStep)
class RunStepAdmin(JournalAdmin):
    list_display = ("run", "index", "created_at")
    list_select_related = ("run",)
    search_fields = ("=run__id",)


@admin.register(RunEvent)
class RunEventAdmin(JournalAdmin):
    list_display = ("run", "seq", "kind", "at")
    list_filter = ("kind",)
    list_select_related = ("run",)
    search_fields = ("=run__id",)


@admin.register(PendingDecision)
class PendingDecisionAdmin(JournalAdmin):
    list_display = ("name", "run", "step", "status", "decided_by", "created_at", "expires_at")
    list_filter = ("status", "kind", "name", "created_at")
    list_select_related = ("run", "decided_by")
    search_fields = ("name", "call_id", "=run__id")
    hidden_fields = frozenset({"state"})


@admin.register(UsageRecord)
class UsageRecordAdmin(JournalAdmin):
    list_display = (
        "at",
        "kind",
        "provider",
        "model",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "cost_usd",
        "user_id",
        "run_id",
    )
    list_filter = ("kind", "provider", "model", "at")
    search_fields = ("=run_id", "=user_id", "model")
    date_hierarchy = "at"

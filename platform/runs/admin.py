"""Runs and their journal in the admin: to look at, for nobody to change."""

from __future__ import annotations

from django.contrib import admin

from runs.models import Run, RunEvent, RunStep, ToolCall
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

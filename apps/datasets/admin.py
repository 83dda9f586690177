"""Datasets in the admin: to look at; rows are changed in the portal, where the rules for reviews hold."""

from __future__ import annotations

from django.contrib import admin

from apps.datasets.models import (
    Acceptance,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    DatasetVersion,
    GenerationItem,
    GenerationJob,
    PaidCall,
    RowReview,
)
from tenancy.admin_scope import JournalAdmin, JournalInline


class RowReviewInline(JournalInline):
    model = RowReview
    fields = ("user", "verdict", "note", "at")
    readonly_fields = fields


class DatasetVersionInline(JournalInline):
    model = DatasetVersion
    fields = ("number", "row_count", "content_hash", "note", "created_at")
    readonly_fields = fields


@admin.register(Dataset)
class DatasetAdmin(JournalAdmin):
    list_display = ("name", "slug", "needs_two_people", "created_at", "updated_at")
    search_fields = ("name", "slug")
    inlines = (DatasetVersionInline,)


@admin.register(DatasetRow)
class DatasetRowAdmin(JournalAdmin):
    list_display = ("question", "dataset", "type", "difficulty", "status", "split", "quality")
    list_filter = ("status", "type", "difficulty", "split")
    list_select_related = ("dataset",)
    search_fields = ("question",)
    inlines = (RowReviewInline,)


@admin.register(GenerationJob)
class GenerationJobAdmin(JournalAdmin):
    list_display = ("id", "dataset", "model", "state", "wanted", "kept", "dropped", "failed")
    list_filter = ("state",)
    list_select_related = ("dataset",)
    search_fields = ("dataset__name",)


@admin.register(GenerationItem)
class GenerationItemAdmin(JournalAdmin):
    list_display = ("id", "job", "slot", "round", "type", "difficulty", "state", "reason")
    list_filter = ("state", "type")
    search_fields = ("=job__id", "reason")


@admin.register(PaidCall)
class PaidCallAdmin(JournalAdmin):
    list_display = ("id", "item", "stage", "attempt", "step", "cost_usd", "duration_ms", "at")
    list_filter = ("stage",)
    search_fields = ("=item__id", "=job__id")


@admin.register(DatasetExport)
class DatasetExportAdmin(JournalAdmin):
    list_display = ("id", "dataset", "version", "format", "split", "status", "rows", "created_at")
    list_filter = ("status", "format")
    list_select_related = ("dataset", "version")
    search_fields = ("dataset__name",)


@admin.register(DatasetImport)
class DatasetImportAdmin(JournalAdmin):
    list_display = ("id", "dataset", "name", "format", "is_trial", "status", "created", "failed")
    list_filter = ("status", "format", "is_trial")
    list_select_related = ("dataset",)
    search_fields = ("name", "dataset__name")


@admin.register(DatasetCheck)
class DatasetCheckAdmin(JournalAdmin):
    list_display = ("id", "dataset", "kind", "status", "created_by", "created_at", "finished_at")
    list_filter = ("kind", "status")
    list_select_related = ("dataset", "created_by")
    search_fields = ("dataset__name",)


@admin.register(Acceptance)
class AcceptanceAdmin(JournalAdmin):
    list_display = ("kind", "shown", "dataset", "note", "user", "at")
    list_filter = ("kind",)
    list_select_related = ("dataset", "user")
    search_fields = ("shown", "note", "dataset__name")

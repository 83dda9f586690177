"""Assistants in the admin: to look at, to archive and to restore. They are edited on their pages and through the API."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.conversations.assistants import services
from apps.conversations.models import Assistant, AssistantCollection, AssistantHelper, AssistantVersion
from tenancy.admin_scope import JournalAdmin, JournalInline


class VersionInline(JournalInline):
    model = AssistantVersion
    fields = ("number", "mode", "model", "note", "created_by", "created_at")
    readonly_fields = fields
    ordering = ("-number",)


class ScopeInline(JournalInline):
    model = AssistantCollection
    fields = ("collection",)
    readonly_fields = fields


class HelperInline(JournalInline):
    model = AssistantHelper
    fields = ("assistant",)
    readonly_fields = fields


@admin.register(Assistant)
class AssistantAdmin(JournalAdmin):
    """Assistants with their versions."""

    list_display = ("name", "slug", "published", "created_at", "archived_at")
    list_filter = (("archived_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("published",)
    search_fields = ("name", "slug", "description")
    inlines = (VersionInline,)
    actions = ("archive", "restore")

    @admin.action(description="Archive: no one can choose it")
    def archive(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: services.assistant_archive(tenant=tenant, actor=actor, assistant=row),
            "archived",
        )

    @admin.action(description="Restore what was archived")
    def restore(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.each(
            request,
            queryset.select_related("tenant"),
            lambda tenant, actor, row: services.assistant_restore(tenant=tenant, actor=actor, assistant=row),
            "restored",
        )


@admin.register(AssistantVersion)
class AssistantVersionAdmin(JournalAdmin):
    """What an assistant was at some time; never changed."""

    list_display = ("assistant", "number", "mode", "model", "output", "created_at")
    list_filter = ("mode", "output", "created_at")
    list_select_related = ("assistant",)
    search_fields = ("assistant__name", "assistant__slug", "prompt", "note")
    inlines = (ScopeInline, HelperInline)

"""Admin of erasures, legal holds and retention rules: to look at. They are asked for, placed and set in the portal or by command."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from erasure.models import Erasure, LegalHold, RetentionRule
from tenancy.admin_scope import JournalAdmin, is_operator


@admin.register(LegalHold)
class LegalHoldAdmin(JournalAdmin):
    list_display = ("reason", "placed_at", "released_at")
    list_filter = ("placed_at",)
    ordering = ("-pk",)


@admin.register(RetentionRule)
class RetentionRuleAdmin(JournalAdmin):
    list_display = ("kind", "days", "starts_at", "removed", "removed_at", "updated_at")
    list_filter = ("kind",)
    ordering = ("-pk",)


@admin.register(Erasure)
class ErasureAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """All erasures of this server with their reports; for its operator alone."""

    list_display = ("kind", "subject", "state", "requested_at", "due_at", "ended_at", "detail")
    list_filter = ("kind", "state")
    ordering = ("-pk",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_operator(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_operator(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

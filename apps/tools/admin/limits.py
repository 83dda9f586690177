"""How often tools may be called, in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from apps.tools.admin.base import ServiceAdmin
from apps.tools.admin.catalog import ALL, TOOL_NAME
from apps.tools.limits.services import tool_limit_remove, tool_limit_set
from apps.tools.models import ToolLimit, ToolLimitUse
from tenancy.actors import Actor
from tenancy.admin_scope import JournalInline, admin_actor
from tenancy.models import Tenant

_ABOUT = ("kind", "user", "api_key", "target_kind", "target", "period")


class LimitForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = ToolLimit
        fields = ("tenant", *_ABOUT, "calls")
        widgets = {"target": TOOL_NAME}
        labels = {"kind": "Whose calls", "target_kind": "Calls of", "target": "Name"}
        help_texts = {
            "user": "One member; empty for each.",
            "api_key": "One key; empty for each.",
            "period": "In UTC.",
        }


class UseInline(JournalInline):
    model = ToolLimitUse
    fields = ("subject", "used", "starts_at")
    readonly_fields = fields
    show_change_link = False


@admin.register(ToolLimit)
class ToolLimitAdmin(ServiceAdmin):
    """Limits of tool calls: of one caller, some tools and a period. Only their number changes; another one is a new limit."""

    owner_may = ALL
    form = LimitForm
    list_display = ("kind", "user", "api_key", "target_kind", "target", "period", "calls")
    list_filter = ("kind", "target_kind", "period")
    list_select_related = ("user", "api_key")
    search_fields = ("target",)
    ordering = ("kind", "target_kind", "target", "pk")
    fields = ("tenant", *_ABOUT, "calls", "created_at")
    readonly_fields = ("created_at",)
    autocomplete_fields = ("user", "api_key")
    inlines = (UseInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        return [*fields, *_ABOUT] if obj is not None else fields

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> ToolLimit:
        about: dict[str, Any] = (
            {name: getattr(row, name) for name in _ABOUT}
            if row is not None
            else {name: values[name] for name in _ABOUT}
        )
        for name in ("user", "api_key"):
            about[name] = about[name].pk if about[name] is not None else None
        return tool_limit_set(
            tenant=tenant, actor=admin_actor(request, tenant.pk), **about, calls=values["calls"]
        )

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        tool_limit_remove(tenant=tenant, actor=actor, pk=pk)

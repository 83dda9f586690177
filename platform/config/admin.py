"""Pages that packages bring to the admin and that would reach around our own rules: closed, or ours in their place.

``config`` is the last of INSTALLED_APPS, so that the packages have registered theirs by now.
"""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.mfa.base.internal.flows import delete_dangling_recovery_codes
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest

# A scheduled task names any function and its arguments: an operator's stolen session would run code on the server.
# What the queue does is told by our own jobs.
for _model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)
admin.site.unregister(Group)  # rights are those of a role in a workspace; nothing reads groups
admin.site.unregister(Authenticator)


@admin.register(Authenticator)
class AuthenticatorAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Second factors: the operator sees who has one, and takes away one that was lost. Its secret is not shown."""

    list_display = ("user", "type", "called", "created_at", "last_used_at")
    list_filter = ("type", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("-created_at",)
    fields: ClassVar[Any] = ("user", "type", "called", "created_at", "last_used_at")
    readonly_fields = ("called",)

    @admin.display(description="name")
    def called(self, row: Authenticator) -> str:
        """Return how the person calls a passkey; other factors have no name."""
        return str(row.data.get("name", ""))

    def delete_model(self, request: HttpRequest, obj: Authenticator) -> None:
        """Remove a factor; recovery codes go with the last one, or they would still be asked for."""
        super().delete_model(request, obj)
        delete_dangling_recovery_codes(obj.user)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove the chosen factors, as above."""
        people = [row.user for row in queryset.select_related("user")]
        super().delete_queryset(request, queryset)
        for person in people:
            delete_dangling_recovery_codes(person)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup.split("__", 1)[0] != "data" and super().lookup_allowed(lookup, value, request)

"""Admin of webhooks: to look at and to switch off; made in the API, where the secret can be shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tenancy.admin_scope import JournalAdmin, admin_actor
from webhooks import services
from webhooks.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(JournalAdmin):
    """Webhooks; the secret is never shown."""

    hidden_fields = frozenset({"secret_encrypted", "previous_secret_encrypted"})
    list_display = ("url", "description", "is_enabled", "updated_at")
    list_filter = ("is_enabled",)
    search_fields = ("url", "description")
    ordering = ("-pk",)
    actions = ("switch_off",)

    @admin.action(description="Switch the selected webhooks off")
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset.select_related("tenant"):
            services.webhook_update(
                tenant=row.tenant,
                actor=admin_actor(request, row.tenant_id),
                pk=row.pk,
                values={"is_enabled": False},
            )


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(JournalAdmin):
    """What was sent to webhooks."""

    list_display = ("event", "webhook", "object_key", "status", "attempts", "response_status", "created_at")
    list_filter = ("status", "event")
    list_select_related = ("webhook",)
    search_fields = ("object_key", "event_id")
    ordering = ("-pk",)

"""Reads of webhooks and their log."""

from __future__ import annotations

from django.db.models import QuerySet

from basics.errors import Missing
from tenancy.actors import Actor
from webhooks.models import Webhook, WebhookDelivery


def webhook_list(*, actor: Actor) -> QuerySet[Webhook]:
    """Return the workspace's webhooks without their secrets, newest first."""
    actor.require("webhook.manage")
    rows: QuerySet[Webhook] = Webhook.objects.visible_to(actor)
    return rows.defer("secret_encrypted", "previous_secret_encrypted").order_by("-pk")


def webhook_get(*, actor: Actor, pk: int) -> Webhook:
    """Return one webhook. Raises Missing."""
    row = webhook_list(actor=actor).filter(pk=pk).first()
    if row is None:
        raise Missing("webhook")
    return row


def delivery_list(*, actor: Actor, webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return what was sent to a webhook, and what came of it, newest first."""
    rows: QuerySet[WebhookDelivery] = WebhookDelivery.objects.visible_to(actor)
    return rows.filter(webhook=webhook).order_by("-pk")

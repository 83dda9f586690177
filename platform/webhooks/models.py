"""Who is told about what, and what came of each attempt to tell them."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from tenancy.fields import TenantForeignKey, ToldCharField
from tenancy.models import TenantModel


class Event(models.TextChoices):
    """What a webhook can be told about. The values are part of the API."""

    RUN_FINISHED = "run.finished"
    APPROVAL_NEEDED = "approval.needed"
    INGESTION_FINISHED = "ingestion.finished"
    INGESTION_FAILED = "ingestion.failed"
    BUDGET_WARNED = "budget.warned"
    BUDGET_EXCEEDED = "budget.exceeded"
    PING = "ping"


SUBSCRIBABLE = tuple(event for event in Event if event != Event.PING)


class Webhook(TenantModel):
    """An address that is called about events. The secret signs the calls; it is encrypted and shown once.

    After a rotation the secret before signs as well for a while, so that a receiver can change over.
    """

    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)
    secret_encrypted = models.BinaryField()
    previous_secret_encrypted = models.BinaryField(null=True)
    rotated_at = models.DateTimeField(null=True)
    is_enabled = models.BooleanField(default=True)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="Events in a row that could not be delivered; a delivered one resets it."
    )
    disabled_at = models.DateTimeField(
        null=True, help_text="When it was switched off after repeated failures."
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.url


class DeliveryStatus(models.TextChoices):
    QUEUED = "queued"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(TenantModel):
    """One event for one webhook: written with the event, sent by a job, kept as a log.

    ``event_id`` is the same for all deliveries of one event, redeliveries too: receivers know repetitions by it.
    """

    webhook = TenantForeignKey(Webhook, related_name="deliveries", db_index=False)
    event_id = models.UUIDField(default=uuid.uuid4)
    event = models.CharField(max_length=40, choices=Event.choices)
    object_key = models.CharField(max_length=80)
    payload = models.JSONField()
    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    response_status = models.PositiveSmallIntegerField(null=True)
    error = ToldCharField(max_length=300, blank=True)
    duration_ms = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    attempted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=DeliveryStatus.values), name="delivery_status_known"
            )
        ]
        indexes = [
            models.Index(fields=["webhook", "-id"], name="delivery_log"),
            models.Index(
                fields=["webhook", "object_key", "id"],
                condition=models.Q(status="queued"),
                name="delivery_waiting",
            ),
            models.Index(fields=["created_at"], name="delivery_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} #{self.pk} ({self.status})"

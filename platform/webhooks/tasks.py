"""The job that sends an event: at least once, and after the earlier events of the same object."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from basics.errors import Missing
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import ExpectedFailure, job
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.outgoing import outgoing_policy
from webhooks.models import DeliveryStatus, Event, WebhookDelivery
from webhooks.sending import DeliveryResult, webhook_send
from webhooks.services import JOB_KIND, delivery_failed, delivery_repeat, delivery_succeeded, webhook_secrets

MAX_ATTEMPTS = 10  # deaths of the worker apart; with the backoff of jobs: over about half an hour


class NotDelivered(ExpectedFailure):
    """The receiver did not take an event; the job is tried again later."""


def delivery_given_up(ended: Job) -> None:
    """Say in the log that a delivery is not tried any more."""
    delivery_failed(tenant_id=ended.tenant_id, delivery_pk=ended.payload["delivery_id"])


def delivery_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Send what was given up, as a delivery of its own. Raises Missing, Conflict."""
    old = WebhookDelivery.objects.filter(pk=failed.payload["delivery_id"]).first()
    if old is None:
        raise Missing("delivery")
    delivery_repeat(tenant=tenant, actor=actor, pk=old.webhook_id, delivery_pk=old.pk)


@job(JOB_KIND, lane="loop", max_attempts=MAX_ATTEMPTS, on_end=delivery_given_up, on_retry=delivery_again)
async def deliver(ctx: JobContext, delivery_id: int) -> None:
    """Send a delivery, after those of the same webhook and object that wait before it."""
    for pk in await ctx.in_db(_waiting, delivery_id):
        ctx.check()
        error = await ctx.blocking(lambda pk=pk: _attempt(pk))  # type: ignore[misc]
        if error:
            raise NotDelivered(f"delivery {pk}: {error}")
        if ctx.deaths:
            await ctx.in_db(_advanced, ctx)


def _advanced(ctx: JobContext) -> None:
    with transaction.atomic():
        ctx.advanced()


def _waiting(delivery_id: int) -> list[int]:
    own = WebhookDelivery.objects.filter(pk=delivery_id, status=DeliveryStatus.QUEUED).first()
    if own is None:  # delivered before a crash, or its webhook was deleted
        return []
    before = WebhookDelivery.objects.filter(
        webhook_id=own.webhook_id, object_key=own.object_key, status=DeliveryStatus.QUEUED, pk__lte=own.pk
    )
    return list(before.order_by("pk").values_list("pk", flat=True))


def _attempt(pk: int) -> str:
    """Make one call and write down what came of it; returns the error, "" when it was delivered."""
    row = (
        WebhookDelivery.objects.select_related("webhook").filter(pk=pk, status=DeliveryStatus.QUEUED).first()
    )
    if row is None:
        return ""
    hook = row.webhook
    if not hook.is_enabled and row.event != Event.PING:
        WebhookDelivery.objects.filter(pk=pk).update(
            status=DeliveryStatus.FAILED, error=_("The webhook was switched off.")
        )
        return ""
    try:
        secrets = webhook_secrets(hook)
    except crypto.DecryptionError:
        outcome = DeliveryResult(None, _("The webhook's secret can no longer be read. Create a new one."), 0)
    else:
        outcome = webhook_send(
            url=hook.url,
            secrets=secrets,
            payload=row.payload,
            policy=outgoing_policy(row.tenant_id),
        )
    with transaction.atomic():
        WebhookDelivery.objects.filter(pk=pk, status=DeliveryStatus.QUEUED).update(
            status=DeliveryStatus.QUEUED if outcome.error else DeliveryStatus.DELIVERED,
            attempts=F("attempts") + 1,
            response_status=outcome.status,
            error=outcome.error,
            duration_ms=outcome.duration_ms,
            attempted_at=timezone.now(),
        )
        if not outcome.error:
            delivery_succeeded(row)
    return outcome.error

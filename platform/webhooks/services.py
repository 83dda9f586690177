"""Manage webhooks, and put events into their outbox in the transaction of what happened."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from basics.errors import Conflict, Invalid, Missing
from basics.net_policy import AddressRefused, url_check
from basics.texts import gettext as _
from jobs.services import job_enqueue
from tenancy import crypto
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.outgoing import outgoing_policy
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from webhooks.models import SUBSCRIBABLE, DeliveryStatus, Event, Webhook, WebhookDelivery
from webhooks.signing import secret_make

JOB_KIND = "webhooks.deliver"
PURPOSE = "webhook"
MAX_WEBHOOKS = 20
MAX_FAILURES = 10
"""A webhook is switched off when so many events in a row were given up."""
ROTATION_HOURS = 24
"""How long the secret before signs beside a new one."""
LOG_DAYS = 30
# By hand, and ids alone: every run ends with it, and most workspaces have no webhook.
_WANTED = "SELECT id FROM webhooks_webhook WHERE tenant_id = %s AND is_enabled AND events ? %s"


@transaction.atomic
def webhook_create(
    *, tenant: Tenant, actor: Actor, url: str, events: Sequence[str], description: str = ""
) -> tuple[Webhook, str]:
    """Add a webhook; returns it with its secret, which is shown this once.

    Raises:
        Denied: without the right.
        Invalid: the address may not be called, an event is unknown, or there are ``MAX_WEBHOOKS`` already.
    """
    actor.require("webhook.manage")
    row = Webhook(tenant=tenant)
    _fill(row, {"url": url, "events": events, "description": description})
    with tenant_scope(tenant.pk):
        if Webhook.objects.filter(tenant=tenant).count() >= MAX_WEBHOOKS:
            raise Invalid(
                "webhooks_full",
                _("There are already %(most)s webhooks. Remove one first.") % {"most": MAX_WEBHOOKS},
            )
        secret = secret_make()
        row.secret_encrypted = crypto.encrypt(secret, tenant_id=tenant.pk, purpose=PURPOSE)
        row.save()
        row.refresh_from_db()
        _audit(tenant, actor, "webhook.create", row)
    return row, secret


@transaction.atomic
def webhook_update(*, tenant: Tenant, actor: Actor, pk: int, values: Mapping[str, Any]) -> Webhook:
    """Change address, events, description or whether it is enabled; what ``values`` lacks stays.

    Raises:
        Denied, Missing, Invalid: see ``webhook_create``.
    """
    actor.require("webhook.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, pk)
        _fill(row, values)
        row.save()
        _audit(tenant, actor, "webhook.update", row)
    return row


@transaction.atomic
def webhook_delete(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a webhook with its log; what is still in its outbox is not sent."""
    actor.require("webhook.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, pk)
        _audit(tenant, actor, "webhook.delete", row)
        row.delete()


@transaction.atomic
def webhook_secret_rotate(*, tenant: Tenant, actor: Actor, pk: int) -> tuple[Webhook, str]:
    """Give a webhook a new secret; returns it with the secret, which is shown this once.

    The one before signs as well for ``ROTATION_HOURS``; rotated again within them, the one before that ends at once.

    Raises:
        Denied, Missing: without the right; no such webhook.
    """
    actor.require("webhook.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, pk)
        secret = secret_make()
        row.previous_secret_encrypted = row.secret_encrypted
        row.secret_encrypted = crypto.encrypt(secret, tenant_id=tenant.pk, purpose=PURPOSE)
        row.rotated_at = timezone.now()
        row.save()
        _audit(tenant, actor, "webhook.rotate", row)
    return row, secret


def webhook_secrets(row: Webhook) -> list[crypto.Secret]:
    """Return what signs the calls of a webhook now, the newest first.

    Raises:
        DecryptionError: one cannot be read any more.
    """
    kept = [row.secret_encrypted]
    changed = row.rotated_at
    if row.previous_secret_encrypted is not None and changed is not None and changed > _rotation_start():
        kept.append(row.previous_secret_encrypted)
    return [crypto.decrypt(one, tenant_id=row.tenant_id, purpose=PURPOSE) for one in kept]


def _rotation_start() -> datetime:
    return timezone.now() - timedelta(hours=ROTATION_HOURS)


@transaction.atomic
def webhook_ping(*, tenant: Tenant, actor: Actor, pk: int) -> WebhookDelivery:
    """Send a test event, also to a webhook that is not enabled."""
    actor.require("webhook.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, pk)
        _audit(tenant, actor, "webhook.ping", row)
        return _outbox(row, actor, Event.PING, uuid.uuid4(), f"webhook:{row.pk}", {"webhook": row.pk})


@transaction.atomic
def delivery_repeat(*, tenant: Tenant, actor: Actor, pk: int, delivery_pk: int) -> WebhookDelivery:
    """Send an event again, as a delivery of its own with the same event id.

    Raises:
        Denied, Missing: without the right; no such delivery of this webhook.
        Conflict: ``delivery_queued``, it is still being sent.
    """
    actor.require("webhook.manage")
    with tenant_scope(tenant.pk):
        row = _locked(tenant, pk)
        old = WebhookDelivery.objects.filter(tenant=tenant, webhook=row, pk=delivery_pk).first()
        if old is None:
            raise Missing("delivery")
        if old.status == DeliveryStatus.QUEUED:
            raise Conflict("delivery_queued", _("This event is still being sent. Wait until it is finished."))
        _audit(tenant, actor, "webhook.redeliver", row, {"delivery": old.pk})
        return _outbox(row, actor, old.event, old.event_id, old.object_key, old.payload["data"])


def webhooks_wanting(event: Event) -> str:
    """Return what a statement in a workspace's scope asks to know whether ``webhook_emit`` has anything to do."""
    return (
        "EXISTS (SELECT FROM webhooks_webhook w WHERE w.tenant_id = own_tenant() AND w.is_enabled "
        f"AND w.events ? '{event.value}')"
    )


def webhook_emit(*, tenant_id: int, event: Event, object_key: str, data: Mapping[str, Any]) -> int:
    """Put an event into the outbox of every webhook that wants it, in the transaction of what happened.

    Args:
        object_key: what it is about, for example ``run:12``; events of one object are sent in order.
        data: ids and states, JSON-serialisable. Receivers read the rest by REST, with rights of their own.

    Returns:
        How many webhooks will be told.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WANTED, [tenant_id, event.value])
        wanted = [pk for (pk,) in cursor.fetchall()]
    if not wanted:
        return 0
    rows = Webhook.objects.filter(tenant_id=tenant_id, pk__in=wanted).select_related("tenant").order_by("pk")
    event_id = uuid.uuid4()
    for row in rows:
        _outbox(row, system_actor(tenant_id), event, event_id, object_key, data)
    return len(rows)


def delivery_failed(*, tenant_id: int, delivery_pk: int) -> None:
    """Say that a delivery was given up; after ``MAX_FAILURES`` in a row its webhook is switched off."""
    with transaction.atomic():
        own = WebhookDelivery.objects.filter(tenant_id=tenant_id, pk=delivery_pk)
        if not own.filter(status=DeliveryStatus.QUEUED).update(status=DeliveryStatus.FAILED):
            return
        hooks = Webhook.objects.select_for_update(of=("self",)).select_related("tenant")
        row = hooks.get(tenant_id=tenant_id, deliveries__pk=delivery_pk)
        row.failures += 1
        is_off = row.is_enabled and row.failures >= MAX_FAILURES
        if is_off:
            row.is_enabled, row.disabled_at = False, timezone.now()
        row.save(update_fields=["failures", "is_enabled", "disabled_at"])
        if is_off:
            _audit(row.tenant, system_actor(tenant_id), "webhook.disable", row, {"failures": row.failures})


def delivery_succeeded(row: WebhookDelivery) -> None:
    """End the count of failures of a webhook that has taken an event."""
    Webhook.objects.filter(pk=row.webhook_id, failures__gt=0).update(failures=0)


def rotations_end() -> int:
    """Forget former secrets whose rotation is over; returns how many."""
    with platform_scope():
        rows = Webhook.objects.filter(
            rotated_at__lt=_rotation_start(), previous_secret_encrypted__isnull=False
        )
        count: int = rows.update(previous_secret_encrypted=None)
        return count


def _outbox(
    row: Webhook, actor: Actor, event: str, event_id: uuid.UUID, object_key: str, data: Mapping[str, Any]
) -> WebhookDelivery:
    payload = {
        "id": str(event_id),
        "type": str(event),
        "workspace": row.tenant.slug,
        "timestamp": timezone.now().isoformat(),
        "data": dict(data),
    }
    delivery: WebhookDelivery = WebhookDelivery.objects.create(
        tenant_id=row.tenant_id,
        webhook=row,
        event=event,
        event_id=event_id,
        object_key=object_key,
        payload=payload,
    )
    job_enqueue(tenant=row.tenant, actor=actor, kind=JOB_KIND, payload={"delivery_id": delivery.pk})
    delivery.refresh_from_db()
    return delivery


def _locked(tenant: Tenant, pk: int) -> Webhook:
    rows = Webhook.objects.select_for_update(of=("self",)).select_related("tenant")
    row = rows.filter(tenant=tenant, pk=pk).first()
    if row is None:
        raise Missing("webhook")
    return row


def _fill(row: Webhook, values: Mapping[str, Any]) -> None:
    if "url" in values:
        try:
            row.url = str(url_check(str(values["url"]).strip(), outgoing_policy(row.tenant_id)))
        except AddressRefused as error:
            raise _wrong("url", error.message) from error
    if "events" in values:
        events = list(dict.fromkeys(values["events"]))
        unknown = [e for e in events if e not in SUBSCRIBABLE]
        if unknown or not events:
            raise _wrong("events", _("Choose from: %(events)s.") % {"events": ", ".join(SUBSCRIBABLE)})
        row.events = events
    if "description" in values:
        row.description = str(values["description"]).strip()[:200]
    if "is_enabled" in values:
        row.is_enabled = bool(values["is_enabled"])
        if row.is_enabled:
            row.failures, row.disabled_at = 0, None


def _wrong(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"fields": {field: [message]}})


def _audit(
    tenant: Tenant, actor: Actor, action: str, row: Webhook, data: dict[str, Any] | None = None
) -> None:
    facts = {"url": row.url, "events": row.events, "is_enabled": row.is_enabled, **(data or {})}
    audit_record(tenant=tenant, actor=actor, action=action, object=row, data=facts)

"""The retention rule of webhook deliveries: at most ``LOG_DAYS``, and shorter where a workspace chooses so."""

from __future__ import annotations

from django.db.models import F
from django.utils.translation import gettext_lazy

from erasure.removal import ended_remove
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows
from webhooks.models import DeliveryStatus, WebhookDelivery
from webhooks.services import LOG_DAYS

STEP = 1000


def _rows() -> Rows:
    ended = WebhookDelivery.objects.exclude(status=DeliveryStatus.QUEUED)
    found: Rows = ended.annotate(since=F("created_at"), bytes=UNKNOWN_SIZE)
    return found


DELIVERIES = RetentionKind(
    name="deliveries",
    label=gettext_lazy("Webhook deliveries"),
    what=gettext_lazy("the log of events sent to webhooks"),
    since=gettext_lazy("the event"),
    rows=_rows,
    column="created_at",
    remove=ended_remove,
    default_days=lambda: LOG_DAYS,
    longest_days=lambda: LOG_DAYS,
    step=STEP,
    batch=STEP,
)

"""What a workspace says about all its conversations: how long they are kept, and whether a model names them.

A conversation whose time is over is deleted with its turns and runs. What it cost stays, and so does the audit trail.
"""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.conversations.models import Conversation, ConversationRules, Turn
from apps.conversations.services import conversation_remove
from basics.errors import Invalid
from runs.retention import MOST_DAYS
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

BATCH = 50
EVERY_S = 300.0
_next = 0.0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold.

    Attributes:
        own_days: the workspace's own number of days, 0 for ever, None where the server's default holds.
    """

    own_days: int | None
    makes_titles: bool

    @property
    def days(self) -> int:
        """After how many days without a question a conversation is deleted; 0 for never."""
        return int(settings.CONVERSATION_DAYS) if self.own_days is None else self.own_days


def rules_get(tenant: Tenant) -> Rules:
    """Return a workspace's rules of conversations."""
    row = ConversationRules.objects.filter(tenant=tenant).first()
    return Rules(None, True) if row is None else Rules(row.keep_days, row.makes_titles)


def rules_set(*, tenant: Tenant, actor: Actor, days: int | None, makes_titles: bool) -> Rules:
    """Set a workspace's rules; days None goes back to the server's default. What is deleted is gone for good.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: not from 0 (for ever) to ten years.
    """
    actor.require("tenant.manage")
    if days is not None and not 0 <= days <= MOST_DAYS:
        raise Invalid("invalid", f"Give 0 to {MOST_DAYS:,} days.", data={"field": "keep_days"})
    with transaction.atomic():
        before = rules_get(tenant)
        row, _ = ConversationRules.objects.update_or_create(
            tenant=tenant, defaults={"keep_days": days, "makes_titles": makes_titles}
        )
        audit_record(
            tenant=tenant, actor=actor, action="conversations.rules", object=row,
            data={
                "before": {"days": before.own_days, "titles": before.makes_titles},
                "after": {"days": days, "titles": makes_titles},
            },
        )  # fmt: skip
    return Rules(days, makes_titles)


def conversations_sweep() -> int:
    """Delete conversations whose time is over; returns how many. Each process looks every five minutes."""
    global _next
    now = time.monotonic()
    if now < _next:
        return 0
    found = conversations_expire()
    _next = now if found >= BATCH else now + EVERY_S  # A long backlog goes on with the next round.
    return found


def conversations_expire() -> int:
    """Delete up to ``BATCH`` conversations of each workspace that keeps them no longer; returns how many."""
    own = ConversationRules.objects.filter(tenant=OuterRef("pk")).values("keep_days")
    with platform_scope():
        tenants = Tenant.objects.annotate(days=Coalesce(Subquery(own), settings.CONVERSATION_DAYS))
        due = list(tenants.filter(days__gt=0))
    return sum(_expire(tenant, tenant.days) for tenant in due)


def _expire(tenant: Tenant, days: int) -> int:
    before = timezone.now() - datetime.timedelta(days=days)
    active = Turn.objects.filter(conversation=OuterRef("pk"), is_active=True)
    with tenant_scope(tenant.pk):
        old = Conversation.objects.filter(~Exists(active), tenant=tenant, updated_at__lt=before)
        pks = list(old.order_by("updated_at").values_list("pk", flat=True)[:BATCH])
        return sum(_delete(tenant, pk, before) for pk in pks)


def _delete(tenant: Tenant, pk: int, before: datetime.datetime) -> int:
    """Delete one conversation in a transaction of its own, unless somebody has asked in it meanwhile."""
    with transaction.atomic():
        rows = Conversation.objects.select_for_update(skip_locked=True)
        row = rows.filter(tenant=tenant, pk=pk, updated_at__lt=before).first()
        if row is None or Turn.objects.filter(conversation=row, is_active=True).exists():
            return 0
        actor = system_actor(tenant.pk)
        audit_record(tenant=tenant, actor=actor, action="conversation.expire", object=row)
        conversation_remove(tenant, actor, row)
    return 1

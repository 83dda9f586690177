"""What a workspace says about all its conversations: how long they are kept, whether a model names them, which one checks them.

A conversation whose time is over is deleted with its turns and runs. What it cost stays, and so does the audit trail.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from types import EllipsisType

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.db.models import BigIntegerField, Count, Exists, F, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone
from django.utils.translation import gettext_lazy

from apps.conversations.models import Attachment, Conversation, ConversationRules, Turn
from apps.conversations.turns.conversations import conversation_remove
from basics.errors import DomainError, Invalid
from basics.texts import gettext as _
from erasure.retention import MOST_DAYS, RetentionKind, Rows, Use, due_rows, retention_rules_set
from runs.providers import is_extractive, provider_for
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BATCH = 50


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold.

    Attributes:
        own_days: the workspace's own number of days, 0 for ever, None where the server's default holds.
    """

    own_days: int | None
    makes_titles: bool
    support_model: str = ""

    @property
    def days(self) -> int:
        """After how many days without a question a conversation is deleted; 0 for never."""
        return int(settings.CONVERSATION_DAYS) if self.own_days is None else self.own_days


def rules_get(tenant: Tenant) -> Rules:
    """Return a workspace's rules of conversations."""
    row = ConversationRules.objects.filter(tenant=tenant).first()
    if row is None:
        return Rules(None, True)
    return Rules(row.keep_days, row.makes_titles, row.support_model)


def rules_set(
    *,
    tenant: Tenant,
    actor: Actor,
    days: int | EllipsisType | None = ...,
    makes_titles: bool | None = None,
    support_model: str | None = None,
) -> Rules:
    """Set a workspace's rules.

    Args:
        days: set as ``erasure.retention.retention_rules_set`` does, None for the server's default; left out, they stay.
        makes_titles: None leaves it as it is.
        support_model: the model that checks each answer against its sources again, "" for none; None leaves it.

    Raises:
        Denied: without the right ``retention.manage``.
        Invalid: not from 0 (for ever) to ten years, or a model that cannot be asked here.
    """
    actor.require("retention.manage")
    _model_checked(tenant, support_model)
    with transaction.atomic():
        if not isinstance(days, EllipsisType):
            _checked(days)
            retention_rules_set(tenant=tenant, actor=actor, changes={CONVERSATIONS.name: days})
        before = rules_get(tenant)
        after = replace(
            before,
            makes_titles=before.makes_titles if makes_titles is None else makes_titles,
            support_model=before.support_model if support_model is None else support_model,
        )
        if after != before:
            row, _ = ConversationRules.objects.update_or_create(
                tenant=tenant,
                defaults={"makes_titles": after.makes_titles, "support_model": after.support_model},
            )
            audit_record(
                tenant=tenant,
                actor=actor,
                action="conversations.rules",
                object=row,
                data={
                    name: {"titles": rules.makes_titles, "support_model": rules.support_model}
                    for name, rules in (("before", before), ("after", after))
                },
            )
    return after


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule would delete now.

    Attributes:
        days: the rule, 0 for none.
        count: conversations.
        users: whose they are, how many people.
        oldest_at: when in the oldest of them the last question was asked; None without any.
    """

    days: int
    count: int
    users: int
    oldest_at: datetime.datetime | None


def rules_preview(*, tenant: Tenant, actor: Actor, days: int | None) -> Preview:
    """Tell what would be deleted by a rule of so many days, None for the server's default; nothing is changed.

    Raises:
        Denied: without the right ``audit.read``.
        Invalid: as ``rules_set``.
    """
    actor.require("audit.read")
    _checked(days)
    days = int(settings.CONVERSATION_DAYS) if days is None else days
    if not days:
        return Preview(0, 0, 0, None)
    before = timezone.now() - datetime.timedelta(days=days)
    found = due_rows(CONVERSATIONS, tenant.pk, before).aggregate(
        count=Count("pk"), users=Count("user_id", distinct=True), oldest_at=Min("updated_at")
    )
    return Preview(days, **found)


def _checked(days: int | None) -> None:
    if days is not None and not 0 <= days <= MOST_DAYS:
        raise Invalid(
            "invalid",
            _("Give 0 to %(days)s days.") % {"days": intcomma(MOST_DAYS)},
            data={"field": "keep_days"},
        )


def _model_checked(tenant: Tenant, model: str | None) -> None:
    if not model:
        return
    problem = ""
    if len(model) > 120 or not model.isprintable():
        problem = _("A model's name has at most 120 characters.")
    elif is_extractive(model):
        problem = _("Choose a language model. This one only quotes documents.")
    else:
        try:
            provider_for(tenant, model)
        except DomainError as error:
            problem = error.message
    if problem:
        raise Invalid(
            "invalid", problem, data={"field": "support_model", "fields": {"support_model": [problem]}}
        )


def _rows() -> Rows:
    files = (
        Attachment.objects.filter(tenant_id=OuterRef("tenant_id"), conversation=OuterRef("pk"))
        .order_by()
        .values("conversation")
    )
    size = Subquery(files.annotate(bytes=Sum("size")).values("bytes"), output_field=BigIntegerField())
    found: QuerySet[Conversation] = Conversation.objects.annotate(since=F("updated_at"), bytes=size)
    return found


def _is_active(tenant_id: int) -> Q:
    active = Turn.objects.filter(tenant_id=tenant_id, conversation=OuterRef("pk"), is_active=True)
    return Q(Exists(active))


def _remove(tenant: Tenant, rows: Rows) -> int:
    """Delete conversations, unless somebody has asked in them meanwhile."""
    removed, actor = 0, system_actor(tenant.pk)
    for row in rows.select_for_update(skip_locked=True, of=("self",)):
        if Turn.objects.filter(tenant=tenant, conversation=row, is_active=True).exists():
            continue  # begun between our look and our lock
        audit_record(tenant=tenant, actor=actor, action="conversation.expire", object=row)
        conversation_remove(tenant, actor, row)
        removed += 1
    return removed


def _put(tenant: Tenant, days: int | None) -> None:
    ConversationRules.objects.update_or_create(tenant=tenant, defaults={"keep_days": days})


CONVERSATIONS = RetentionKind(
    name="conversations",
    label=gettext_lazy("Conversations"),
    what=gettext_lazy("whole conversations with their runs and attached files"),
    since=gettext_lazy("the last question"),
    rows=_rows,
    column="updated_at",
    remove=_remove,
    default_days=lambda: int(settings.CONVERSATION_DAYS),
    batch=BATCH,
    own=lambda: ConversationRules.objects.filter(keep_days__isnull=False).values_list("keep_days", flat=True),
    put=_put,
)
UNDER_WAY = Use(gettext_lazy("an answer is under way"), _is_active)

"""Writes of what somebody types, and of what they have seen. They say nothing about anybody's doings: no audit."""

from __future__ import annotations

from django.utils import timezone

from apps.conversations.models import Conversation
from apps.conversations.transcript.locks import MAX_TEXT
from basics.errors import Missing
from basics.line_ends import line_ends
from tenancy.actors import Actor
from tenancy.models import Tenant


def draft_set(*, tenant: Tenant, actor: Actor, conversation: Conversation, text: str) -> None:
    """Keep what is typed and not sent, cut where a question must end. Raises Missing."""
    actor.require("conversation.write")
    rows = Conversation.objects.visible_to(actor).filter(tenant=tenant, pk=conversation.pk)
    if not rows.update(draft=line_ends(text.replace("\x00", ""))[:MAX_TEXT]):
        raise Missing("conversation")


def conversation_seen(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> None:
    """Note that its owner has it open: what it says by now is no news."""
    Conversation.objects.visible_to(actor).filter(tenant=tenant, pk=conversation.pk).update(
        seen_at=timezone.now()
    )

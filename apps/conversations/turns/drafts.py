"""Writes of what somebody types, and of what they have seen. They say nothing about anybody's doings: no audit."""

from __future__ import annotations

import uuid

from django.db import connection, transaction
from django.utils import timezone

from apps.conversations.models import Conversation
from apps.conversations.transcript.locks import MAX_TEXT, OWN, conversation_locked
from basics.line_ends import line_ends
from tenancy.actors import Actor
from tenancy.models import Tenant

_SEEN = f"UPDATE conversations_conversation c SET seen_at = %s WHERE {OWN}"  # noqa: S608 - conditions


def draft_set(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, text: str, client_id: uuid.UUID | None = None
) -> None:
    """Keep what is typed and not sent, cut where a question must end.

    Args:
        client_id: of the question that it is about to be. Once that is asked, a draft that comes late changes nothing.

    Raises:
        Missing: there is no such conversation of the actor's.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)  # a question that is being asked holds it
        if client_id is not None and _is_asked(row, client_id):
            return
        row.draft = line_ends(text.replace("\x00", ""))[:MAX_TEXT]
        row.save(update_fields=["draft"])


def _is_asked(row: Conversation, client_id: uuid.UUID) -> bool:
    """Tell whether a question of this id was asked, or waits to be."""
    return row.turns.filter(client_id=client_id).exists() or row.queued.filter(client_id=client_id).exists()


def conversation_seen(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> None:
    """Note that its owner has it open: what it says by now is no news."""
    if actor.collections is not None:
        rows = Conversation.objects.visible_to(actor).filter(tenant=tenant, pk=conversation.pk)
        rows.update(seen_at=timezone.now())
        return
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, [timezone.now(), actor.tenant_id, actor.user_id, conversation.pk])

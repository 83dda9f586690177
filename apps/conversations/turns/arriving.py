"""Conversations of a workspace that was imported: no turn is being answered, and none waits to be deleted."""

from __future__ import annotations

from apps.conversations.models import Conversation, Turn
from apps.conversations.turns.conversations import conversation_remove
from exports.moves import Arrival
from tenancy.actors import system_actor


def conversations_arrived(arrival: Arrival) -> None:
    """Close the turns whose runs have ended with the move, and delete for good what was deleted when the file was made.

    In the transaction of the import. The job that would have deleted them has stayed behind, and so has its undo.
    """
    tenant = arrival.tenant
    Turn.objects.filter(tenant=tenant, is_active=True).update(is_active=False)
    for row in Conversation.objects.filter(tenant=tenant, removed_at__isnull=False):
        conversation_remove(tenant, system_actor(tenant.pk), row)

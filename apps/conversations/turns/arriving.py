"""Conversations of a workspace that was imported: no turn is being answered, and none waits to be deleted."""

from __future__ import annotations

from apps.conversations.models import Conversation, Picture, Turn
from apps.conversations.turns.conversations import conversation_remove
from basics.pictures import CleanPicture, picture_matches
from exports.moves import Arrival
from exports.renumbering import refused
from tenancy.actors import system_actor


def conversations_arrived(arrival: Arrival) -> None:
    """Close the turns whose runs have ended with the move, and delete for good what was deleted when the file was made.

    In the transaction of the import. The job that would have deleted them has stayed behind, and so has its undo.

    Raises:
        Invalid: ``import_refused``, a picture isn't of the type or size that its row says. Pages and documents rely on it.
    """
    tenant = arrival.tenant
    for picture in Picture.objects.filter(tenant=tenant).iterator(chunk_size=10):
        content = bytes(picture.content)
        if not picture_matches(CleanPicture(content, picture.media_type, picture.width, picture.height)):
            raise refused("a picture isn't of the type or size that its row says")
    Turn.objects.filter(tenant=tenant, is_active=True).update(is_active=False)
    for row in Conversation.objects.filter(tenant=tenant, removed_at__isnull=False):
        conversation_remove(tenant, system_actor(tenant.pk), row)

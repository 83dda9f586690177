"""Reads of pictures: for whoever may read the answer that they are in, and all that it rests on."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import QuerySet

from apps.conversations.models import Conversation, Picture
from apps.conversations.transcript.shown import conversation_withheld
from basics.errors import Missing
from tenancy.actors import Actor


def picture_get(*, actor: Actor, conversation: Conversation, pk: int) -> Picture:
    """Return a picture of a conversation that was read for the actor, or whose link was.

    Raises:
        Missing: there is none, or the conversation rests on a document that the actor may not read: what of that a picture
            shows, nobody can tell.
    """
    actor.require("conversation.read")
    found: Picture | None = _of(actor, conversation).filter(pk=pk).first()
    if found is None or conversation_withheld(actor, conversation.pk):
        raise Missing("picture")
    return found


def pictures_read(*, actor: Actor, conversation: Conversation, pks: Collection[int]) -> dict[int, Picture]:
    """Return pictures by their numbers, for a document that is handed on; as ``picture_get``."""
    if not pks or conversation_withheld(actor, conversation.pk):
        return {}
    return _of(actor, conversation).in_bulk(list(pks))


def _of(actor: Actor, conversation: Conversation) -> QuerySet[Picture]:
    rows: QuerySet[Picture] = Picture.objects.visible_to(actor).filter(
        run__in=conversation.turns.filter(tenant_id=actor.tenant_id).values("run_id")
    )
    return rows

"""Reads of a person's memory, and of what a model is told of it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet

from apps.conversations.models import ConversationRules, MemoryEntry, MemorySetting
from basics.errors import Missing
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class Memory:
    """How a person's memory stands.

    Attributes:
        is_on: the person has switched it on.
        is_allowed: the workspace allows memory; where it doesn't, no model is told of any note.
        count: how many notes there are.
    """

    is_on: bool
    is_allowed: bool
    count: int


@dataclass(frozen=True, slots=True)
class Told:
    """What a model is told besides the assistant's own instructions.

    Attributes:
        instructions: the workspace's, "" for none.
        notes: the asker's own, oldest first; None where their memory is off, or nobody's.
    """

    instructions: str = ""
    notes: tuple[str, ...] | None = None


_TOLD = """
SELECT (SELECT instructions FROM conversations_conversationrules WHERE tenant_id = %(tenant)s),
    EXISTS (SELECT FROM conversations_memorysetting WHERE tenant_id = %(tenant)s AND user_id = %(person)s AND is_on)
        AND NOT EXISTS (SELECT FROM conversations_conversationrules WHERE tenant_id = %(tenant)s AND NOT allows_memory),
    (SELECT array_agg(text ORDER BY id) FROM conversations_memoryentry WHERE tenant_id = %(tenant)s AND user_id = %(person)s)
"""


def told_of(tenant_id: int, actor: Actor | None = None) -> Told:
    """Return what a model is told, by the state of this moment; one statement.

    Args:
        actor: who asks, if a conversation of theirs is answered. Of a key, which others may hold, nobody's notes are told.
    """
    person = actor.user_id if actor is not None and _is_person(actor) else None
    with connection.cursor() as cursor:
        cursor.execute(_TOLD, {"tenant": tenant_id, "person": person})
        instructions, is_on, notes = cursor.fetchone()
    return Told(instructions or "", tuple(notes or ()) if is_on else None)


def is_remembering(actor: Actor) -> bool:
    """Tell whether this person's memory may be used and added to at this moment."""
    is_on = MemorySetting.objects.visible_to(actor).filter(is_on=True).exists()
    return is_on and memory_allowed(actor.tenant_id) and _is_person(actor)


def memory_allowed(tenant_id: int) -> bool:
    """Tell whether a workspace allows memory."""
    return not ConversationRules.objects.filter(tenant_id=tenant_id, allows_memory=False).exists()


def memory_get(*, actor: Actor) -> Memory:
    """Return how the actor's memory stands. Raises Denied."""
    actor.require("memory.use")
    return Memory(
        is_on=MemorySetting.objects.visible_to(actor).filter(is_on=True).exists(),
        is_allowed=memory_allowed(actor.tenant_id),
        count=MemoryEntry.objects.visible_to(actor).count(),
    )


def entry_list(*, actor: Actor) -> QuerySet[MemoryEntry]:
    """Return the actor's notes with the questions they were said in, newest first. Raises Denied."""
    actor.require("memory.use")
    rows: QuerySet[MemoryEntry] = MemoryEntry.objects.visible_to(actor)
    return rows.select_related("turn").order_by("-pk")


def entry_get(*, actor: Actor, pk: int) -> MemoryEntry:
    """Return one of the actor's notes. Raises Denied, Missing."""
    found = entry_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("note")
    return found


def _is_person(actor: Actor) -> bool:
    return actor.kind == "user" and actor.can("memory.use")

"""Reads of a person's memory, and of what a model is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


def told_columns(tenant: str, person: str) -> str:
    """Return the columns that ``told_take`` reads, of a workspace and a person as the statement around them names these."""
    rules = f"conversations_conversationrules k WHERE k.tenant_id = {tenant}"
    return f"""
    (SELECT k.instructions FROM {rules}),
    EXISTS (SELECT FROM conversations_memorysetting s WHERE s.tenant_id = {tenant} AND s.user_id = {person} AND s.is_on)
        AND NOT EXISTS (SELECT FROM {rules} AND NOT k.allows_memory),
    (SELECT array_agg(e.text ORDER BY e.id) FROM conversations_memoryentry e WHERE e.tenant_id = {tenant} AND e.user_id = {person})
"""  # noqa: S608 - names of columns and parameters


def told_take(values: Iterator[Any], *, is_asker: bool) -> Told:
    """Return what a model is told from the next three values of a row, in the order of ``told_columns``.

    Args:
        is_asker: the person of the columns asks; nobody else is told their notes.
    """
    instructions, is_on, notes = next(values), next(values), next(values)
    return Told(instructions or "", tuple(notes or ()) if is_on and is_asker else None)


def told_of(tenant_id: int) -> Told:
    """Return what a model is told that answers no person's own question: the instructions, and nobody's notes."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {told_columns('%s', 'NULL')}", [tenant_id] * 4)
        return told_take(iter(cursor.fetchone()), is_asker=False)


def asks_in_person(actor: Actor, person: int | None) -> bool:
    """Tell whether an actor is this very person, signed in: an API key, which others may hold, is nobody."""
    return _is_person(actor) and actor.user_id == person


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

"""Writes of a person's memory. The audit trail keeps that something was done, and never what a note says."""

from __future__ import annotations

from django.db import transaction

from apps.conversations.memory.selectors import is_remembering, memory_allowed
from apps.conversations.models import MemoryEntry, MemorySetting, Turn
from apps.conversations.models.memory import MAX_ENTRY
from apps.conversations.transcript.locks import advisory_lock
from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_ENTRIES = 100
_JOINERS = "\u200c\u200d"
"""Characters that don't show and are part of words in some scripts, and of emoji."""


def memory_switch(*, tenant: Tenant, actor: Actor, is_on: bool) -> None:
    """Switch the actor's memory on or off; their notes stay.

    Raises:
        Denied: without the right ``memory.use``, or for a key.
        Conflict: ``memory_forbidden``, the workspace doesn't allow it; switching off always works.
    """
    person = _person(actor)
    with transaction.atomic():
        if is_on:
            _allowed_require(tenant)
        row = MemorySetting.objects.filter(tenant=tenant, user_id=person).first()
        if (row is not None and row.is_on) == is_on:
            return
        row, _made = MemorySetting.objects.update_or_create(
            tenant=tenant, user_id=person, defaults={"is_on": is_on}
        )
        audit_record(tenant=tenant, actor=actor, action="memory.switch", object=row, data={"is_on": is_on})


def entry_add(*, tenant: Tenant, actor: Actor, text: str) -> MemoryEntry:
    """Add a note; one with these words that is there already is returned instead.

    Raises:
        Denied: without the right ``memory.use``, or for a key.
        Conflict: ``memory_forbidden``; ``memory_full``.
        Invalid: the text is empty or too long.
    """
    return _add(tenant, actor, _text_checked(text), None)[0]


def entry_remember(*, tenant: Tenant, actor: Actor, turn: Turn, text: str) -> tuple[MemoryEntry, bool]:
    """Add a note that a model has made of what its person said in ``turn``; see ``entry_add``.

    Returns:
        The note, and whether it is new.

    Raises:
        Conflict: ``memory_off`` as well, the person has switched it off, or the workspace forbids it.
    """
    if not is_remembering(actor):
        raise Conflict("memory_off", _("Memory is switched off."))
    return _add(tenant, actor, _text_checked(text), turn)


def _add(tenant: Tenant, actor: Actor, text: str, turn: Turn | None) -> tuple[MemoryEntry, bool]:
    person = _person(actor)
    with transaction.atomic():
        _allowed_require(tenant)
        advisory_lock(f"memory:{tenant.pk}:{person}")  # two of them must not both be the hundredth
        mine = MemoryEntry.objects.filter(tenant=tenant, user_id=person)
        known = mine.filter(text__iexact=text).first()
        if known is not None:
            return known, False
        if mine.count() >= MAX_ENTRIES:
            raise Conflict(
                "memory_full",
                _("There are already %(most)s notes. Delete one first.") % {"most": MAX_ENTRIES},
            )
        row: MemoryEntry = MemoryEntry.objects.create(
            tenant=tenant, user_id=person, text=text, turn=turn, by_model=turn is not None
        )
        data = {"by_model": row.by_model}
        audit_record(tenant=tenant, actor=actor, action="memory.add", object=row, data=data)
    return row, True


def entry_change(*, tenant: Tenant, actor: Actor, pk: int, text: str) -> MemoryEntry:
    """Change what a note says.

    Raises:
        Denied, Invalid: as ``entry_add``.
        Conflict: ``memory_forbidden``.
        Missing: there is no such note of the actor's.
    """
    person, text = _person(actor), _text_checked(text)
    with transaction.atomic():
        _allowed_require(tenant)
        row = _locked(tenant, person, pk)
        if row.text != text:
            row.text = text
            row.save(update_fields=["text", "updated_at"])
            audit_record(tenant=tenant, actor=actor, action="memory.change", object=row)
    return row


def entry_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Delete a note, also where memory is forbidden. Raises Denied, Missing."""
    person = _person(actor)
    with transaction.atomic():
        row = _locked(tenant, person, pk)
        audit_record(tenant=tenant, actor=actor, action="memory.remove", object=row)
        row.delete()


def memory_erase(*, tenant: Tenant, actor: Actor) -> int:
    """Delete all notes of the actor's in the workspace, and return how many there were. Raises Denied."""
    person = _person(actor)
    with transaction.atomic():
        count, _rows = MemoryEntry.objects.filter(tenant=tenant, user_id=person).delete()
        if count:
            audit_record(tenant=tenant, actor=actor, action="memory.erase", data={"count": count})
    return count


def _person(actor: Actor) -> int:
    """Return whose memory it is. Raises Denied."""
    actor.require("memory.use")
    if actor.kind != "user" or actor.user_id is None:
        raise Denied("person_needed", _("Only the person themselves can use their memory."))
    return actor.user_id


def _locked(tenant: Tenant, person: int, pk: int) -> MemoryEntry:
    rows = MemoryEntry.objects.select_for_update(of=("self",))
    row: MemoryEntry | None = rows.filter(tenant=tenant, user_id=person, pk=pk).first()
    if row is None:
        raise Missing("note")
    return row


def _allowed_require(tenant: Tenant) -> None:
    if not memory_allowed(tenant.pk):
        raise Conflict(
            "memory_forbidden",
            _(
                "This workspace doesn't allow memory. You can still delete your notes. Ask an admin to allow it."
            ),
        )


def _text_checked(text: str) -> str:
    """Return a note as it is stored: one line of what shows. Raises Invalid."""
    shown = "".join(c for c in " ".join(text.split()) if c.isprintable() or c in _JOINERS).strip()
    problem = ""
    if not shown:
        problem = _("The note is empty. Write what to keep in mind.")
    elif len(shown) > MAX_ENTRY:
        problem = _("A note has at most %(most)s characters; this one has %(length)s.") % {
            "most": MAX_ENTRY,
            "length": len(shown),
        }
    if problem:
        raise Invalid("invalid", problem, data={"field": "text", "fields": {"text": [problem]}})
    return shown

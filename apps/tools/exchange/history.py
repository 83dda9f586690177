"""The history of entries, toolkits, rules and sources, read from the audit trail: what was stated before and after.

There is no second table to keep in step: an event is written in the transaction of its change, nobody can alter it, and
its chain of hashes can be verified.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.models import AuditEvent

# kind of object -> the actions that state something about one
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "tools.toolentry": ("tool_entry.set", "tool_entry.delete"),
    "tools.toolkit": ("toolkit.set", "toolkit.delete"),
    "tools.toolgrant": ("tool_grant.create", "tool_grant.delete"),
    "tools.toolsource": ("tool_source.create", "tool_source.update", "tool_source.delete"),
}
_VERBS = {"create": "made", "delete": "removed"}
MAX_CHAIN = 50


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that a change touched, as text."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One change of one object.

    Attributes:
        event: id of the audit event.
        kind: as in ``ACTIONS``.
        verb: made, changed or removed.
        fields: what differs; empty when the event keeps no state.
        state: what can be brought back: what held after the change, of a removal what held before.
    """

    event: int
    kind: str
    object_id: str
    object_name: str
    at: datetime
    who: str
    verb: str
    fields: tuple[FieldChange, ...]
    state: Mapping[str, Any] | None


def change_list(*, actor: Actor, kind: str, object_id: str = "", name: str = "") -> list[ObjectChange]:
    """Return the changes of one kind of object, newest first; at most 200.

    Args:
        kind: as in ``ACTIONS``.
        object_id: only of this object, and of those whose place it took.
        name: only of objects of this name, which may have been removed and made again.

    Raises:
        Denied: without the right ``tool.manage``.
    """
    rows = _events(actor, kind)
    if object_id:
        rows = rows.filter(object_id__in=_chain(rows, object_id))
    if name:
        rows = rows.filter(object_name=name)
    return [_change(row) for row in rows.order_by("-pk")[:200]]


def change_get(*, actor: Actor, event: int) -> ObjectChange:
    """Return one change. Raises Denied; Missing when there is no such event, or it is about something else."""
    for kind in ACTIONS:
        row = _events(actor, kind).filter(pk=event).first()
        if row is not None:
            return _change(row)
    raise Missing("change")


def successor(*, actor: Actor, grant: str) -> str:
    """Return the id of the rule that has taken the place of another by now, its own if none has."""
    rows = _events(actor, "tools.toolgrant").filter(action="tool_grant.create")
    for _ in range(MAX_CHAIN):
        found = rows.filter(data__replaces=int(grant)).order_by("-pk").first()
        if found is None:
            break
        grant = found.object_id
    return grant


def fields_changed(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> tuple[FieldChange, ...]:
    """Return the fields in which two states differ, in the order of the later one."""
    old, new = before or {}, after or {}
    names: Iterable[str] = dict.fromkeys((*new, *old))
    return tuple(
        FieldChange(name, _text(old.get(name)), _text(new.get(name)))
        for name in names
        if _text(old.get(name)) != _text(new.get(name))
    )


def _events(actor: Actor, kind: str) -> QuerySet[AuditEvent]:
    actor.require("tool.manage")
    rows: QuerySet[AuditEvent] = AuditEvent.objects.visible_to(actor)
    return rows.filter(object_type=kind, action__in=ACTIONS[kind])


def _chain(rows: QuerySet[AuditEvent], ident: str) -> list[str]:
    """Return an object's id and, of a rule, the ids of those it replaced."""
    chain = [ident]
    while len(chain) < MAX_CHAIN:
        made = rows.filter(object_id=chain[-1], data__replaces__isnull=False).first()
        if made is None or made.data["replaces"] is None:
            break
        chain.append(str(made.data["replaces"]))
    return chain


def _change(row: AuditEvent) -> ObjectChange:
    before, after = row.data.get("before"), row.data.get("after")
    verb = row.action.rpartition(".")[2]
    state = before if verb == "delete" else after
    return ObjectChange(
        event=row.pk,
        kind=row.object_type,
        object_id=row.object_id,
        object_name=row.object_name,
        at=row.at,
        who=row.actor_name or row.actor_kind,
        verb=_VERBS.get(verb, "made" if before is None and after is not None else "changed"),
        fields=fields_changed(before, after),
        state=state,
    )


def _text(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

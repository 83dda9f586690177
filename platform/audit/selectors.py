"""A workspace's audit log: as a list to filter, and with its reads as one stream that can be followed from any place in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from typing import Any

from django.db.models import QuerySet

from audit.models import AuditStream, ContentRead
from audit.names import ShownEvents
from audit.ocsf import event_ocsf, read_ocsf
from audit.reads import reads_number, reads_unnumbered
from basics.errors import Denied, Invalid
from tenancy.actors import Actor
from tenancy.models import AuditEvent, Tenant
from tenancy.permissions import OWNER, ROLE_ACTIONS
from tenancy.scope import tenant_scope

_CURSOR = re.compile(r"e(\d{1,18})r(\d{1,18})")
MOST_EVENTS = 500


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """How far a reader is: the positions of the last audit event and of the last read that it has."""

    event_seq: int = 0
    read_seq: int = 0

    @property
    def cursor(self) -> str:
        """As text, for REST."""
        return f"e{self.event_seq}r{self.read_seq}"

    @classmethod
    def of(cls, cursor: str) -> StreamPlace:
        """Return the place that a text names, "" for the beginning. Raises Invalid."""
        if not cursor:
            return cls()
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise Invalid(
                "invalid",
                "This isn't a cursor. Use the one from the last answer, or leave it out to start at the first event.",
                data={"fields": {"after": ["Not a cursor."]}},
            )
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The next events in OCSF, and the place after them."""

    events: list[dict[str, Any]]
    place: StreamPlace
    has_more: bool


def stream_batch(
    tenant: Tenant, after: StreamPlace, *, most: int, has_reads: bool = True, reader: Actor | None
) -> StreamBatch:
    """Return what comes after a place: audit events in the order of their chain, reads in theirs, both by time.

    Args:
        most: events at once.
        has_reads: with reads of contents.
        reader: who gets them; names that they may not see are left out, with the facts of such an act. None for the
            operator, who may see all.
    """
    with tenant_scope(tenant.pk):
        if has_reads and reads_unnumbered(tenant.pk):
            reads_number(tenant.pk)
        acts: QuerySet[AuditEvent] = (
            AuditEvent.objects.all() if reader is None else ShownEvents.of(AuditEvent, reader)
        )
        events = list(acts.filter(tenant=tenant, seq__gt=after.event_seq).order_by("seq")[: most + 1])
        reads: list[ContentRead] = []
        if has_reads:
            rows = ContentRead.objects.filter(tenant=tenant, seq__gt=after.read_seq)
            reads = list(rows.order_by("seq")[: most + 1])
    mixed: list[Any] = list(merge(events, reads, key=_moment))
    event_seq, read_seq, told = after.event_seq, after.read_seq, []
    for row in mixed[:most]:
        if isinstance(row, AuditEvent):
            event_seq = row.seq or event_seq
            told.append(event_ocsf(row, slug=tenant.slug))
        else:
            read_seq = row.seq or read_seq
            told.append(read_ocsf(row, slug=tenant.slug))
    return StreamBatch(told, StreamPlace(event_seq, read_seq), len(mixed) > most)


def _moment(row: Any) -> datetime:
    at: datetime = row.at
    return at


def owners_reader(tenant_id: int) -> Actor:
    """Return whom a workspace's own stream is read as: an owner who is nobody in particular, so nobody's own names."""
    return Actor("user", tenant_id, ROLE_ACTIONS[OWNER], role=OWNER, name="audit stream")


def events_after(*, tenant: Tenant, actor: Actor, cursor: str, most: int) -> StreamBatch:
    """Return the events after a cursor, for a reader with the right ``audit.read``.

    Raises:
        Denied: without it, or with a key that is limited to some collections.
        Invalid: not a cursor.
    """
    actor.require("audit.read")
    if actor.collections is not None:
        raise Denied(
            "key_limited", "This key is limited to some collections. Use one for the whole workspace."
        )
    return stream_batch(tenant, StreamPlace.of(cursor), most=min(most, MOST_EVENTS), reader=actor)


def audit_list(
    *, actor: Actor, action: str = "", user_id: int | None = None, object_type: str = ""
) -> QuerySet[AuditEvent]:
    """Return the workspace's audit trail, newest first.

    Args:
        action: one action ("key.create") or all of a noun ("key.").
    """
    actor.require("audit.read")
    events: QuerySet[AuditEvent] = ShownEvents.of(AuditEvent, actor)
    if action.endswith("."):
        events = events.filter(action__startswith=action)
    elif action:
        events = events.filter(action=action)
    if user_id is not None:
        events = events.filter(user_id=user_id)
    if object_type:
        events = events.filter(object_type=object_type)
    return events.order_by("-at", "-pk")


def audit_actions(*, actor: Actor) -> list[str]:
    """Return the actions that occur in the newest 2,000 events, by name, to filter by."""
    recent = audit_list(actor=actor).values_list("action", flat=True)[:2000]
    return sorted(set(recent))


def stream_list(*, actor: Actor) -> QuerySet[AuditStream]:
    """Return the workspace's own streams; the operator's are not shown. Raises Denied."""
    actor.require("tenant.manage")
    rows: QuerySet[AuditStream] = AuditStream.objects.visible_to(actor)
    return rows.filter(is_operators=False).defer("secret_encrypted").order_by("pk")

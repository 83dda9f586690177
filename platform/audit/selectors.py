"""A workspace's audit events and reads as one stream that can be followed from any place in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from heapq import merge
from typing import Any

from django.db.models import QuerySet

from audit.models import AuditStream, ContentRead
from audit.ocsf import event_ocsf, read_ocsf
from audit.reads import reads_number, reads_unnumbered
from basics.errors import Invalid
from tenancy.actors import Actor
from tenancy.models import AuditEvent, Tenant
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
                "This isn't a cursor. Use the one of the last answer, or leave it out to begin at the first event.",
                data={"fields": {"after": ["Not a cursor."]}},
            )
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The next events in OCSF, and the place after them."""

    events: list[dict[str, Any]]
    place: StreamPlace
    has_more: bool


def stream_batch(tenant: Tenant, after: StreamPlace, *, most: int, has_reads: bool = True) -> StreamBatch:
    """Return what comes after a place: audit events in the order of their chain, reads in theirs, both by time.

    Args:
        most: events at once.
        has_reads: with reads of contents.
    """
    with tenant_scope(tenant.pk):
        if has_reads and reads_unnumbered(tenant.pk):
            reads_number(tenant.pk)
        events = list(
            AuditEvent.objects.filter(tenant=tenant, seq__gt=after.event_seq).order_by("seq")[: most + 1]
        )
        reads: list[ContentRead] = []
        if has_reads:
            rows = ContentRead.objects.filter(tenant=tenant, seq__gt=after.read_seq)
            reads = list(rows.order_by("seq")[: most + 1])
    mixed: list[Any] = list(merge(events, reads, key=lambda row: row.at))
    event_seq, read_seq, told = after.event_seq, after.read_seq, []
    for row in mixed[:most]:
        if isinstance(row, AuditEvent):
            event_seq = row.seq or event_seq
            told.append(event_ocsf(row, slug=tenant.slug))
        else:
            read_seq = row.seq or read_seq
            told.append(read_ocsf(row, slug=tenant.slug))
    return StreamBatch(told, StreamPlace(event_seq, read_seq), len(mixed) > most)


def events_after(*, tenant: Tenant, actor: Actor, cursor: str, most: int) -> StreamBatch:
    """Return the events after a cursor, for a reader with the right ``audit.read``.

    Raises:
        Denied: without it.
        Invalid: not a cursor.
    """
    actor.require("audit.read")
    return stream_batch(tenant, StreamPlace.of(cursor), most=min(most, MOST_EVENTS))


def stream_list(*, actor: Actor) -> QuerySet[AuditStream]:
    """Return the workspace's own streams; the operator's are not shown. Raises Denied."""
    actor.require("tenant.manage")
    rows: QuerySet[AuditStream] = AuditStream.objects.visible_to(actor)
    return rows.filter(is_operators=False).defer("secret_encrypted").order_by("pk")

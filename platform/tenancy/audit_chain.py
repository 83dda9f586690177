"""Verify the hash chain of a tenant's audit events.

Each event has a position (``seq``, from 1 without gaps), the hash of the event before it ("" for the first) and its own:
the SHA-256 of its canonical JSON, which holds all of its columns, the position and the previous hash. The database
computes them as the act commits (migration ``tenancy.0004``). Here the text is read from the rows and hashed in Python, so
that what verifies is not what wrote.

Who can write the tables as their owner can also write a whole new chain. Against that, anchors: keep position and hash
of the head somewhere else, and verify against them later.

An erasure takes a person's names out of sealed rows (``erasure.trail``). Such a row keeps its position and hash, and a
later event of the chain, ``audit.redact``, holds the digest of what it says now: with that it counts as redacted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tenancy.models import Tenant
from tenancy.scope import tenant_scope

MAX_PROBLEMS = 20
REDACTED = "audit.redact"
"""The action of events whose ``data`` maps, below ``events``, positions to digests of what an erasure left there."""
_READ_ROWS = 2000

# The same expression as in the migration, over columns instead of the values to be written.
_CANONICAL = """
jsonb_build_object(
    'seq', e.seq,
    'previous_hash', e.previous_hash,
    'id', e.id,
    'tenant', e.tenant_id,
    'at', to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'actor_kind', e.actor_kind,
    'actor_name', e.actor_name,
    'user', e.user_id,
    'api_key', e.api_key_id,
    'action', e.action,
    'object_type', e.object_type,
    'object_id', e.object_id,
    'object_name', e.object_name,
    'data', e.data,
    'ip', host(e.ip),
    'request_id', e.request_id
)::text
"""
_ROWS = f"""
SELECT head.seq, head.hash, e.id, e.seq, e.previous_hash, e.hash, {_CANONICAL}
FROM (SELECT 1) AS one
LEFT JOIN tenancy_auditchain AS head ON head.tenant_id = %(tenant)s
LEFT JOIN tenancy_auditevent AS e ON e.tenant_id = %(tenant)s
ORDER BY e.seq NULLS FIRST, e.id
"""  # noqa: S608


_SOME = f"SELECT e.seq, {_CANONICAL} FROM tenancy_auditevent AS e WHERE e.tenant_id = %s AND e.seq = ANY(%s)"  # noqa: S608
_NOTES = f"""
SELECT e.seq, e.hash, e.data, {_CANONICAL} FROM tenancy_auditevent AS e
WHERE e.tenant_id = %s AND e.action = %s AND e.actor_kind = 'system' ORDER BY e.seq
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """One thing that is wrong with a chain.

    Attributes:
        kind: ``altered``, ``missing``, ``unlinked``, ``unsealed``, ``head`` or ``anchor``.
        seq: position of the event that it was found at, None for one without a position.
    """

    kind: str
    seq: int | None
    message: str


@dataclass(slots=True)
class ChainReport:
    """What verifying one tenant's chain found; ``problems`` holds the first ``MAX_PROBLEMS`` of ``problem_count``.

    ``redacted`` counts the events whose names an erasure replaced, each as a later event of the chain notes.
    """

    events: int = 0
    head_seq: int = 0
    head_hash: str = ""
    problem_count: int = 0
    problems: list[ChainProblem] = field(default_factory=list)
    redacted: int = 0

    @property
    def is_intact(self) -> bool:
        return not self.problem_count

    def add(self, kind: str, seq: int | None, message: str) -> None:
        """Count a problem, and keep it when it is one of the first."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(ChainProblem(kind, seq, message))


def audit_chain_verify(*, tenant: Tenant, anchors: Mapping[int, str] | None = None) -> ChainReport:
    """Read a tenant's whole audit trail in one snapshot and report everything that breaks its chain.

    Args:
        anchors: position -> hash as exported earlier; each must still stand in the chain.
    """
    with tenant_scope(tenant.pk):
        return _verified(_rows(tenant.pk), anchors or {}, lambda: _redactions(tenant.pk))


def digests_now(tenant: Tenant, positions: Iterable[int]) -> dict[int, str]:
    """Return, by position, the digest of what events say at this moment; in the workspace's scope."""
    with connection.cursor() as cursor:
        cursor.execute(_SOME, [tenant.pk, list(positions)])
        return {seq: hashlib.sha256(text.encode()).hexdigest() for seq, text in cursor.fetchall()}


def _redactions(tenant_id: int) -> dict[int, str]:
    """Return, by position, the digest that the last sealed note has of it; a note counts for positions before it."""
    found: dict[int, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NOTES, [tenant_id, REDACTED])
        for seq, stored, data, canonical in cursor.fetchall():
            if seq is None or hashlib.sha256(canonical.encode()).hexdigest() != stored:
                continue
            events = json.loads(data) if isinstance(data, str) else data
            for position, digest in dict(events.get("events", {})).items():
                if int(position) < seq:
                    found[int(position)] = str(digest)
    return found


def _rows(tenant_id: int) -> Iterator[tuple[Any, ...]]:
    # One statement, hence one snapshot: events that are added meanwhile are neither gaps nor beyond the head.
    with connection.chunked_cursor() as cursor:
        cursor.execute(_ROWS, {"tenant": tenant_id})
        while found := cursor.fetchmany(_READ_ROWS):
            yield from found


def _verified(
    rows: Iterable[tuple[Any, ...]], anchors: Mapping[int, str], redactions: Callable[[], dict[int, str]]
) -> ChainReport:
    report = ChainReport()
    # Read when a row needs one: later than the rows, so that no row is newer than its note.
    notes: dict[int, str] | None = None
    last_seq, last_hash = 0, ""
    left = dict(anchors)
    for head_seq, head_hash, event, seq, previous, stored, canonical in rows:
        report.head_seq, report.head_hash = head_seq or 0, head_hash or ""
        if event is None:  # the one row of a tenant without events
            continue
        report.events += 1
        if seq is None:
            report.add(
                "unsealed", None, f"Event {event} is in no chain: it was not written by the application."
            )
            continue
        if seq != last_seq + 1:
            gone = f"event {last_seq + 1}" if seq == last_seq + 2 else f"events {last_seq + 1} to {seq - 1}"
            report.add("missing", seq, f"Before position {seq}, {gone} of the chain is missing.")
        elif previous != last_hash:
            report.add("unlinked", seq, f"Event {event} at position {seq} does not follow the one before it.")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        if digest != stored:
            notes = redactions() if notes is None else notes
            if notes.get(seq) == digest:
                report.redacted += 1
            else:
                report.add("altered", seq, f"Event {event} at position {seq} is not what was sealed.")
        if (expected := left.pop(seq, None)) is not None and expected != stored:
            report.add("anchor", seq, f"Position {seq} does not have the hash that was exported for it.")
        last_seq, last_hash = seq, stored
    if (last_seq, last_hash) != (report.head_seq, report.head_hash):
        report.add(
            "head",
            report.head_seq,
            f"The chain ends at position {last_seq}, its head says {report.head_seq}.",
        )
    for seq in sorted(left):
        report.add("anchor", seq, f"Position {seq}, for which a hash was exported, does not exist.")
    return report

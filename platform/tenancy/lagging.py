"""Reads that may lag: searches, lists and exports that a replica serves where there is one (``GROUNDWORK_REPLICA_URL``).

Who has written something reads the primary until the replica has replayed it: each request that writes leaves a mark, the
position of the primary's log behind it (``WriteMark``). The mark is the person's in that workspace, through whichever
session, key or web process they come; a key without a person has its own. A change of rights marks the whole workspace, so
that nobody is shown by the replica what they may not see any more. Who asks, and what they may do, is read from the
primary before any of this.

Without a replica nothing here sends a statement.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from tenancy.actors import Actor
from tenancy.database import replica
from tenancy.database.replica import PrimaryPosition, ReplicaUnfit, primary_reads
from tenancy.database.waiting import in_transaction
from tenancy.models import Membership, User, WriteMark
from tenancy.scope import platform_scope, tenant_scope

__all__ = ["may_lag_read", "primary_reads", "rights_noted", "write_noted", "writes_of_person_noted"]

log = structlog.get_logger(__name__)
R = TypeVar("R")

_ALL = ""
"""Whose mark holds for everybody in the workspace."""
_RIGHTS = frozenset(
    {"member", "invite", "key", "connection", "share", "tool_grant", "toolkit", "tool_entry", "assistant"}
)
"""Nouns of the audit trail whose acts may take a right from somebody."""
_RIGHTS_ACTS = frozenset({"document.access", "document.move", "collection.file_rules"})
_KEPT = timedelta(days=1)
"""No replica that is read is as far behind: ``GROUNDWORK_REPLICA_LAG_SECONDS``."""

# After a commit the position behind it, also where that commit did not wait for the disk.
_HERE = "(pg_current_wal_insert_lsn() - '0/0')::bigint"
_MARK = f"""
INSERT INTO tenancy_writemark (tenant_id, writer, position, written_at) VALUES (%s, %s, {_HERE}, clock_timestamp())
ON CONFLICT (tenant_id, writer) DO UPDATE
SET position = greatest(tenancy_writemark.position, excluded.position), written_at = excluded.written_at
"""  # noqa: S608 - a constant of this module
# A mark beyond the log's end is from before a failover or a restore.
_POSITION = f"""
SELECT (pg_current_wal_lsn() - '0/0')::bigint, clock_timestamp(), least({_HERE}, (
    SELECT coalesce(max(position), 0) FROM tenancy_writemark WHERE tenant_id = %s AND writer IN (%s, %s)
))
"""  # noqa: S608 - a constant of this module


def may_lag_read(actor: Actor, read: Callable[[], R]) -> R:
    """Return what a function returns that only reads, and that may be shown a state of some seconds ago.

    It reads the replica where there is one that has the actor's own writes and isn't too far behind. Whatever goes wrong
    there, it runs once more on the primary: what the replica fails at, or hasn't yet, fails no request.

    Args:
        read: reads and returns all it needs; it may run twice.

    Raises:
        Exception: what ``read`` raises on the primary.
    """
    if not replica.is_set() or replica.is_turned() or in_transaction() or not replica.watch.is_there():
        return read()
    position = _position(actor)
    try:
        with replica.reads_turned():
            replica.freshness_require(position)
            return read()
    except ReplicaUnfit as unfit:
        log.debug("replica_unfit", reason=str(unfit))
    except Exception as error:  # noqa: BLE001 - a row that isn't there yet, a rule that is new: the primary decides
        if not replica.failure_noted(error) and isinstance(error, DatabaseError):
            log.warning("replica_read_failed", error=f"{type(error).__name__}: {error}".strip())
    return read()


def write_noted(actor: Actor) -> None:
    """Remember that the actor has written something just now, after its commit; does nothing without a replica."""
    if replica.is_set():
        _mark(actor.tenant_id, _writer(actor))


def writes_of_person_noted(user: User) -> None:
    """Remember for each workspace of a person that they have written something (the admin site knows no single one)."""
    if replica.is_set():
        with platform_scope():
            tenants = list(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))
        for tenant_id in tenants:
            _mark(tenant_id, f"user:{user.pk}")


def rights_noted(tenant_id: int, action: str) -> None:
    """Let everybody in a workspace wait for this transaction, once it is committed, where its act may take a right.

    Args:
        action: of the audit trail; one that takes no rights does nothing.
    """
    if replica.is_set() and (action in _RIGHTS_ACTS or action.partition(".")[0] in _RIGHTS):
        transaction.on_commit(lambda: _mark(tenant_id, _ALL))


def marks_expire(limit: int = 1000) -> int:
    """Forget marks that every replica has long replayed, of every tenant; returns how many."""
    with platform_scope():
        old = WriteMark.objects.filter(written_at__lte=timezone.now() - _KEPT)
        count, _ = WriteMark.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()
    return count


def _writer(actor: Actor) -> str:
    return f"user:{actor.user_id}" if actor.user_id is not None else f"key:{actor.api_key_id}"


def _mark(tenant_id: int, writer: str) -> None:
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(_MARK, [tenant_id, writer])


def _position(actor: Actor) -> PrimaryPosition:
    with tenant_scope(actor.tenant_id), connection.cursor() as cursor:
        cursor.execute(_POSITION, [actor.tenant_id, _ALL, _writer(actor)])
        written, now, needed = cursor.fetchone()
    return PrimaryPosition(written, needed, now)

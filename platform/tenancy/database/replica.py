"""A streaming replica that serves reads which may lag, and how a thread's reads are turned to it.

Inside ``reads_turned`` the thread's connection named "default" is the replica's: the ORM, cursors that are written by hand
and transactions all go there, and a write is refused by Postgres, so that no statement of one page meets another
database than the next one by mistake. ``primary_reads`` turns back for rights, money and other writes.

Whether the replica answers is known beforehand: when it fails, one thread of this process looks for it each second, and no
request waits for it meanwhile. ``tenancy.lagging`` is what views use.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from psycopg_pool import PoolTimeout

from tenancy.database.waiting import connection_let_go, connection_params, connections_let_go

log = structlog.get_logger(__name__)

REPLICA = "replica"
LOOK_EVERY_S = 1.0
NOT_LOOKED = "not looked for yet"
_ONLY_THIS_STATEMENT = frozenset({"40001", "57014"})
"""SQLSTATEs of a read that was cancelled (it stood in the way of what the replica replays): the replica itself is well."""

_SYSTEM = "SELECT system_identifier FROM pg_control_system()"
_REPLAYED = (
    "SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0')::bigint, pg_last_xact_replay_timestamp()"
)


class _Turned(threading.local):
    primary: Any = None


_turned = _Turned()


class ReplicaUnfit(Exception):
    """The replica can't be read now for this request: it is behind, or no replica; the message says which."""


@dataclass(frozen=True, slots=True)
class PrimaryPosition:
    """What a reader needs of the replica.

    Attributes:
        written: how far the primary's log is written, in bytes.
        needed: how far the replica must have replayed it, in bytes.
        now: the primary's clock, which also stamps the commits that the replica replays.
    """

    written: int
    needed: int
    now: datetime


def is_set() -> bool:
    """Tell whether this installation has a replica."""
    return REPLICA in connections.settings


def is_turned() -> bool:
    """Tell whether this thread's reads go to the replica now."""
    return _turned.primary is not None


class ReplicaWatch:
    """What this process knows of the replica: usable, or why not, and the thread that looks until it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looker: threading.Thread | None = None
        self._is_there = False
        self._reason = NOT_LOOKED
        self._is_stale = False  # what the pool holds leads to a server that is gone
        self._end = threading.Event()
        self.seen = threading.Event()
        """Set while the replica is usable, for whoever waits for that."""

    def is_there(self) -> bool:
        """Tell whether the replica may be tried; where not, it is looked for from now on."""
        if self._is_there:
            return True
        with self._lock:
            if not self._is_there and (self._looker is None or not self._looker.is_alive()):
                self._looker = threading.Thread(target=self._look, name="replica-look", daemon=True)
                self._looker.start()
        return False

    @property
    def reason(self) -> str:
        """Why the replica isn't read now, "" while it is; may name hosts."""
        return "" if self._is_there else self._reason

    def lost(self, reason: str, *, is_stale: bool = True) -> None:
        """Note that the replica failed: it is looked for before it is read again.

        Args:
            is_stale: connections that the pool holds have to be replaced.
        """
        with self._lock:
            was_there, self._is_there, self._reason = self._is_there, False, reason
            self._is_stale |= is_stale
            self.seen.clear()
        if was_there:
            log.warning("replica_away", reason=reason)
        self.is_there()

    def forget(self) -> None:
        """Know nothing, and end the thread that looks (tests)."""
        self._end.set()
        looker = self._looker
        if looker is not None:
            looker.join()
        with self._lock:
            self._looker, self._is_there, self._reason, self._is_stale = None, False, NOT_LOOKED, True
            self._end.clear()
            self.seen.clear()

    def _look(self) -> None:
        while not self._end.is_set():
            if self._is_stale:
                self._is_stale = False
                _pool_forget()
            reason = replica_problem()
            with self._lock:
                self._reason, self._is_there = reason, not reason
                if not reason:
                    self._looker = None
                    self.seen.set()
            if not reason:
                log.info("replica_there")
                return
            self._end.wait(LOOK_EVERY_S)


watch = ReplicaWatch()


def replica_problem() -> str:
    """Return why the server at ``GROUNDWORK_REPLICA_URL`` can't be read from, "" when it can; opens connections of its own."""
    params = dict(connections[REPLICA].get_connection_params())
    for own_to_django in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(own_to_django, None)
    try:
        with psycopg.connect(**params, autocommit=True) as raw:
            row = raw.execute("SELECT pg_is_in_recovery()").fetchone()
            if row is None or not row[0]:
                return "GROUNDWORK_REPLICA_URL leads to a server that isn't a replica."
            theirs = raw.execute(_SYSTEM).fetchone()
        with psycopg.connect(**connection_params(), autocommit=True) as raw:
            ours = raw.execute(_SYSTEM).fetchone()
    except psycopg.Error as error:
        return f"{type(error).__name__}: {error}".strip()
    return "" if theirs == ours else "GROUNDWORK_REPLICA_URL leads to a replica of another database server."


def failure_noted(error: Exception) -> bool:
    """Note what a failed read says about the replica; returns whether it is taken to be away.

    Args:
        error: what the read raised.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, psycopg.Error):
        found = found.__cause__
    if not isinstance(found, psycopg.InterfaceError | psycopg.OperationalError):
        return False
    if found.sqlstate in _ONLY_THIS_STATEMENT:
        return False
    watch.lost(f"{type(found).__name__}: {found}".strip(), is_stale=not isinstance(found, PoolTimeout))
    return True


def bytes_behind() -> int:
    """Return how much of the primary's log the replica has not replayed, in bytes, for an operator.

    Raises:
        Error: one of the two can't be reached (Django's).
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint")
        written = int(cursor.fetchone()[0])
    with reads_turned(), connection.cursor() as cursor:
        cursor.execute(_REPLAYED)
        return max(0, written - int(cursor.fetchone()[1] or 0))


@contextmanager
def reads_turned() -> Iterator[None]:
    """Turn this thread's database to the replica for the block; no transaction may be open."""
    connections_let_go()
    primary, replica = connections[DEFAULT_DB_ALIAS], connections[REPLICA]
    _turned.primary = primary
    connections[DEFAULT_DB_ALIAS] = replica
    try:
        yield
    except BaseException:
        replica.close()  # whatever state it is in
        raise
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
        _turned.primary = None
        connection_let_go(replica)


@contextmanager
def primary_reads() -> Iterator[None]:
    """Let the block read and write the primary again, where the thread's reads are turned to the replica."""
    primary = _turned.primary
    if primary is None:
        yield
        return
    replica = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS], _turned.primary = primary, None
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], _turned.primary = replica, primary
        connection_let_go(primary)


def freshness_require(position: PrimaryPosition) -> None:
    """Check that the replica has what is needed and isn't too far behind; to be called while reads are turned to it.

    How far behind is told by the newest commit it has replayed, against the primary's clock; nothing is behind where all
    of the log is replayed, however long ago that was.

    Raises:
        ReplicaUnfit: it hasn't, is, or is no replica any more.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REPLAYED)
        is_replica, replayed, committed = cursor.fetchone()
    if not is_replica or replayed is None:
        watch.lost("GROUNDWORK_REPLICA_URL leads to a server that isn't a replica.")
        raise ReplicaUnfit("not a replica")
    if replayed < position.needed:
        raise ReplicaUnfit("behind the reader's own write")
    if replayed >= position.written:
        return
    if committed is None or (position.now - committed).total_seconds() > settings.REPLICA_LAG_S:
        raise ReplicaUnfit("too far behind")


def _pool_forget() -> None:
    """Let the next reader connect anew: what the pool holds leads to a server that is gone."""
    wrapper: Any = connections[REPLICA]
    pool = wrapper._connection_pools.pop(REPLICA, None)
    if pool is not None:
        pool.close()

"""Waits for the locks of a migration in short tries, so that everyone else passes between them.

A statement that waits for a lock makes all later ones on its table wait behind it: an ALTER TABLE behind one forgotten
transaction would stop the product. So a migration waits ``WAIT_S`` seconds, is rolled back, pauses, and is run again:
Django records each that was done, and ``row_security_apply`` sees what is there already.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError

from tenancy.database.waiting import connection_params

WAIT_S = 2.0
"""Seconds that a statement waits for a lock, and others behind it."""
TRIES = 15
_PAUSES = (1, 2, 4, 8, 15, 30)
"""Seconds between two tries; the last one for all that follow."""
LONG_S = 600
"""Seconds for what stops nobody while it waits: an index that is built concurrently waits for old transactions."""
_WAITED = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
_MOST_NAMED = 3
_MIGRATES = 0x67726F756E64  # "ground": the advisory lock of whoever migrates

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Session:
    """A session of the database that holds a lock, or an old transaction.

    Args:
        table: what it holds; "" for an old transaction that holds up an index.
        pid: its process, for ``pg_terminate_backend``.
        text: who it is, what it does, and for how long, in words.
        open_s: seconds since its transaction began.
    """

    table: str
    pid: int
    text: str
    open_s: float


@contextmanager
def direct_line(connection: Any) -> Iterator[None]:
    """Lead a connection past a pooler for a while, since ``lock_timeout`` belongs to a session.

    Args:
        connection: Django's; closed and opened again where ``GROUNDWORK_LISTEN_URL`` is set.
    """
    chosen = settings.LISTEN_DATABASE
    if chosen is None or connection.in_atomic_block:
        yield
        return
    before = {name: connection.settings_dict[name] for name in chosen}
    connection.close()
    connection.settings_dict.update(chosen)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


@contextmanager
def only_one(connection: Any, *, say: Callable[[str], None], tries: int = TRIES) -> Iterator[None]:
    """Keep others from migrating the same database meanwhile: two at once would find the same migration not applied.

    The lock has a session of its own, which stays when the connection is opened again between two tries.

    Args:
        connection: Django's, on its direct line; with an open transaction nothing is locked.
        say: is told each time who is waited for.
        tries: how often it is asked for at most.

    Raises:
        CommandError: another one was at work each time; says who.
    """
    if connection.in_atomic_block:
        yield
        return
    name = f"groundwork migrate on {socket.gethostname()}"[:63]
    with psycopg.connect(**{**connection_params(), "application_name": name}, autocommit=True) as line:
        for number in range(1, tries + 1):
            row: Any = line.execute("SELECT pg_try_advisory_lock(%s)", [_MIGRATES]).fetchone()
            if row[0]:
                break
            held = _migrating(line)
            if number == tries:
                raise CommandError(
                    f"Another migrate is still at work{held} after {tries} tries. Run this again when it has ended."
                )
            seconds = _PAUSES[min(number, len(_PAUSES)) - 1]
            say(
                f"Another migrate is at work{held}. Trying again in {seconds} s, {number} of {tries} tries done"
            )
            pause(seconds)
        try:
            yield
        finally:
            # Not left to the end of the session, which the server may notice after the next migrate has begun.
            with suppress(psycopg.Error):  # the session is gone, and the lock with it
                line.execute("SELECT pg_advisory_unlock(%s)", [_MIGRATES])


def _migrating(line: psycopg.Connection[Any]) -> str:
    """Return who holds the lock of ``only_one``, in brackets; "" when they have let go."""
    row = line.execute(
        """SELECT a.pid, a.usename, a.application_name, extract(epoch FROM clock_timestamp() - a.backend_start)
           FROM pg_locks l JOIN pg_stat_activity a USING (pid)
           WHERE l.granted AND l.locktype = 'advisory' AND l.objsubid = 1
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (l.classid::bigint << 32) + l.objid::bigint = %s""",
        [_MIGRATES],
    ).fetchone()
    return "" if row is None else f" (session {row[0]} of {row[1]}, {row[2]}, for {row[3]:.0f} s)"


def in_tries(
    connection: Any,
    work: Callable[[], R],
    *,
    say: Callable[[str], None],
    wait_s: float = WAIT_S,
    tries: int = TRIES,
) -> R:
    """Run DDL, again and again while a lock is in the way.

    Args:
        connection: Django's, as the role that owns the tables; with an open transaction the work is run once, unbounded.
        work: can be run again after it failed.
        say: is told each time what is waited for.
        wait_s: seconds that a statement waits for a lock.
        tries: how often the work is run at most.

    Returns:
        what the work returns.

    Raises:
        CommandError: a lock was in the way each time; says of which table, and who holds it.
    """
    if connection.in_atomic_block:
        return work()
    for number in range(1, tries + 1):
        failed: list[str] = []
        try:
            with _lock_timeout(connection, wait_s), connection.execute_wrapper(_noting(failed)):
                return work()
        except OperationalError as error:
            if not isinstance(error.__cause__, _WAITED):
                raise
            connection.close_if_unusable_or_obsolete()
            what, who = _told(connection, failed[-1] if failed else "")
            if number == tries:
                raise CommandError(_given_up(what, who, tries)) from error
        seconds = _PAUSES[min(number, len(_PAUSES)) - 1]
        held = f" ({who[0].text})" if who else ""
        say(f"{what} is in use{held}. Trying again in {seconds} s, {number} of {tries} tries done")
        pause(seconds)
    raise AssertionError("unreachable: the last try returns or raises")


@contextmanager
def waiting_long(connection: Any) -> Iterator[None]:
    """Let statements wait up to ``LONG_S`` seconds: those that nobody waits behind."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        before = cursor.fetchone()[0]
        cursor.execute(f"SET lock_timeout = '{LONG_S}s'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{before}'")


def pause(seconds: float) -> None:
    """Let others pass for some seconds."""
    time.sleep(seconds)


def sessions_on(cursor: Any, tables: Iterable[str], *, all_modes: bool = True) -> list[Session]:
    """Return the other sessions that hold a lock on tables, those with the oldest transaction first.

    Args:
        cursor: of a role that may see what other sessions of its own role run.
        tables: names.
        all_modes: those that only read as well.
    """
    cursor.execute(
        """SELECT c.relname, a.pid, a.usename, a.application_name, a.state, a.backend_type, a.query,
                  coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)
           FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a USING (pid)
           WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND c.relname = ANY(%s) AND l.pid <> pg_backend_pid() AND (%s OR l.mode <> 'AccessShareLock')
           ORDER BY a.xact_start NULLS LAST, a.pid""",
        [list(tables), all_modes],
    )
    return _sessions(cursor.fetchall())


def oldest_transactions(cursor: Any) -> list[Session]:
    """Return the other sessions of this database with an open transaction, the oldest first."""
    cursor.execute(
        """SELECT '', pid, usename, application_name, state, backend_type, query,
                  extract(epoch FROM clock_timestamp() - xact_start)
           FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL
             AND pid <> pg_backend_pid() ORDER BY xact_start, pid"""
    )
    return _sessions(cursor.fetchall())


def _sessions(rows: Iterable[tuple[Any, ...]]) -> list[Session]:
    found: dict[int, Session] = {}
    for table, pid, user, application, state, kind, query, open_s in rows:
        # What people wrote is in the strings of a statement, and logs are read by others.
        query = re.sub(r"'(?:[^']|'')*'", "'…'", " ".join(str(query).split()))[:100]
        named = f", {application}" if application else ""
        text = f"session {pid} of {user or kind}{named}: {state or kind}, transaction open for {open_s:.0f} s, “{query}”"
        found.setdefault(pid, Session(table, pid, text, float(open_s)))
    return list(found.values())


@contextmanager
def _lock_timeout(connection: Any, seconds: float) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{max(1, round(seconds * 1000))}ms'")
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")


def _noting(failed: list[str]) -> Callable[..., Any]:
    def note(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        try:
            return execute(sql, params, many, context)
        except OperationalError as error:
            if isinstance(error.__cause__, _WAITED):
                failed.append(str(sql))
            raise

    return note


def _told(connection: Any, sql: str) -> tuple[str, list[Session]]:
    """Return which table a statement waited for, and who holds it now: asked afterwards, since it waits no more."""
    words = re.findall(r"\w+", sql)
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT c.relname, coalesce(t.relname, c.relname) FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
               LEFT JOIN pg_class t ON t.oid = i.indrelid
               WHERE c.relname = ANY(%s) AND c.relkind IN ('r', 'p', 'i') AND c.relnamespace = current_schema()::regnamespace""",
            [words],
        )
        table_of = dict(cursor.fetchall())
        tables = list(dict.fromkeys(table_of[w] for w in words if w in table_of))
        is_ddl = bool(words) and words[0].upper() in {"ALTER", "CREATE", "DROP", "LOCK", "TRUNCATE"}
        who = sessions_on(cursor, tables, all_modes=is_ddl)
        if not who and "CONCURRENTLY" in sql.upper():
            who = oldest_transactions(cursor)
    held = [s.table for s in who if s.table]
    return (held[0] if held else tables[0] if tables else "A table"), who


def _given_up(what: str, who: list[Session], tries: int) -> str:
    named = "; ".join(s.text for s in who[:_MOST_NAMED])
    how = f"SELECT pg_terminate_backend({who[0].pid});" if who else ""
    return (
        f"{what} stayed in use through {tries} tries. "
        + (f"In the way: {named}. " if who else "Who held it has let go since. ")
        + "What was applied before stays, and nothing is left half done. "
        + (f"Wait for that session, or end it ({how}), and run this again." if who else "Run this again.")
    )

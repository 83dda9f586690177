"""Connections that keep a session of their own: LISTEN, advisory locks of a session, builds of indexes.

All else may go through a transaction pooler (PgBouncer), which hands a server connection to whoever sends the next
transaction. What is bound to a session must not: a LISTEN there is never heard, a lock is held by a stranger. So these
go to ``GROUNDWORK_LISTEN_URL``, by default ``DATABASE_URL``, and ``is_shared`` tells when that leads through such a
pooler after all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings

from tenancy.database.waiting import connection_params

_LOOKS = 8
"""Times that two idle connections are compared: one pair that shares a server connection is proof."""


def direct_params() -> dict[str, Any]:
    """Return what psycopg needs for a connection with a session of its own."""
    chosen = settings.LISTEN_DATABASE
    if chosen is None:
        return connection_params()
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    return {**{ours: chosen[name] for ours, name in names.items() if chosen[name]}, **chosen["OPTIONS"]}


def direct_connection() -> psycopg.Connection[Any]:
    """Open a connection with a session of its own, as the login role and without a transaction.

    Raises:
        psycopg.Error: the server cannot be reached.
    """
    return psycopg.connect(**direct_params(), autocommit=True)


@contextmanager
def lock_session(number: int) -> Iterator[psycopg.Connection[Any] | None]:
    """Open a session that has an advisory lock for the length of the block; yields None where another one has it.

    Args:
        number: of the lock, in this database.

    Raises:
        psycopg.Error: the server cannot be reached.
    """
    with direct_connection() as line:
        row: Any = line.execute("SELECT pg_try_advisory_lock(%s)", [number]).fetchone()
        try:
            yield line if row[0] else None
        finally:
            # Not left to the end of the session, which the server may notice after somebody else has asked.
            with suppress(psycopg.Error):  # the session is gone, and its locks with it
                line.execute("SELECT pg_advisory_unlock_all()")


def pooler_found() -> str:
    """Return what is wrong with the address for sessions, in one sentence that names it; "" when it is direct.

    Raises:
        psycopg.Error: the database cannot be reached.
    """
    params = direct_params()
    if not is_shared(params):
        return ""
    variable = "DATABASE_URL" if settings.LISTEN_DATABASE is None else "GROUNDWORK_LISTEN_URL"
    return (
        f"{variable} ({params.get('host', 'localhost')}:{params.get('port', 5432)}) leads through a transaction pooler, "
        "where notifications and session locks are lost. Set GROUNDWORK_LISTEN_URL to the address of the Postgres server "
        "itself."
    )


def is_shared(params: dict[str, Any]) -> bool:
    """Tell whether a database is reached through a pooler that lets idle connections share a server's.

    A pooler makes up the process number that it tells at the start, so that it differs from the server's own; where the
    two agree there is none. Where it gives each connection a server's for as long as it stays (session pooling), two that
    are open never meet the same one.

    Args:
        params: what psycopg needs to connect.

    Raises:
        psycopg.Error: the database cannot be reached.
    """
    with psycopg.connect(**params, autocommit=True) as one:
        if _process(one) == one.info.backend_pid:
            return False
        with psycopg.connect(**params, autocommit=True) as other:
            return any(_process(one) == _process(other) for _ in range(_LOOKS))


def _process(raw: psycopg.Connection[Any]) -> int:
    row: Any = psycopg.ClientCursor(raw).execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0])

"""An empty database for a while, and how to work on another database than the one that settings name."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from backups.errors import BackupBusy
from tenancy.database.direct import direct_connection, lock_session

_LOCK = 0x73637261746368  # "scratch"
SCRATCH_BUSY = 75
"""Exit code of a command that found another process at it; sysexits.h calls it EX_TEMPFAIL."""
_MARK = "Scratch database in which Groundwork verifies a backup; it is dropped without asking."
_NAMED = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
Server = Callable[[], AbstractContextManager[dict[str, Any]]]
_servers: list[Server] = []


class ScratchBusy(BackupBusy):
    """Another verification of this installation is at work; trying again later is all there is to do."""

    def __init__(self) -> None:
        super().__init__("Another backup of this installation is being verified. Try again later.")


def scratch_server_from(server: Server) -> None:
    """Name what starts an empty server of its own, where this installation's has no room for a database; at start-up.

    It yields the server's settings, as ``pointed_at`` takes them, and raises ``BackupRefused`` where it can't start.
    """
    _servers[:] = [server]


def is_scratch_free() -> bool:
    """Tell whether no process, on whichever machine, has a scratch database of this installation right now."""
    with lock_session(_LOCK) as line:
        return line is not None


@contextmanager
def pointed_at(chosen: dict[str, Any]) -> Iterator[None]:
    """Let the block work on another database, for commands: other threads of the process would follow.

    Args:
        chosen: as an entry of ``DATABASES``.
    """
    before = {name: connection.settings_dict[name] for name in _NAMED}
    listen = settings.LISTEN_DATABASE
    connection.close()
    connection.settings_dict.update({name: chosen[name] for name in _NAMED})
    settings.LISTEN_DATABASE = None
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
        settings.LISTEN_DATABASE = listen


@contextmanager
def scratch_database() -> Iterator[str]:
    """Let the block work on an empty database, which is gone afterwards; yields where it is, in words.

    It is on the server of this installation, where its role may create databases there and pgvector is to be had, else on
    a server of its own.

    Raises:
        ScratchBusy: another process has one of this installation.
        BackupRefused: neither can be had.
    """
    with lock_session(_LOCK) as line:
        if line is None:
            raise ScratchBusy
        made = _created(line)
        if made is None:
            (server,) = _servers
            with server() as chosen, pointed_at(chosen):
                yield "an embedded server of its own"
            return
        try:
            with pointed_at(made):
                yield f"database {made['NAME']} on the server of this installation"
        finally:
            _drop(line, made["NAME"])


def _created(line: psycopg.Connection[Any]) -> dict[str, Any] | None:
    """Return an empty database on this installation's server, None where it can't be made there.

    Those that killed verifications have left there are dropped: nobody else is at it while we hold the lock.
    """
    row: Any = line.execute(
        "SELECT rolcreatedb OR rolsuper, current_database() FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if not row[0]:
        return None
    start = f"{row[1][:40]}_scratch_"
    left = line.execute(
        """SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND pg_has_role(datdba, 'MEMBER')
           AND shobj_description(oid, 'pg_database') = %s""",
        [start, _MARK],
    )
    for (abandoned,) in left.fetchall():
        _drop(line, abandoned)
    name = start + secrets.token_hex(4)
    line.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    # A name alone is no reason to drop a database: an operator may have one that is called so.
    line.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(_MARK)))
    chosen = settings.LISTEN_DATABASE or {one: connection.settings_dict[one] for one in _NAMED}
    options = {k: v for k, v in chosen["OPTIONS"].items() if k != "pool"}
    made = {**{one: chosen[one] for one in _NAMED}, "NAME": name, "OPTIONS": options}
    with pointed_at(made):
        if _has_vector():
            return made
    _drop(line, name)
    return None


def _drop(line: psycopg.Connection[Any], name: str) -> None:
    # Not WITH (FORCE): that is refused while autovacuum is at work there, which a plain DROP ends and waits for.
    line.execute(
        """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
           WHERE datname = %s AND usename = current_user""",
        [name],
    )
    line.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


def _has_vector() -> bool:
    try:
        with direct_connection() as line:
            line.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error:
        return False
    return True

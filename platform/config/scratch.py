"""An empty database for a while, and how to work on another database than the one that settings name."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from config import env
from config.embedded import EmbeddedPostgres
from tenancy.database.direct import direct_connection

_NAMED = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")


@contextmanager
def pointed_at(chosen: dict[str, Any]) -> Iterator[None]:
    """Let the block work on another database, for commands: other threads of the process would follow.

    Args:
        chosen: as ``env.database_settings`` returns it.
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
    an embedded server of its own.

    Raises:
        EmbeddedPostgresError: neither can be had.
    """
    made = _created()
    if made is None:
        with (
            tempfile.TemporaryDirectory(prefix="groundwork-scratch-") as folder,
            EmbeddedPostgres(Path(folder) / "data", durable=False, die_with_parent=True) as server,
            pointed_at(env.database_settings(server.url, pool=False)),
        ):
            yield "an embedded server of its own"
        return
    try:
        with pointed_at(made):
            yield f"database {made['NAME']} on the server of this installation"
    finally:
        with direct_connection() as line:
            line.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(made["NAME"]))
            )


def _created() -> dict[str, Any] | None:
    """Return an empty database on this installation's server, None where it can't be made there."""
    name = f"groundwork_scratch_{secrets.token_hex(4)}"
    with direct_connection() as line:
        may: Any = line.execute(
            "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        if not may[0]:
            return None
        line.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        chosen = settings.LISTEN_DATABASE or {one: connection.settings_dict[one] for one in _NAMED}
        options = {k: v for k, v in chosen["OPTIONS"].items() if k != "pool"}
        made = {**{one: chosen[one] for one in _NAMED}, "NAME": name, "OPTIONS": options}
        with pointed_at(made):
            if _has_vector():
                return made
        line.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))
    return None


def _has_vector() -> bool:
    try:
        with direct_connection() as line:
            line.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error:
        return False
    return True

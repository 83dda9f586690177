"""Rewrite the database's own files, in which Postgres leaves deleted rows until something else needs their room."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from django.db import connection
from psycopg import sql

from tenancy.database.base import as_login_role

_superuser: list[Callable[[], str]] = []
_SAMPLES = """
DELETE FROM pg_statistic AS s USING pg_class AS c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = s.starelid AND c.relkind = 'r'
AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND pg_relation_size(c.oid) = 0
"""


def superuser_from(url: Callable[[], str]) -> None:
    """Have the address of the database's superuser asked for there, "" where there is none to have; at start-up."""
    _superuser[:] = [url]


def superuser_known() -> str:
    """Return the address of the superuser of the embedded server, "" for a server of your own."""
    return _superuser[0]() if _superuser else ""


def disk_scrub(superuser: str) -> int:
    """Rewrite every table with its indexes, and with the superuser's rights also samples and the log of changes (WAL).

    Each table is locked while it is rewritten, and needs its size once more on disk. Archives of the log and replicas are
    an operator's own.

    Args:
        superuser: address of the database with a superuser's name and password; "" leaves samples and log as they are.

    Returns:
        How many tables were rewritten.
    """
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' "
            "AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY 1, 2"
        )
        tables = cursor.fetchall()
        for names in tables:
            cursor.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(*names)))
    if superuser:
        with psycopg.connect(superuser, autocommit=True) as line:
            _log_and_samples_scrub(line)
    return len(tables)


def _log_and_samples_scrub(line: psycopg.Connection[tuple[object, ...]]) -> None:
    line.execute(_SAMPLES)  # ANALYZE leaves those of a table that has no rows any more
    line.execute("VACUUM FULL pg_statistic")
    # Files of the log that aren't needed any more are deleted, not used again with what they hold.
    line.execute("ALTER SYSTEM SET wal_recycle = off")
    try:
        line.execute("SELECT pg_reload_conf()")
        for _ in range(3):  # a checkpoint keeps the file that the one before began in
            line.execute("SELECT pg_switch_wal()")
            line.execute("CHECKPOINT")
    finally:
        line.execute("ALTER SYSTEM RESET wal_recycle")
        line.execute("SELECT pg_reload_conf()")

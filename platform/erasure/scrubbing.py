"""Rewrite the database's own files, in which Postgres leaves deleted rows until something else needs their room."""

from __future__ import annotations

from django.db import connection
from psycopg import sql

from tenancy.database.base import as_login_role


def disk_scrub() -> int:
    """Rewrite every table with its indexes and forget its statistics' samples; returns how many tables.

    Each table is locked while it is rewritten, and needs its size once more on disk. What is left afterwards is in the
    server's log of changes (WAL), which overwrites itself, and in archives of it that an operator keeps.
    """
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace "
            "AND pg_relation_size(c.oid) > 0 ORDER BY 1"
        )
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            cursor.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier("public", table)))
        return len(tables)

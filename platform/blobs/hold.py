"""Keep bytes from being removed for a while: a backup copies what rows named when it began."""

from __future__ import annotations

from typing import Any

from django.db import connection

_HOLD = 0x626C6F6273  # "blobs": exclusive for who needs the bytes, shared for each removal


def removals_hold(line: Any) -> None:
    """Wait for removals under way, then keep all others waiting until the session ends.

    Args:
        line: a psycopg connection with a session of its own.
    """
    line.execute("SELECT pg_advisory_lock(%s)", [_HOLD])


def removals_held(line: Any) -> bool:
    """Tell whether a session still keeps removals waiting. Raises psycopg.Error when it has ended."""
    row = line.execute(
        """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
           AND mode = 'ExclusiveLock' AND objsubid = 1 AND (classid::bigint << 32) + objid::bigint = %s""",
        [_HOLD],
    ).fetchone()
    return bool(row[0])


def removal_may_begin() -> bool:
    """Ask, in the transaction that removes bytes, whether it may; a hold that comes later then waits for its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [_HOLD])
        return bool(cursor.fetchone()[0])

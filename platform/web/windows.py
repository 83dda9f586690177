"""Limits before anybody is known (sign-in, OAuth), counted in Postgres: they hold over all web processes together.

A window holds at most so many attempts of the last so many seconds. Several are taken at once or none of them, in one
statement. Keys are stored as keyed hashes: they hold addresses of people. When the database does not answer, the error
goes on to the caller: without a count nothing is let in.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.utils.crypto import salted_hmac

# Rows are locked in the order of their keys, so that two attempts never wait for each other.
TAKE_SIGNATURE = "attempts_take(text[], integer[], integer[])"
TAKE_SQL = """
CREATE OR REPLACE FUNCTION attempts_take(
    p_keys text[], p_amounts integer[], p_seconds integer[], OUT full_at integer, OUT wait_s double precision
) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    kept timestamptz[];
BEGIN
    INSERT INTO web_attemptwindow AS w (key, taken, forget_at)
        SELECT k, '{}', clock_timestamp() FROM unnest(p_keys) AS k ORDER BY k
        ON CONFLICT (key) DO UPDATE SET forget_at = w.forget_at;
    moment := clock_timestamp();
    FOR i IN 1..cardinality(p_keys) LOOP
        SELECT ARRAY(SELECT t FROM unnest(w.taken) AS t WHERE t > moment - make_interval(secs => p_seconds[i]) ORDER BY t)
            INTO kept FROM web_attemptwindow w WHERE w.key = p_keys[i];
        IF cardinality(kept) >= p_amounts[i] THEN
            full_at := i;
            wait_s := p_seconds[i] - extract(epoch FROM moment - kept[cardinality(kept) - p_amounts[i] + 1]);
            -- Else whoever is refused could go on to fill the table with a row for each key that he makes up.
            DELETE FROM web_attemptwindow w WHERE w.key = ANY (p_keys) AND w.taken = '{}';
            RETURN;
        END IF;
    END LOOP;
    FOR i IN 1..cardinality(p_keys) LOOP
        UPDATE web_attemptwindow w SET
            taken = ARRAY(SELECT t FROM unnest(w.taken) AS t
                WHERE t > moment - make_interval(secs => p_seconds[i]) ORDER BY t) || moment,
            forget_at = moment + make_interval(secs => p_seconds[i])
            WHERE w.key = p_keys[i];
    END LOOP;
    full_at := 0;
    wait_s := 0;
END
$$
"""
_BATCH = 1_000
"""Rows that are forgotten in one statement, which keeps them locked until it ends."""
UNDO_SIGNATURE = "attempts_undo(text[])"
UNDO_SQL = """
CREATE OR REPLACE FUNCTION attempts_undo(p_keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM web_attemptwindow w WHERE w.key = ANY (p_keys) ORDER BY w.key FOR UPDATE;
    UPDATE web_attemptwindow w SET taken = w.taken[1:cardinality(w.taken) - 1] WHERE w.key = ANY (p_keys);
END
$$
"""


@dataclass(frozen=True, slots=True)
class Window:
    """A limit: at most ``amount`` attempts in any ``seconds``, of what ``key`` names."""

    key: str
    amount: int
    seconds: int


@dataclass(frozen=True, slots=True)
class FullWindow:
    """The first window that was full, and the seconds until it has room."""

    window: Window
    wait_s: float


def windows_take(*windows: Window) -> FullWindow | None:
    """Count one attempt in each window, or in none of them when one is full; returns that one.

    Raises:
        DatabaseError: nothing could be counted; the attempt must not be made then.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT full_at, wait_s FROM attempts_take(%s, %s, %s)",
            [
                [_hashed(one.key) for one in windows],
                [one.amount for one in windows],
                [one.seconds for one in windows],
            ],
        )
        full_at, wait_s = cursor.fetchone()
    return FullWindow(windows[full_at - 1], wait_s) if full_at else None


def windows_undo(*windows: Window) -> None:
    """Take the last count of each window back."""
    if windows:
        with connection.cursor() as cursor:
            cursor.execute("SELECT attempts_undo(%s)", [[_hashed(one.key) for one in windows]])


def windows_expire() -> int:
    """Forget the windows whose last attempt is too old to count, in batches; returns how many."""
    found = 0
    while True:
        with connection.cursor() as cursor:
            # One that somebody counts in at this moment is left to the next time.
            cursor.execute(
                "WITH old AS MATERIALIZED (SELECT key FROM web_attemptwindow WHERE forget_at < clock_timestamp() "
                "LIMIT %s FOR UPDATE SKIP LOCKED) DELETE FROM web_attemptwindow w USING old WHERE w.key = old.key",
                [_BATCH],
            )
            count = int(cursor.rowcount)
        found += count
        if count < _BATCH:
            return found


def _hashed(key: str) -> str:
    return salted_hmac("web.windows", key, algorithm="sha256").hexdigest()

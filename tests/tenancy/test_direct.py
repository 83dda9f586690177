"""Sessions that have a lock."""

from __future__ import annotations

import psycopg
import pytest

from tenancy.database.direct import lock_session

LOCK = 0x74657374  # "test"


@pytest.mark.django_db
def test_a_lock_is_free_when_its_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[psycopg.Connection] = []
    # A server that has not noticed the end of a session yet.
    monkeypatch.setattr(psycopg.Connection, "close", lambda self: left.append(self))
    try:
        with lock_session(LOCK) as line:
            assert line is not None
        with pytest.raises(ZeroDivisionError), lock_session(LOCK):
            raise ZeroDivisionError
        with lock_session(LOCK) as line, lock_session(LOCK) as other:
            assert line is not None
            assert other is None
        with lock_session(LOCK) as line:
            assert line is not None
    finally:
        monkeypatch.undo()
        for one in left:
            one.close()

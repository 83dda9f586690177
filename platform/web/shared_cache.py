"""Django's cache in Postgres: what allauth keeps in it (counts of mails and sign-ups, used codes) holds over all processes.

In the memory of a process a code of a second factor worked once at each of them. Little is kept here and not often read, so
it is a table and needs no server of its own. Values are JSON: nothing that was stored is ever run.
"""

from __future__ import annotations

import json
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection
from django.utils.crypto import salted_hmac

_EVER_S = 100 * 365 * 86_400
_PUT = """
INSERT INTO web_sharedvalue AS v (key, value, expires_at)
VALUES (%s, %s::jsonb, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""


class SharedCache(BaseCache):
    """A cache of a few small values, for all processes of an installation.

    Keys are stored as keyed hashes: they hold addresses of people. Errors of the database go on to the caller.
    """

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Store a value where there is none; tells whether it did. Of several at once, one does."""
        put = f"{_PUT} WHERE v.expires_at <= clock_timestamp() RETURNING 1"
        return bool(self._rows(put, self._named(key, version), json.dumps(value), self._seconds(timeout)))

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """Return the value, or the default where there is none or its time is over."""
        read = "SELECT value::text FROM web_sharedvalue WHERE key = %s AND expires_at > clock_timestamp()"
        rows = self._rows(read, self._named(key, version))
        return json.loads(rows[0][0]) if rows else default

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        """Store a value, whatever there was."""
        put = f"{_PUT} RETURNING 1"
        self._rows(put, self._named(key, version), json.dumps(value), self._seconds(timeout))

    def delete(self, key: str, version: int | None = None) -> bool:
        """Forget a value; tells whether there was one."""
        gone = "DELETE FROM web_sharedvalue WHERE key = %s RETURNING expires_at > clock_timestamp()"
        rows = self._rows(gone, self._named(key, version))
        return bool(rows and rows[0][0])

    def clear(self) -> None:
        """Forget everything."""
        self._rows("DELETE FROM web_sharedvalue RETURNING 1")

    def _named(self, key: str, version: int | None) -> str:
        full = self.make_and_validate_key(key, version=version)
        return salted_hmac("web.shared_cache", full, algorithm="sha256").hexdigest()

    def _seconds(self, timeout: Any) -> float:
        chosen = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return _EVER_S if chosen is None else float(chosen)

    @staticmethod
    def _rows(statement: str, *params: Any) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement, params)
            return list(cursor.fetchall())


def values_expire() -> int:
    """Forget what is too old to be read; returns how much."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM web_sharedvalue WHERE key IN (SELECT key FROM web_sharedvalue "
            "WHERE expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)"
        )
        return int(cursor.rowcount)

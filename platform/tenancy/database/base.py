"""PostgreSQL backend with row-level security driven by ``tenancy.scope``.

Before a cursor is handed out, the session's role and ``app.tenant_id`` are set to what the scope says, lazily: one
extra round trip (about 40 us) only when the scope differs from what this connection last had. Nothing that a pooled
connection carries over is trusted.

scope ""  -> role groundwork_rw, no tenant: tenant tables show no rows
scope "7" -> role groundwork_rw, tenant 7
scope "*" -> role groundwork_platform: policies let every row through
Set-up code (migrations, test databases) runs inside ``as_login_role()`` and stays the login role.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db.backends.postgresql import base
from psycopg.types.array import ListDumper

from tenancy.database.waiting import use_noted
from tenancy.scope import ALL, current

APP_ROLE = "groundwork_rw"
PLATFORM_ROLE = "groundwork_platform"
LOGIN = "!"
TRUSTED_S = 5.0
"""Seconds since its last statement for which a connection that is quiet counts as alive."""

_login_role: ContextVar[bool] = ContextVar("login_role", default=False)


@contextmanager
def as_login_role() -> Iterator[None]:
    """Run the block as the role that logged in (the owner of the tables): migrations and walls only."""
    token = _login_role.set(True)
    try:
        yield
    finally:
        _login_role.reset(token)


class _Escapes:
    """Puts a backslash before quotes and backslashes."""

    @staticmethod
    def sub(template: bytes, value: bytes) -> bytes:
        return bytes(value).replace(b"\\", b"\\\\").replace(b'"', b'\\"')


class PlainListDumper(ListDumper):
    """Dumps arrays as psycopg does, without a regular expression for every quote.

    Django inserts many rows as arrays of their columns; Python before 3.12 expands the expression's template in Python
    for each quote, of which JSON has hundreds: two thirds of the time such an insert took.
    """

    _re_esc: Any = _Escapes


class DatabaseWrapper(base.DatabaseWrapper):
    _applied: str | None = None
    _in_savepoint_rollback = False
    _used_at = 0.0
    health_check_done: bool
    health_check_enabled: bool

    def get_new_connection(self, conn_params: Any) -> Any:
        self._applied = None
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_dumper(list, PlainListDumper)
        return connection

    def _close(self) -> None:
        self._applied = None
        super()._close()  # type: ignore[misc]

    def _rollback(self) -> None:
        # set_config is transactional: a rollback undoes it without telling us.
        self._applied = None
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        # Runs inside an aborted transaction, where any statement before ROLLBACK TO would fail.
        self._in_savepoint_rollback = True
        try:
            super()._savepoint_rollback(sid)  # type: ignore[misc]
        finally:
            self._in_savepoint_rollback = False
            self._applied = None

    def close_if_health_check_failed(self) -> None:
        # Django asks with a round trip. A server that has ended a connection says so, and what it says lies there to be read.
        if (
            self.health_check_enabled
            and not self.health_check_done
            and self.connection is not None
            and time.monotonic() - self._used_at < TRUSTED_S
            and not _has_news(self.connection)
        ):
            self.health_check_done = True
        super().close_if_health_check_failed()

    def create_cursor(self, name: str | None = None) -> Any:
        self._used_at = time.monotonic()
        use_noted(self)
        wanted = LOGIN if _login_role.get() else current()
        if self._applied != wanted and not self._in_savepoint_rollback:
            role, tenant = {LOGIN: ("none", ""), ALL: (PLATFORM_ROLE, "")}.get(wanted, (APP_ROLE, wanted))
            self.connection.execute(
                "SELECT set_config('role', %s, false), set_config('app.tenant_id', %s, false)", (role, tenant)
            )
            self._applied = wanted
        return super().create_cursor(name)

    @contextmanager
    def _nodb_cursor(self) -> Iterator[Any]:
        # Making and dropping databases (tests) is the login role's work.
        with as_login_role(), super()._nodb_cursor() as cursor:
            yield cursor


def _has_news(connection: Any) -> bool:
    """Tell whether something came while nothing was asked, or the line is closed."""
    if connection.closed:
        return True
    line = select.poll()
    line.register(connection.fileno(), select.POLLIN)
    return bool(line.poll(0))

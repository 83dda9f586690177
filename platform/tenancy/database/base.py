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

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db.backends.postgresql import base

from tenancy.scope import ALL, current

APP_ROLE = "groundwork_rw"
PLATFORM_ROLE = "groundwork_platform"
LOGIN = "!"

_login_role: ContextVar[bool] = ContextVar("login_role", default=False)


@contextmanager
def as_login_role() -> Iterator[None]:
    """Run the block as the role that logged in (the owner of the tables): migrations and walls only."""
    token = _login_role.set(True)
    try:
        yield
    finally:
        _login_role.reset(token)


class DatabaseWrapper(base.DatabaseWrapper):
    _applied: str | None = None
    _in_savepoint_rollback = False

    def get_new_connection(self, conn_params: Any) -> Any:
        self._applied = None
        return super().get_new_connection(conn_params)

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

    def create_cursor(self, name: str | None = None) -> Any:
        wanted = LOGIN if _login_role.get() else current()
        if self._applied != wanted and not self._in_savepoint_rollback:
            role, tenant = {
                LOGIN: ("none", ""),
                ALL: (PLATFORM_ROLE, ""),
            }.get(wanted, (APP_ROLE, wanted))
            self.connection.execute(
                "SELECT set_config('role', %s, false), set_config('app.tenant_id', %s, false)",
                (role, tenant),
            )
            self._applied = wanted
        return super().create_cursor(name)

    @contextmanager
    def _nodb_cursor(self) -> Iterator[Any]:
        # Making and dropping databases (tests) is the login role's work.
        with as_login_role(), super()._nodb_cursor() as cursor:
            yield cursor

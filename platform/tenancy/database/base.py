"""PostgreSQL backend with row-level security driven by ``tenancy.scope``.

Its cursors (``tenancy.database.cursors``) put role and ``app.tenant_id`` in force for one transaction at a time:

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
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base, operations
from django.db.backends.postgresql.psycopg_any import BaseTzLoader, register_tzloader
from django.db.backends.utils import debug_transaction
from psycopg.types.array import ListDumper

from tenancy.database.cursors import (
    APP_ROLE,
    LOGIN,
    PLATFORM_ROLE,
    ScopedCursor,
    ScopedServerCursor,
    as_login_role,
    commit_and_wait,
    holds_up,
    scope_forget,
    scope_wanted,
    scope_watch,
    tenant_named,
)
from tenancy.database.prepared import Prepared
from tenancy.database.replica import REPLICA
from tenancy.database.waiting import use_noted

__all__ = ["APP_ROLE", "LOGIN", "PLATFORM_ROLE", "DatabaseWrapper", "as_login_role"]

TRUSTED_S = 5.0
"""Seconds since its last statement for which a connection that is quiet counts as alive."""


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

    def dump(self, obj: list[Any]) -> Any:
        """Return an array as text; one of integers by itself, as no number needs quotes."""
        if set(map(type, obj)) == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        return super().dump(obj)


class MomentLoader(BaseTzLoader):  # type: ignore[misc]
    """Loads moments of a connection that tells them in UTC, as all of ours do.

    Django's loader takes each apart by a regular expression, in Python: 13 times as long. It still reads what Python's own
    notation can't say: infinity, and years beyond four digits or before Christ.
    """

    timezone = UTC

    def load(self, data: Any) -> datetime:
        text = bytes(data)
        if text[4:5] == b"-" and text.endswith(b"+00"):
            return datetime.fromisoformat(text.decode())
        moment: datetime = super().load(data)
        return moment


class DatabaseOperations(operations.DatabaseOperations):
    compiler_module = "tenancy.database.compiler"

    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> Any:
        """Return what was sent, with the statement itself for one that is prepared; arguments and result are Django's."""
        behind = getattr(cursor, "called_behind", None)
        if behind is None:
            return super().last_executed_query(cursor, sql, params)
        return behind + self.compose_sql(tenant_named(sql, scope_wanted()), params)


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    _used_at = 0.0
    health_check_done: bool
    health_check_enabled: bool

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": ScopedCursor}

    def get_new_connection(self, conn_params: Any) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_dumper(list, PlainListDumper)
        if self.timezone is UTC:
            connection.adapters.register_loader("timestamptz", MomentLoader)
        scope_watch(connection)
        if "prepared" not in vars(connection):  # a pool hands out those that have it
            connection.prepared = Prepared(connection)
        return connection

    def _commit(self) -> None:
        if self.connection is None or not holds_up(self.connection):
            super()._commit()  # type: ignore[misc]
            return
        with debug_transaction(self, "COMMIT"), self.wrap_database_errors:
            commit_and_wait(self.connection)

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        if self.connection is not None:
            self.connection.is_awaited = False

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        scope_forget(self.connection)  # what was set since the savepoint is taken back with it

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
        if not name:
            return super().create_cursor()
        # Outside of a transaction it outlives the one that declares it.
        cursor = ScopedServerCursor(  # type: ignore[call-overload]
            self.connection, name=name, scrollable=False, withhold=self.connection.autocommit
        )
        register_tzloader(self.timezone, cursor)
        return cursor

    def chunked_cursor(self) -> Any:
        # A cursor of the server's outlives its transaction only on a server connection that stays with us: not behind a
        # pooler, which the replica's address may be that of.
        is_pooled = settings.LISTEN_DATABASE is not None or self.alias == REPLICA
        if is_pooled and not self.in_atomic_block:
            return self.cursor()
        return super().chunked_cursor()

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

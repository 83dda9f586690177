"""Cursors that put the tenant scope in force for the transaction of each statement, and for nothing longer.

Role and ``app.tenant_id`` are set by ``SET LOCAL`` in front of the first statement of a transaction, in the same
message: no round trip of its own, and nothing that stays on the connection. So a transaction pooler (PgBouncer) or a
distributed Postgres (Citus) carries nothing from one request into another, and a connection that nobody gave a scope
sees no tenant's rows.

What comes again is prepared, and its EXECUTE stands in its place (``tenancy.database.prepared``).

On a database that Citus distributes (``GROUNDWORK_CITUS``) they are messages of their own, in a transaction that is opened for them.

A statement outside a transaction is a transaction of its own: Postgres takes the statements of one message as one. What
is refused inside a transaction (``CREATE INDEX CONCURRENTLY``) needs the login role, which sets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Self

import psycopg
from django.conf import settings
from django.db.backends.postgresql.base import Cursor, ServerSideCursor
from psycopg import sql
from psycopg.abc import Params, PQGen, Query
from psycopg.adapt import Transformer
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import Format, TransactionStatus

from tenancy.database.prepared import OWN
from tenancy.scope import ALL, current

APP_ROLE = "groundwork_rw"
PLATFORM_ROLE = "groundwork_platform"
LOGIN = "!"
"""The scope of set-up code: the role that logged in, which owns the tables."""
UNKNOWN = "?"
"""Of a connection: what is in force has to be set again."""
STALE = (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidSqlStatementName)
"""What a prepared statement fails with when its table's columns have changed, or somebody has reset the connection."""

_HOLD_UP = ("pg_notify(", 'INSERT INTO "tenancy_auditevent"')
"""In statements of a transaction whose commit others wait for: Postgres lets one that notifies commit at a time, and a
workspace's log of events is a chain."""
# A hundred who ask at once would wait for a hundred writes to the disk. So such a commit isn't waited for while it has that
# lock, but right after: the log is sequential, and what this small record of it waits for, together with all others, has the
# commit before it on disk.
_COMMIT_AND_WAIT = (
    "SET LOCAL synchronous_commit TO off; COMMIT; SELECT pg_logical_emit_message(true, 'groundwork', '')"
)
_login_role: ContextVar[bool] = ContextVar("login_role", default=False)


@contextmanager
def as_login_role() -> Iterator[None]:
    """Run the block as the role that logged in (the owner of the tables): migrations and row-level security only."""
    token = _login_role.set(True)
    try:
        yield
    finally:
        _login_role.reset(token)


def scope_wanted() -> str:
    """Return the scope that the next statement has to run in: ``tenancy.scope.current()`` or ``LOGIN``."""
    return LOGIN if _login_role.get() else current()


def _role(wanted: str) -> str:
    return {LOGIN: "NONE", ALL: PLATFORM_ROLE}.get(wanted, APP_ROLE)


def _scope_values(wanted: str) -> tuple[str, str]:
    """Return the role of a scope and the tenant's id, "" for no one tenant."""
    tenant = "" if wanted in (LOGIN, ALL) else wanted
    if tenant and not tenant.isdecimal():  # it becomes part of a statement
        raise ValueError("a tenant scope is a number")
    return _role(wanted), tenant


@lru_cache(maxsize=4096)
def scope_statements(wanted: str) -> tuple[str, str]:
    """Return the two statements that put a scope in force until the end of the transaction."""
    role, tenant = _scope_values(wanted)
    return f"SET LOCAL ROLE {role}", f"SET LOCAL app.tenant_id = '{tenant}'"


@lru_cache(maxsize=4096)
def _scope_call(wanted: str, is_planned_once: bool) -> bytes:
    """Return the one statement that does the same, for where SET LOCAL is warned of: first in a pipeline."""
    role, tenant = _scope_values(wanted)
    values = {"role": role, "app.tenant_id": tenant}
    if is_planned_once:
        values["plan_cache_mode"] = "force_generic_plan"
    calls = (f"set_config('{name}', '{value}', true)" for name, value in values.items())
    return f"SELECT {', '.join(calls)}".encode()


def not_waited() -> str:
    """Return what says in RETURNING that the commit of this transaction isn't waited for; Citus takes no such call there."""
    return "NULL" if settings.CITUS else "set_config('synchronous_commit', 'off', true)"


@lru_cache(maxsize=4096)
def scope_sql(wanted: str) -> str:
    """Return both statements as what goes in front of another."""
    return _joined(scope_statements(wanted))


def tenant_named(query: Any, scope: str) -> Any:
    """Return a statement with the tenant's id in place of each ``own_tenant()``.

    A router reads the statement alone, so one that is written by hand says whose rows it means; querysets say it by themselves.

    Args:
        query: as it goes to psycopg; only text is looked at.
        scope: in which it runs.

    Raises:
        RuntimeError: it isn't one tenant's.
    """
    if not isinstance(query, str) or OWN not in query:
        return query
    if not scope.isdecimal():
        raise RuntimeError(f"{OWN} has no value outside of a tenant's scope")
    return query.replace(OWN, scope)


def _may_prepare(scope: str) -> bool:
    return scope != LOGIN and not settings.CITUS and bool(settings.PREPARE_STATEMENTS)


def scope_forget(raw: Any) -> None:
    """Note that a connection may have lost what was set: after a rollback to a savepoint."""
    raw.scope_applied = UNKNOWN


def holds_up(raw: Any) -> bool:
    """Tell whether others wait for the commit of the transaction that a connection has open."""
    is_awaited: bool = getattr(raw, "is_awaited", False)
    return is_awaited and raw.pgconn.transaction_status == TransactionStatus.INTRANS and not settings.CITUS


def commit_and_wait(raw: Any) -> None:
    """Commit such a transaction, and return when it is on disk. Raises psycopg.Error."""
    raw.is_awaited = False
    psycopg.ClientCursor(raw).execute(_COMMIT_AND_WAIT)


def scope_watch(raw: Any) -> None:
    """Let a connection forget what was set where psycopg begins or ends a transaction by itself: no cursor sees that."""
    if "transaction" in vars(raw):
        return
    begin = raw.transaction

    @contextmanager
    def transaction(*args: Any, **options: Any) -> Iterator[Any]:
        scope_forget(raw)
        try:
            with begin(*args, **options) as opened:
                yield opened
        finally:
            scope_forget(raw)

    raw.transaction = transaction


def _missing(raw: Any) -> str | None:
    """Return the scope that a connection lacks for its next statement, None when it has what it needs."""
    status = raw.pgconn.transaction_status
    if status == TransactionStatus.INERROR:
        return None  # only ROLLBACK is taken now
    if status == TransactionStatus.IDLE:
        raw.scope_applied = LOGIN  # what a transaction set ended with it
    wanted = scope_wanted()
    return None if getattr(raw, "scope_applied", UNKNOWN) == wanted else wanted


class _Scoped(psycopg.Cursor[Any]):
    """Puts the scope in force before whatever it sends by a message of its own."""

    _conn: Any

    def _apply(self) -> None:
        """Put the scope in force in the transaction that is open, or that begins with it."""
        wanted = _missing(self._conn)
        if wanted is None:
            return
        if self._conn.autocommit and self._conn.pgconn.transaction_status == TransactionStatus.IDLE:
            raise RuntimeError("only execute() puts the scope in force outside of a transaction")
        self._conn.scope_applied = UNKNOWN
        for statement in scope_statements(wanted) if settings.CITUS else (scope_sql(wanted),):
            psycopg.ClientCursor(self._conn).execute(statement)
        self._conn.scope_applied = wanted

    def _transaction(self) -> AbstractContextManager[Any]:
        """Open a transaction unless there is one, or the next statement begins one."""
        raw = self._conn
        if raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE:
            opened: AbstractContextManager[Any] = raw.transaction()
            return opened
        return nullcontext()

    def executemany(self, query: Query, params_seq: Iterable[Params], *, returning: bool = False) -> None:
        """Run a statement once for each of several rows; arguments and errors are psycopg's."""
        query = tenant_named(query, scope_wanted())
        with self._transaction():
            self._apply()
            super().executemany(query, params_seq, returning=returning)

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield rows while they arrive, inside a transaction; arguments and errors are psycopg's."""
        self._apply()
        yield from super().stream(*args, **kwargs)

    @contextmanager
    def copy(self, *args: Any, **kwargs: Any) -> Iterator[psycopg.Copy]:
        """Send or receive rows in bulk, inside a transaction; arguments and errors are psycopg's."""
        self._apply()
        with super().copy(*args, **kwargs) as copy:
            yield copy


class ScopedCursor(_Scoped, Cursor):
    """Django's cursor; the scope goes in front of a statement, in its message.

    Attributes:
        called_behind: what stood in front of the EXECUTE that was sent last; None when the statement itself was sent.
    """

    called_behind: str | None = None
    front: tuple[str, ...] = ()
    """Statements that go in front of each one outside of a transaction; see ``local_settings``."""

    def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        """Run a statement in the scope of this moment; arguments, result and errors are psycopg's."""
        written, query = query, tenant_named(query, scope_wanted())
        self.called_behind = None
        if not self._conn.autocommit and isinstance(query, str) and any(one in query for one in _HOLD_UP):
            self._conn.is_awaited = True
        wanted = _missing(self._conn)
        if wanted is not None and settings.CITUS:
            # It sends the whole message of a SET LOCAL to its other machines, with whatever else is in there.
            with self._transaction():
                self._apply()
                return super().execute(query, params, **options)
        is_first = self._conn.pgconn.transaction_status == TransactionStatus.IDLE
        call = None if options else self._call(written, params)
        if call is None:
            return self._send(wanted, query, params, **options)
        try:
            self._send_call(wanted, call)
        except STALE:
            self._conn.prepared.forget()
            if not is_first:
                raise  # what came before in this transaction is lost; the next one runs what isn't prepared
            if self._conn.pgconn.transaction_status == TransactionStatus.INERROR:
                self._conn.rollback()
            return self._send(_missing(self._conn), query, params)
        self.called_behind = ("" if wanted is None else scope_sql(wanted)) + _joined(self.front)
        return self

    def _call(self, query: Any, params: Any) -> bytes | None:
        scope = scope_wanted()
        if not _may_prepare(scope):
            return None
        call: bytes | None = self._conn.prepared.call(query, params, _role(scope), scope)
        return call

    def _send_call(self, wanted: str | None, call: bytes) -> None:
        """Send an EXECUTE, behind the scope that its transaction lacks."""
        raw = self._conn
        front = (*(() if wanted is None else scope_statements(wanted)), *self.front)
        before, raw.scope_applied = raw.scope_applied, UNKNOWN
        with raw.lock:
            raw.wait(self._called(_joined(front).encode() + call))
        raw.scope_applied = before if wanted is None else wanted

    # psycopg's own way makes a query of what is ready to be sent, looks whether to prepare it, and waits for a BEGIN of its
    # own: a round trip for each transaction, and a sixth of the processor time of one that has one statement.
    def _called(self, message: bytes) -> PQGen[None]:
        """Send what is complete, in one message with the BEGIN that its transaction lacks, and keep the last result."""
        raw, wire = self._conn, self._pgconn
        if self.closed:
            raise psycopg.InterfaceError("the cursor is closed")
        if not raw.autocommit and wire.transaction_status == TransactionStatus.IDLE:
            message = b"%s; %s" % (raw._get_tx_start_command(), message)
        self._reset()
        self._tx = Transformer(self)
        wire.send_query(message)
        results = yield from execute(wire)
        self._check_results(results)
        self._set_results(results[-1:])

    def _send(self, wanted: str | None, query: Any, params: Params | None, **options: Any) -> Self:
        """Send a statement, behind the scope that its transaction lacks."""
        scope = () if wanted is None else scope_statements(wanted)
        front = (*scope, *self.front)
        if not front:
            return super().execute(query, params, **options)
        before = self._conn.scope_applied
        # Unknown until it is done: a value that psycopg cannot send leaves the transaction as it was.
        self._conn.scope_applied = UNKNOWN
        super().execute(_behind(_joined(front), query), params, **options)
        self._conn.scope_applied = before if wanted is None else wanted
        return self.set_result(len(front))


@contextmanager
def local_settings(cursor: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Let what a cursor executes in the block run with settings of Postgres that hold for its transaction alone.

    Outside of a transaction they go in front of a statement, in its message, as role and tenant do. Inside of one they are
    set once, and hold until its end.

    Args:
        cursor: Django's, of this connection.
        values: by name; both from code, never from input.
    """
    own: ScopedCursor = cursor.cursor
    raw = own._conn
    if not values:
        yield
        return
    front = tuple(f"SET LOCAL {name} = '{value}'" for name, value in values.items())
    if settings.CITUS or raw.pgconn.transaction_status != TransactionStatus.IDLE:
        with own._transaction():
            for statement in front:
                cursor.execute(statement)
            yield
        return
    own.front = front
    try:
        yield
    finally:
        own.front = ()


class ScopedServerCursor(_Scoped, ServerSideCursor):
    """Django's cursor whose rows stay with the server until they are asked for."""

    def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        """Declare the cursor in the scope of this moment; arguments, result and errors are psycopg's."""
        query = tenant_named(query, scope_wanted())
        with self._transaction():  # one WITH HOLD outlives it
            self._apply()
            return super().execute(query, params, **options)


class BinaryCursor(_Scoped):
    """A cursor that receives values in binary: packed numbers come as they are, not as hexadecimal text.

    One message can't hold two statements in the protocol that knows binary. So outside of a transaction, what is prepared
    travels behind its scope in a pipeline: one round trip, and one transaction, which ends with the pipeline.

    Args:
        is_planned_once: one plan fits all values, so that what is prepared isn't planned again for each.
    """

    def __init__(self, raw: psycopg.Connection[Any], *, is_planned_once: bool = False) -> None:
        super().__init__(raw)
        self.format = Format.BINARY
        self._is_planned_once = is_planned_once

    def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        """Run a statement in the scope of this moment; arguments, result and errors are psycopg's."""
        bound = None if options else self._bound(query, params)
        if bound is not None:
            try:
                with self._conn.lock:
                    self._conn.wait(self._piped(*bound))
                return self
            except STALE:
                self._conn.prepared.forget()
        query = tenant_named(query, scope_wanted())
        with self._transaction():
            self._apply()
            return super().execute(query, params, **options)

    def _bound(self, query: Any, params: Any) -> tuple[bytes, bytes, Sequence[Any]] | None:
        """Return what puts the scope in force, a preparation's name and its values; None for what isn't piped."""
        raw, scope = self._conn, scope_wanted()
        is_free = raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE
        if not is_free or not _may_prepare(scope):
            return None
        bound = raw.prepared.bound(query, params, _role(scope), scope)
        return None if bound is None else (_scope_call(scope, self._is_planned_once), *bound)

    def _piped(self, scope: bytes, name: bytes, values: Sequence[Any]) -> PQGen[None]:
        yield from self._start_query()
        wire = self._pgconn
        wire.enter_pipeline_mode()
        wire.send_query_params(scope, None)
        wire.send_query_prepared(name, values, result_format=self.format)
        wire.pipeline_sync()
        yield from send(wire)
        scoped = yield from fetch_many(wire)
        results = yield from fetch_many(wire)
        yield from fetch_many(wire)  # the sync's, which comes also where one before it has failed
        wire.exit_pipeline_mode()
        self._check_results(scoped)
        self._check_results(results)
        self._set_results(results)


class BinaryServerCursor(_Scoped, psycopg.ServerCursor[Any]):
    """The same for many rows, read in pieces inside a transaction."""

    def __init__(self, raw: psycopg.Connection[Any], name: str) -> None:
        super().__init__(raw, name)
        self.format = Format.BINARY

    def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        """Declare the cursor in the scope of this moment; arguments, result and errors are psycopg's."""
        query = tenant_named(query, scope_wanted())
        self._apply()
        return super().execute(query, params, **options)


@lru_cache(maxsize=4096)
def _joined(statements: tuple[str, ...]) -> str:
    """Return statements as what goes in front of another."""
    return "; ".join((*statements, "")) if statements else ""


def _behind(prefix: str, query: Any) -> Any:
    if isinstance(query, str):
        return prefix + query
    if isinstance(query, bytes):
        return prefix.encode() + query
    return sql.SQL(prefix) + query

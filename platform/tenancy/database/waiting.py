"""Nobody holds a database connection while waiting for something else.

A thread that has asked the database anything keeps its connection until its request ends, and a web process has few of
them. So whatever waits gives its connection back first, in one of three ways:

- a coroutine reaches the database by ``await in_db(function, ...)`` alone, which holds a connection for that function;
- a thread that waits for a coroutine does so by ``wait_for`` or ``loop_run``;
- a thread that waits for anything else (a server, a process, another thread) calls ``connections_let_go`` before.

``asgiref``'s own bridges and ``asyncio.run`` are banned by the linter where requests are served, and ``net_guard`` calls
``connections_let_go`` before every request it sends, so that a new route has little occasion to forget it. What cannot be
given back is a connection with an open transaction: that is an error, raised where ``STRICT_WAITS`` is set (tests)
and logged elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import structlog
from asgiref.sync import async_to_sync, sync_to_async  # noqa: TID251 - the bridges are built here
from django.conf import settings
from django.db import connection, connections

log = structlog.get_logger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_held: ContextVar[set[Any] | None] = ContextVar("connections_held", default=None)


class WaitsWithConnection(RuntimeError):
    """Something is waited for while a database connection is held: a programming error."""


def connections_let_go() -> None:
    """Give this thread's connections back to the pool, because what follows waits for something else.

    Without a pool (worker, commands) they stay open, and nothing happens. A test case's own transaction counts for none.

    Raises:
        WaitsWithConnection: a transaction is open, and ``STRICT_WAITS`` is set.
    """
    for own in connections.all(initialized_only=True):
        if _has_transaction(own):
            _complain("a transaction is open")
        else:
            connection_let_go(own)


def connection_let_go(own: Any) -> None:
    """Give one connection, which has no transaction open, back to its pool; without a pool it stays open."""
    # Without a pool, closing would help nobody, and would end what a long job has open: a cursor, a lock of its session.
    if not own.in_atomic_block and "pool" in own.settings_dict["OPTIONS"]:
        own.close_if_unusable_or_obsolete()
    held = _held.get()
    if held is not None:
        held.discard(own)


def in_transaction() -> bool:
    """Tell whether this thread has a transaction open; a test case's own counts for none."""
    return any(_has_transaction(own) for own in connections.all(initialized_only=True))


def _has_transaction(own: Any) -> bool:
    return any(not block._from_testcase for block in own.atomic_blocks)


async def in_db(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run ORM code for a coroutine, in the thread of its request, which holds a connection no longer than that."""

    def call() -> R:
        outer = _held.get()
        # What is used here is noted apart: other tasks of the request may wait meanwhile, and hold nothing by it.
        token = _held.set(set() if outer is not None else None)
        try:
            return function(*args, **kwargs)
        finally:
            _held.reset(token)
            connections_let_go()

    return await sync_to_async(call)()


def wait_for(function: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what a coroutine function returns, from a thread that holds no connection meanwhile.

    It runs in the event loop that serves the request; ``in_db`` brings it back to this thread.
    """
    connections_let_go()
    answer: R = async_to_sync(function)(*args, **kwargs)
    return answer


def loop_run(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end in an event loop of this thread's, which holds no connection meanwhile."""
    try:
        connections_let_go()
    except BaseException:
        main.close()
        raise
    return asyncio.run(main)  # noqa: TID251 - the bridges are built here


def connection_params() -> dict[str, Any]:
    """Return what psycopg needs to connect to Django's database by itself, without its pool."""
    params: dict[str, Any] = dict(connection.get_connection_params())
    for own_to_django in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(own_to_django, None)
    return params


@contextmanager
def holding_watched() -> Iterator[set[Any]]:
    """Note which connections the block uses in any of its threads and tasks, and has not let go; yields them."""
    known = _held.get()
    if known is not None:  # the server watches a request from its first byte to its last
        yield known
        return
    held: set[Any] = set()
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)


def use_noted(own: Any) -> None:
    """Note that a connection is used; the database backend calls it."""
    held = _held.get()
    if held is not None:
        held.add(own)


def thread_is_holding() -> bool:
    """Tell whether this thread has used a connection for the request that runs here, and has not let it go."""
    held = _held.get()
    return held is not None and any(own in held for own in connections.all(initialized_only=True))


def holding_refuse(what: str) -> None:
    """Complain when the request that runs here holds a connection; to be called where something is waited for.

    Raises:
        WaitsWithConnection: it does, and ``STRICT_WAITS`` is set.
    """
    if _held.get():
        _complain(f"{what} is waited for")


def _complain(what: str) -> None:
    message = f"{what} while a database connection is held: see tenancy.database.waiting"
    if settings.STRICT_WAITS:
        raise WaitsWithConnection(message)
    log.error("waits_with_connection", message=message, stack_info=True)

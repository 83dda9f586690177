"""Follow a run: rows after a position, then live ones, from a small connection pool of its own.

Streams are many and long, so they hold no database connection while they wait. Reads that ask for the same thing at the
same moment (many tabs on one run) share one query, and so do those of a workspace's runs that are woken together.
"""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

from django.conf import settings
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from basics.event_stream import HEARTBEAT, HEARTBEAT_S, HELLO, frame
from basics.metrics import STREAMS_OPEN
from runs.hub import hub, stops
from runs.transcript import FINISHED
from tenancy.database.cursors import APP_ROLE, STALE, scope_sql, scope_statements, tenant_named
from tenancy.database.prepared import Prepared
from tenancy.database.waiting import connection_params

LOOK_S = 60.0
"""How long a stream trusts that it would have been woken, before it looks for itself."""
POOL_SIZE = 4
READ_LIMIT = 1000

TOGETHER = 50
"""Runs that one statement reads at most."""

# Each run by its key, whatever the planner thinks: a plan for all workspaces may take one's runs for few, and read them all.
_AFTER = """
SELECT g.place, r.status IN ('queued', 'running', 'parked') AS is_active, e.seq, e.kind, e.data
FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS g(run, after, place)
JOIN LATERAL (SELECT id, tenant_id, status FROM runs_run WHERE tenant_id = own_tenant() AND id = g.run OFFSET 0) r ON true
LEFT JOIN LATERAL (
    SELECT seq, kind, data FROM runs_runevent WHERE tenant_id = r.tenant_id AND run_id = r.id AND seq > g.after
    ORDER BY seq LIMIT %s) e ON true
ORDER BY g.place, e.seq
"""
# Postgres would plan it each time: knowing how many runs are asked for makes a plan look cheaper. Planning takes four times
# what reading does.
_PLANNED_ONCE = {_AFTER: b"SET LOCAL plan_cache_mode = 'force_generic_plan'; "}

T = TypeVar("T")
EventRow = tuple[int, str, dict[str, Any]]

__all__ = [
    "event_frames",
    "events_after",
    "events_follow",
    "hub",
    "rows_read",
]


class _Connection(AsyncConnection[Any]):
    """A connection with what it has prepared."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared = Prepared(self)


class _Reader:
    """Connections and shared reads of one event loop."""

    def __init__(self) -> None:
        self._pool: AsyncConnectionPool[_Connection] | None = None
        self._opening = asyncio.Lock()
        self._shared: dict[tuple[Any, ...], asyncio.Task[Any]] = {}
        self._asked: dict[int, dict[tuple[int, int], None]] = {}

    async def events(self, tenant_id: int, run_id: int, after: int) -> list[dict[str, Any]]:
        """Return the rows of ``_AFTER`` for a run; those who ask for runs of one workspace in one moment share a read."""
        self._asked.setdefault(tenant_id, {})[run_id, after] = None
        found = await self.share((tenant_id, _AFTER), lambda: self._events_read(tenant_id))
        return found[run_id, after]

    async def _events_read(self, tenant_id: int) -> dict[tuple[int, int], list[dict[str, Any]]]:
        asked = list(self._asked.pop(tenant_id))
        found: dict[tuple[int, int], list[dict[str, Any]]] = {one: [] for one in asked}
        for begin in range(0, len(asked), TOGETHER):
            some = asked[begin : begin + TOGETHER]
            given = ([run for run, _ in some], [after for _, after in some], READ_LIMIT)
            for row in await self.read(tenant_id, _AFTER, given):
                found[some[row["place"] - 1]].append(row)
        return found

    async def pool(self) -> AsyncConnectionPool[_Connection]:
        async with self._opening:
            if self._pool is None:
                self._pool = AsyncConnectionPool(
                    kwargs={**connection_params(), "autocommit": True},
                    connection_class=_Connection,
                    min_size=1,
                    max_size=POOL_SIZE,
                    timeout=15,
                    max_idle=120,
                    open=False,
                    name="runs-stream",
                )
                await self._pool.open()
        return self._pool

    async def read(self, tenant_id: int, query: str, params: Sequence[Any]) -> list[dict[str, Any]]:
        pool = await self.pool()
        async with pool.connection() as conn, AsyncClientCursor(conn, row_factory=dict_row) as cursor:
            # One message with both statements, which Postgres takes as one transaction: a quarter of the processor time
            # of four statements in a pipeline, and streams read at every heartbeat. psycopg quotes the values.
            scope = str(int(tenant_id))
            if not settings.CITUS:
                await self._executed(conn, cursor, scope, query, params)
                await cursor.set_result(-1)
                return await cursor.fetchall()
            query = tenant_named(query, scope)
            async with (
                conn.transaction()
            ):  # it takes the message of a SET LOCAL as a whole (tenancy.database.cursors)
                for statement in scope_statements(scope):
                    await cursor.execute(statement)
                await cursor.execute(query, params)
                return await cursor.fetchall()

    async def _executed(
        self, conn: _Connection, cursor: AsyncClientCursor[Any], scope: str, query: str, params: Any
    ) -> None:
        """Send a statement behind its scope; what comes again is prepared, as each reader asks again with each write."""
        prepared = conn.prepared
        front, call = scope_sql(scope), None
        if settings.PREPARE_STATEMENTS:
            if prepared.is_due:  # The connection stays ours meanwhile: ``share`` lets nobody cancel a read.
                await asyncio.to_thread(prepared.catch_up)
            call = prepared.call(query, params, APP_ROLE, scope, may_send=False)
        if call is not None:
            try:
                await cursor.execute(front.encode() + _PLANNED_ONCE.get(query, b"") + call)
                return
            except STALE:
                prepared.forget()
        await cursor.execute(f"{front}{tenant_named(query, scope)}", params)

    async def share(self, key: tuple[Any, ...], make: Callable[[], Awaitable[T]]) -> T:
        task = self._shared.get(key)
        if task is None:

            async def begin() -> T:
                await asyncio.sleep(0)  # whoever was woken by the same notification joins here
                # A read under way may have begun before what wakes the next reader: it reads for itself.
                self._shared.pop(key, None)
                return await make()

            task = self._shared[key] = asyncio.ensure_future(begin())
        # One reader that goes away must not cancel the read of the others.
        result: T = await asyncio.shield(task)
        return result

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None


_readers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader] = weakref.WeakKeyDictionary()


def _reader() -> _Reader:
    loop = asyncio.get_running_loop()
    found = _readers.get(loop)
    if found is None:
        found = _readers[loop] = _Reader()
    return found


async def aclose() -> None:
    """Close the running loop's listeners and connections (tests; a server's end closes them too)."""
    await hub.here.aclose()
    await stops.here.aclose()
    await _reader().aclose()


async def rows_read(tenant_id: int, query: str, params: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of a query that runs as the application in this tenant, behind its walls.

    Equal reads asked for in the same moment are one.
    """
    reader = _reader()
    return await reader.share((tenant_id, query, *params), lambda: reader.read(tenant_id, query, params))


async def events_after(tenant_id: int, run_id: int, seq: int) -> tuple[list[EventRow], bool]:
    """Return a run's events after ``seq`` in order, as (seq, kind, data), and whether more may come.

    Both are of one moment: nothing more comes of a run that is over or gone.
    """
    found: list[EventRow] = []
    while True:
        after = found[-1][0] if found else seq
        rows = await _reader().events(tenant_id, run_id, after)
        events = [(r["seq"], r["kind"], r["data"]) for r in rows if r["seq"] is not None]
        found += events
        if len(events) < READ_LIMIT:
            return found, bool(rows) and rows[0]["is_active"]


@asynccontextmanager
async def _counted_open() -> AsyncIterator[None]:
    STREAMS_OPEN.change(by=1)
    try:
        yield
    finally:
        STREAMS_OPEN.change(by=-1)


async def events_follow(tenant_id: int, run_id: int, seq: int) -> AsyncGenerator[list[EventRow] | None, None]:
    """Yield a run's events after ``seq`` in batches as they come; None when it was quiet for a heartbeat.

    While nothing wakes it, it looks by itself every ``LOOK_S``, or at each heartbeat when notifications do not arrive.
    Ends after the batch that holds the ``finished`` event. A run that had finished by ``seq`` yields nothing.
    """
    async with hub.subscribe(tenant_id, f"run:{run_id}") as waker, _counted_open():
        while True:
            batch, is_active = await events_after(tenant_id, run_id, seq)
            if batch:
                seq = batch[-1][0]
                yield batch
            if not is_active or any(kind == FINISHED for _, kind, _ in batch):
                return
            looked = time.monotonic()
            while not await waker.wait(HEARTBEAT_S):
                yield None
                if time.monotonic() - looked >= LOOK_S or not hub.here.is_listening:
                    break


async def event_frames(
    tenant_id: int,
    run_id: int,
    after: int,
    shown: Callable[[list[EventRow]], Awaitable[list[EventRow]]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """Yield a run's events as JSON frames: ``event`` is the kind, ``id`` the seq; ends with ``event: end``.

    Args:
        shown: returns events as the reader may see them; None for all that is in them.
    """
    yield HELLO
    seq = after
    async with aclosing(events_follow(tenant_id, run_id, after)) as batches:
        async for batch in batches:
            if batch is None:
                yield HEARTBEAT
                continue
            seq = batch[-1][0]
            if shown is not None:
                batch = await shown(batch)
            yield b"".join(
                frame(json.dumps(data, ensure_ascii=False), seq=number, event=kind)
                for number, kind, data in batch
            )
    yield frame("{}", seq=seq, event="end")

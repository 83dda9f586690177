"""Wake whoever waits for a topic: one LISTEN connection per event loop and channel, however many wait.

A notification is only a hint: rows are the truth, and after a reconnect everybody is woken to read again. Web processes
use ``hub`` for event streams, worker processes ``stops`` to hear of stop requests.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import structlog
from psycopg import sql

from jobs.notify import CHANNEL, STOP_CHANNEL
from tenancy.database.direct import direct_params
from tenancy.database.waiting import holding_refuse

log = structlog.get_logger(__name__)

RECONNECT_S = 0.5
ALIVE_CHECK_S = 30.0
LISTEN_WITHIN_S = 2.0


class Waker:
    """Somebody who waits; remembers a wake-up that came while nobody was waiting."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Let ``wait`` return, now or when it is called next."""
        self._event.set()

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for a wake-up; False when none came in ``timeout_s`` seconds, of which None has no end.

        Raises:
            WaitsWithConnection: the request that waits holds a database connection, where that is checked strictly.
        """
        holding_refuse("a notification")
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class LoopHub:
    """The hub of one event loop for one channel."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._topics: dict[str, set[Waker]] = {}
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    @property
    def is_listening(self) -> bool:
        """Tell whether notifications arrive now; while they do not, poll."""
        return self._listening.is_set()

    @asynccontextmanager
    async def subscribe(self, tenant_id: int, topic: str) -> AsyncIterator[Waker]:
        """Yield a waker for a topic such as ``run:12``. Subscribe before the first read, so that nothing falls between.

        Does not wait for ever: when the database does not answer, the waker starts without notifications and gets a
        wake-up as soon as they arrive again.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="hub")
        key, waker = f"{tenant_id}:{topic}", Waker()
        self._topics.setdefault(key, set()).add(waker)
        try:
            if not self._listening.is_set():
                try:
                    async with asyncio.timeout(LISTEN_WITHIN_S):
                        await self._listening.wait()
                except TimeoutError:
                    log.warning("hub_not_listening", topic=topic)
            yield waker
        finally:
            wakers = self._topics[key]
            wakers.discard(waker)
            if not wakers:
                del self._topics[key]

    async def aclose(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    **direct_params(), autocommit=True
                ) as listener:
                    await self._listen(listener)
            except (psycopg.Error, OSError) as error:
                log.warning("hub_lost_connection", error=str(error))
            finally:
                self._listening.clear()
            await asyncio.sleep(RECONNECT_S)

    async def _listen(self, listener: psycopg.AsyncConnection[Any]) -> None:
        await listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._listening.set()
        for wakers in list(self._topics.values()):  # what was said meanwhile is lost: all read again
            for waker in wakers:
                waker.wake()
        while True:
            async for notification in listener.notifies(timeout=ALIVE_CHECK_S):
                for told in notification.payload.split("\n"):  # one for each run that was written together
                    topic, _, _ = told.partition(" ")
                    for waker in self._topics.get(topic, ()):
                        waker.wake()
            await listener.execute("SELECT 1")  # a line that died silently shows itself here


class Hub:
    """The hub of whatever event loop asks, for one channel."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopHub] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def here(self) -> LoopHub:
        """Return the running loop's own hub."""
        loop = asyncio.get_running_loop()
        found = self._hubs.get(loop)
        if found is None:
            found = self._hubs[loop] = LoopHub(self._channel)
        return found

    def subscribe(self, tenant_id: int, topic: str) -> Any:
        """See ``LoopHub.subscribe``."""
        return self.here.subscribe(tenant_id, topic)


hub = Hub(CHANNEL)
stops = Hub(STOP_CHANNEL)

"""A transport for httpx2 that costs little a piece of a streamed answer: HTTP/1.1 over the event loop's own connections.

For adapters of models, whose answers come a word at a time. It takes TLS settings, limits and the four timeouts as httpx2's
own does, and raises the same errors; it knows no proxy and no HTTP/2. ``http_client`` chooses.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
import urllib.request
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import httpx2

from basics.http_connection import Connection

KEEPALIVE_S = 5.0
"""Seconds for which a connection that nobody uses stays open; those of httpx2."""
ANOTHER_S = 0.25
"""Seconds after which the next address of a name is tried while the one before is silent: RFC 8305."""
Origin = tuple[str, str, int]
_PROXY_VARIABLES = tuple(
    name for kind in ("http", "https", "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
)


def http_client(*, verify: ssl.SSLContext, keepalive: int, connections: int) -> httpx2.AsyncClient:
    """Return a client that follows redirects, through the proxies of the environment where there are any.

    Clients that are open at the same time in one event loop, with the same arguments, share their connections: a run needs
    no handshake with a server that another run is talking to. The last one to close closes them.

    Args:
        verify: checks the certificates of servers.
        keepalive: connections that are kept open between requests.
        connections: at most so many at once.
    """
    if _is_proxied(tuple(map(os.environ.get, _PROXY_VARIABLES))):
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=keepalive)
        return httpx2.AsyncClient(verify=verify, follow_redirects=True, limits=limits)
    return httpx2.AsyncClient(transport=_Share(verify, keepalive, connections), follow_redirects=True)


@lru_cache(maxsize=16)
def _is_proxied(told: tuple[str | None, ...]) -> bool:
    """Tell whether there are proxies; ``told`` is what variables name any, as looking for them takes a millisecond."""
    return bool(urllib.request.getproxies())


_Terms = tuple[ssl.SSLContext, int, int]


class _Share(httpx2.AsyncBaseTransport):
    """One client's share of a transport; it joins in the event loop of its first request."""

    def __init__(self, verify: ssl.SSLContext, keepalive: int, connections: int) -> None:
        self._terms: _Terms = (verify, keepalive, connections)
        self._pool: _Pool | None = None
        self._answers: list[httpx2.Response] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See ``AsyncioTransport``."""
        if self._pool is None:
            self._pool = _pool_here(self._terms)
            self._pool.users += 1
        answer = await self._pool.transport.handle_async_request(request)
        self._answers = [one for one in self._answers if not one.is_closed]
        self._answers.append(answer)
        return answer

    async def aclose(self) -> None:
        """Close what this client has under way, and all connections where nobody else shares them."""
        for answer in self._answers:
            await answer.aclose()
        self._answers.clear()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        pool.users -= 1
        if not pool.users:
            pool.forget()
            await pool.transport.aclose()


@dataclass(slots=True)
class _Pool:
    """A transport with the number of clients that share it."""

    transport: AsyncioTransport
    forget: Callable[[], object]
    users: int = 0


_pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Terms, _Pool]] = (
    weakref.WeakKeyDictionary()
)


def _pool_here(terms: _Terms) -> _Pool:
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    if terms not in pools:
        verify, keepalive, connections = terms
        transport = AsyncioTransport(verify=verify, keepalive=keepalive, connections=connections)
        pools[terms] = _Pool(transport, partial(pools.pop, terms))
    return pools[terms]


class AsyncioTransport(httpx2.AsyncBaseTransport):
    """Connections of one event loop; the arguments are those of ``http_client``."""

    def __init__(self, *, verify: ssl.SSLContext, keepalive: int, connections: int) -> None:
        self._verify, self._keepalive = verify, keepalive
        self._free = asyncio.Semaphore(connections)
        self._idle: dict[Origin, list[tuple[float, Connection]]] = {}
        self._open: set[Connection] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its answer, of which the body is still to be read.

        Raises:
            httpx2.TransportError: the network failed, or something there speaks no HTTP/1.1.
        """
        url = request.url
        if url.scheme not in ("http", "https"):
            raise httpx2.UnsupportedProtocol(f"unknown protocol {url.scheme[:20]!r}", request=request)
        timeouts = request.extensions.get("timeout", {})
        origin = (
            url.scheme,
            url.raw_host.decode("ascii"),
            url.port or (443 if url.scheme == "https" else 80),
        )
        try:
            # Nearly always one is free: no timer is needed then.
            async with asyncio.timeout(timeouts.get("pool") if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError:
            raise httpx2.PoolTimeout("all connections are in use", request=request) from None
        connection: Connection | None = None
        try:
            connection = self._take(origin) or await self._connected(origin, timeouts.get("connect"))
            await connection.send(request, timeout_s=timeouts.get("write"))
            status, headers = await connection.head(timeout_s=timeouts.get("read"))
        except BaseException:
            self._give_back(origin, connection)
            raise
        body = _Body(connection, timeouts.get("read"), partial(self._give_back, origin, connection))
        return httpx2.Response(status, headers=headers, stream=body, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in [*self._open]:
            connection.close()
        self._open.clear()
        self._idle.clear()

    def _take(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin, [])
        while idle:
            until, connection = idle.pop()
            if connection.is_reusable and time.monotonic() < until:
                return connection
            self._forget(connection)
        return None

    def _give_back(self, origin: Origin, connection: Connection | None) -> None:
        self._free.release()
        if connection is None:
            return
        if connection.is_reusable and connection in self._open:
            self._idle.setdefault(origin, []).append((time.monotonic() + KEEPALIVE_S, connection))
            # The oldest first: what has not been needed for the longest is needed least.
            while sum(map(len, self._idle.values())) > self._keepalive:
                _, oldest = min((kept[0] for kept in self._idle.values() if kept), key=lambda one: one[0])
                for kept in self._idle.values():
                    kept[:] = [one for one in kept if one[1] is not oldest]
                self._forget(oldest)
        else:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.close()

    async def _connected(self, origin: Origin, timeout_s: float | None) -> Connection:
        """Return a new connection. Raises httpx2.ConnectError, ConnectTimeout."""
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connect(origin)
        except TimeoutError:
            raise httpx2.ConnectTimeout("the server did not accept a connection in time") from None
        except OSError as error:  # errors of TLS among them
            raise httpx2.ConnectError(str(error) or type(error).__name__) from error
        self._open.add(connection)
        return connection

    async def _connect(self, origin: Origin) -> Connection:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        host = host.strip("[]")
        given: dict[str, Any] = {}
        if scheme == "https":
            self._verify.set_alpn_protocols(["http/1.1"])
            given = {"ssl": self._verify, "server_hostname": host}
        found = await _resolved(host, port)
        addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))

        async def connect(address: str) -> Connection:
            _, connection = await loop.create_connection(Connection, address, port, **given)
            return connection

        return await _first(connect, addresses) if len(addresses) > 1 else await connect(addresses[0])


async def _resolved(host: str, port: int) -> list[Any]:
    """Return what ``socket.getaddrinfo`` does."""
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _first(connect: Callable[[str], Awaitable[Connection]], addresses: Sequence[str]) -> Connection:
    """Return the first connection to any of the addresses, each tried when those before have failed or are silent."""
    waiting = list(addresses)
    trying: set[asyncio.Task[Connection]] = set()
    failure: BaseException | None = None
    won: asyncio.Task[Connection] | None = None
    try:
        while won is None and (waiting or trying):
            if waiting:
                trying.add(asyncio.ensure_future(connect(waiting.pop(0))))
            done, _ = await asyncio.wait(
                trying, timeout=ANOTHER_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            trying -= done
            for task in done:
                failure = task.exception() or failure
            won = next((task for task in done if task.exception() is None), None)
    finally:
        for task in trying:
            task.cancel()
        for late in await asyncio.gather(*trying, return_exceptions=True):
            if isinstance(late, Connection):
                late.close()
    if won is None:
        raise failure or OSError("the name has no address")
    return won.result()


class _Body(httpx2.AsyncByteStream):
    def __init__(
        self, connection: Connection, timeout_s: float | None, give_back: Callable[[], None]
    ) -> None:
        self._connection, self._timeout_s, self._give_back = connection, timeout_s, give_back
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._connection.body(timeout_s=self._timeout_s):
            yield piece

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._give_back()

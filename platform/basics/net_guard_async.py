"""The async twin of ``basics.net_guard``: the same judgement where a socket is opened, for coroutines.

A deadline is the caller's: a coroutine can be cancelled (``asyncio.timeout``), which a thread cannot.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncIterator, Iterable

import anyio
import anyio.to_thread
import httpcore2
import httpx2

from basics.net_guard import NETWORK_ERRORS, authorities, error_translated, request_core, response_of
from basics.net_policy import (
    PUBLIC,
    AddressRefused,
    NetPolicy,
    Resolver,
    addresses_checked,
    system_resolver,
    url_check,
)


class AsyncGuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to judged addresses only."""

    def __init__(self, policy: NetPolicy, resolver: Resolver) -> None:
        self._policy, self._resolver = policy, resolver
        self._inner = httpcore2.AnyIOBackend()
        self._resolving = anyio.CapacityLimiter(8)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        judge = functools.partial(addresses_checked, host, port, self._policy, self._resolver)
        # Threads of its own: names whose servers are silent must not keep the process's threads from others.
        addresses = await anyio.to_thread.run_sync(judge, abandon_on_cancel=True, limiter=self._resolving)
        failure: Exception = httpcore2.ConnectError("no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise AddressRefused("Sockets on this machine can't be called.")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_stream():
                yield chunk
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()


class AsyncGuardedTransport(httpx2.AsyncBaseTransport):
    """A transport for httpx2 that reaches public addresses only; no proxy, no cookies.

    Args:
        policy: where it may go.
        resolver: gives the addresses of a name; tests put their own here.
        verify: checks the certificates of servers; the system's by default.
        keepalive: connections that are kept open between requests.
        connections: at most so many at once.
    """

    def __init__(
        self,
        policy: NetPolicy = PUBLIC,
        *,
        resolver: Resolver = system_resolver,
        verify: ssl.SSLContext | None = None,
        keepalive: int = 0,
        connections: int = 4,
    ) -> None:
        self._policy = policy
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify or authorities(),
            max_connections=max(connections, keepalive),
            max_keepalive_connections=keepalive,
            network_backend=AsyncGuardedBackend(policy, resolver),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            AddressRefused: it leads where nothing may be called.
            httpx2.TransportError: the network failed.
        """
        url_check(str(request.url), self._policy)
        stream = request.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("AsyncGuardedTransport sends requests of an asynchronous client")
        sent = request_core(request, stream)
        try:
            response = await self._pool.handle_async_request(sent)
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error
        return response_of(request, response, _Body(response))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

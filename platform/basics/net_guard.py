"""Requests to addresses that somebody else has named, without a way into our own network (server-side request forgery).

What counts is where the socket goes. So the check sits where the socket is opened: names are resolved here, every address
of the answer is judged, and the connection is made to the judged address itself, never to the name again. A parser that
reads a URL differently, a redirect, a DNS server that changes its answer: all of them end at the same gate. TLS still
checks the certificate against the name.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import httpcore2
import httpx2
import structlog

from basics.net_policy import (
    PUBLIC,
    AddressRefused,
    NetPolicy,
    Resolver,
    addresses_checked,
    system_resolver,
    url_check,
)

log = structlog.get_logger(__name__)

UNREACHED = "no connection was made; check the address, the port and the certificate"
NETWORK_ERRORS = (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError)


def request_core(
    request: httpx2.Request, content: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpcore2.Request:
    """Return a request of httpx2 as the pool of connections takes it."""
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        ),
        headers=request.headers.raw,
        content=content,
        extensions=request.extensions,
    )


def response_of(
    request: httpx2.Request,
    response: httpcore2.Response,
    body: httpx2.SyncByteStream | httpx2.AsyncByteStream,
) -> httpx2.Response:
    """Return what the pool has answered as a response of httpx2, whose body is read as it arrives."""
    return httpx2.Response(
        response.status,
        headers=response.headers,
        stream=body,
        extensions=response.extensions,
        request=request,
    )


def error_translated(error: Exception) -> httpx2.TransportError:
    """Return the error of httpx2 that says what one of ``NETWORK_ERRORS`` says.

    What kept a connection from being made is told in one text: whether a port is closed, silent, or speaks something else
    than TLS is nobody's business who may name an address. The log has it.
    """
    # Errors of the protocol hold what a stranger wrote.
    said = "" if isinstance(error, httpcore2.ProtocolError) else str(error)[:200]
    log.info("request_failed", error=type(error).__name__, said=said)
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
        return httpx2.ConnectError(UNREACHED)
    if isinstance(error, httpcore2.TimeoutException):
        return httpx2.ReadTimeout("the server did not answer in time")
    if isinstance(error, httpcore2.ProtocolError):
        return httpx2.RemoteProtocolError("the answer was not understood")
    return httpx2.ReadError("the connection broke")


class _TimedStream(httpcore2.NetworkStream):
    """A connection that ends at a deadline, however slowly the other side drips."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: float) -> None:
        self._inner, self._deadline = inner, deadline

    def _left(self, timeout: float | None) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the whole answer took too long")
        return left if timeout is None else min(left, timeout)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, self._left(timeout))
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore2.NetworkBackend):
    """Opens connections to judged addresses only.

    Args:
        deadline: ``time.monotonic()`` at which every connection ends.
    """

    def __init__(self, policy: NetPolicy, resolver: Resolver, deadline: float) -> None:
        self._policy, self._resolver, self._deadline = policy, resolver, deadline
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = addresses_checked(host, port, self._policy, self._resolver)
        failure: Exception = httpcore2.ConnectError("no address")
        for address in addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise httpcore2.ConnectTimeout("connecting took too long")
            try:
                stream = self._inner.connect_tcp(
                    str(address),
                    port,
                    left if timeout is None else min(left, timeout),
                    local_address,
                    socket_options,
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            return _TimedStream(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        raise AddressRefused("Sockets on this machine can't be called.")


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_stream()
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error

    def close(self) -> None:
        self._response.close()


def _nothing() -> None:
    """Do nothing."""


before_request: Callable[[], None] = _nothing
"""Called by the thread that is about to wait for an answer; the platform gives its database connections back here."""


@cache
def authorities() -> ssl.SSLContext:
    """Return what checks the certificates of servers. Reading those of all authorities takes 25 ms of CPU: once a process."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.BaseTransport):
    """A transport for httpx2 that reaches public addresses only; no proxy, no cookies, one deadline for everything.

    Args:
        policy: where it may go.
        seconds: from now until every connection is cut.
        resolver: gives the addresses of a name; tests put their own here.
        verify: checks the certificates of servers; the system's by default.
    """

    def __init__(
        self,
        policy: NetPolicy = PUBLIC,
        *,
        seconds: float = 60.0,
        resolver: Resolver = system_resolver,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._pool = httpcore2.ConnectionPool(
            ssl_context=verify or authorities(),
            max_connections=4,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(policy, resolver, time.monotonic() + seconds),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            AddressRefused: it leads where nothing may be called.
            httpx2.TransportError: the network failed.
        """
        url_check(str(request.url), self._policy)
        before_request()
        stream = request.stream
        if not isinstance(stream, httpx2.SyncByteStream):
            raise TypeError("GuardedTransport sends requests of a synchronous client")
        sent = request_core(request, stream)
        try:
            response = self._pool.handle_request(sent)
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error
        return response_of(request, response, _Body(response))

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

"""One HTTP/1.1 connection of a client, read by llhttp (the package httptools) as its bytes arrive.

httpx reads each piece of a streamed answer through two locks, a cancel scope, a timer and seven generators; here the event
loop's own callback parses it, and whoever reads takes all that has arrived at once.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, cast

import httptools
import httpx2

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_HEAD = 100 * 1024
"""Bytes that the head of an answer may have."""
MOST_UNREAD = 256 * 1024
"""Bytes of an answer that wait here before the rest waits in the network."""
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_VALUE = re.compile(rb"[^\x00\r\n]*")
_TARGET = re.compile(rb"[\x21-\x7e\x80-\xff]+")
_INCOMPLETE = "peer closed connection without sending complete message body"


class Connection(asyncio.Protocol):
    """Carries one request after another; belongs to one event loop and one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._late_at = math.inf  # When the wait ends, on the loop's clock.
        self._timer: asyncio.Handle | None = None
        self._timer_at = math.inf
        self._writable: asyncio.Future[None] | None = None
        self._is_ended, self._failure = False, ""
        self._is_paused = False
        self._is_sent = True
        self._begin(is_head=False)

    @property
    def is_reusable(self) -> bool:
        """Tell whether another request can be sent: the last answer is read to its end, and both sides stay."""
        return (
            self._is_complete and self._is_sent and self._stays and not self._failure and not self._is_ended
        )

    async def send(self, request: httpx2.Request, *, timeout_s: float | None) -> None:
        """Send a request.

        Args:
            timeout_s: seconds that the network may take to accept a part of it.

        Raises:
            httpx2.LocalProtocolError: for what can't be a request; nothing was sent.
            httpx2.WriteTimeout: the network accepts nothing.
        """
        head = _head(request)
        self._begin(is_head=request.method == "HEAD")
        self._is_sent = False
        stream = request.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError("an asynchronous client sends asynchronous bodies")
        is_chunked = "chunked" in request.headers.get("transfer-encoding", "").lower()
        async for piece in cast("AsyncIterable[bytes]", stream):
            if is_chunked:
                piece = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
            await self._write(head + piece, timeout_s)
            head = b""
        await self._write(head + (b"0\r\n\r\n" if is_chunked else b""), timeout_s)
        self._is_sent = True

    async def head(self, *, timeout_s: float | None) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Return status and headers of the answer.

        Args:
            timeout_s: seconds without a byte.

        Raises:
            httpx2.TransportError: there is no answer, or none in time.
        """
        while not self._has_head:
            self._raise_failure("Server disconnected without sending a response.")
            await self._more(timeout_s)
        return self._status, self._headers

    async def body(self, *, timeout_s: float | None) -> bytes:
        """Return what has arrived of the answer, waiting for some; b"" at its end. Raises as ``head``."""
        while not self._pieces and not self._is_complete:
            self._raise_failure(_INCOMPLETE)
            await self._more(timeout_s)
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return found

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._failure = self._failure or "the connection was closed"
        self._wake()

    def _begin(self, *, is_head: bool) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # Small servers end lines as they like. Others may use this connection next, but they talk to the same server, and
        # whatever it sends beyond one answer closes the connection.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._is_head = is_head
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._has_head = self._is_complete = False
        self._head_size = 0
        self._stays = self._is_delimited = False
        self._pieces: list[bytes] = []
        self._unread = 0

    async def _write(self, data: bytes, timeout_s: float | None) -> None:
        # A server may refuse a request before it has read all of it, and close: its answer is read all the same.
        if not data or self._transport is None or self._failure or self._is_ended:
            return
        self._transport.write(data)
        if self._writable is not None:
            try:
                async with asyncio.timeout(timeout_s):
                    await asyncio.shield(self._writable)
            except TimeoutError:
                raise httpx2.WriteTimeout("the server does not accept the request") from None

    async def _more(self, timeout_s: float | None) -> None:
        waiter = self._waiter = self._loop.create_future()
        self._late_at = math.inf if timeout_s is None else self._loop.time() + timeout_s
        if self._late_at < self._timer_at:
            self._timer_set(self._late_at)
        try:
            await waiter
        except TimeoutError:
            raise httpx2.ReadTimeout("the server did not answer in time") from None
        finally:
            self._waiter = None

    def _timer_set(self, when: float) -> None:
        """Look at a time whether the wait is over; ``math.inf`` for no time. One timer serves all pieces of an answer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = None if when == math.inf else self._loop.call_at(when, self._look)

    def _look(self) -> None:
        waiter, is_late = self._waiter, self._loop.time() >= self._late_at
        # A wait that began since the timer was set ends later.
        self._timer_set(math.inf if waiter is None or is_late else self._late_at)
        if waiter is not None and is_late and not waiter.done():
            waiter.set_exception(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._timer is not None and (self._is_complete or self._is_ended or self._failure):
            self._timer_set(math.inf)
        if self._writable is not None and (self._failure or self._is_ended):
            self.resume_writing()

    def _raise_failure(self, ended: str) -> None:
        if self._failure:
            raise httpx2.ReadError(self._failure)
        if self._is_ended:
            raise httpx2.RemoteProtocolError(ended)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            if self._is_complete:
                raise httptools.HttpParserError("bytes that nobody has asked for")
            if not self._has_head:
                self._head_size += len(data)
            self._parser.feed_data(data)
            if not self._has_head and self._head_size > MOST_HEAD:
                raise httptools.HttpParserError("the head of the answer is too long")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stays = False
            if not self._is_complete:
                self._failure = f"the server does not speak HTTP/1.1: {error}"[:200]
            if self._transport is not None:
                self._transport.abort()
        if self._unread > MOST_UNREAD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        # An answer that names no length ends with its connection.
        if self._has_head and not self._is_delimited:
            self._is_complete = True
        self._is_ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and not self._is_ended:
            self.eof_received()
        elif exc is not None:
            self._failure = self._failure or str(exc) or type(exc).__name__
        self._is_ended, self._transport = True, None
        self._wake()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._is_complete:
            raise ValueError("a second answer")
        status = self._parser.get_status_code()
        if 100 <= status < 200:  # An answer about the answer; nobody asks for another protocol.
            return
        names = {name.lower() for name, _ in self._headers}
        self._is_delimited = bool(names & {b"content-length", b"transfer-encoding"}) or status in (204, 304)
        self._status, self._has_head = status, True
        if self._is_head:
            self._is_complete = True  # llhttp waits for the body that the headers tell of

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._unread += len(body)

    def on_message_complete(self) -> None:
        if not self._has_head:
            self._headers = []
            return
        self._stays = not self._is_head and self._parser.should_keep_alive()
        self._is_complete = True


def _head(request: httpx2.Request) -> bytes:
    """Return a request's head. Raises LocalProtocolError for what would be read as another one."""
    method, target = request.method.encode(), request.url.raw_path
    headers: Sequence[tuple[bytes, bytes]] = request.headers.raw
    if not _NAME.fullmatch(method) or not _TARGET.fullmatch(target):
        raise httpx2.LocalProtocolError("illegal method or target", request=request)
    for name, value in headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise httpx2.LocalProtocolError("Illegal header value or name", request=request)
    lines = b"".join([b"%b: %b\r\n" % (name, value.strip(b" \t")) for name, value in headers])
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, lines)

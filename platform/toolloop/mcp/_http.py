"""The guard between the SDK's HTTP client and the network: size, time, redirects, URL checks, and errors in words.

The SDK ends a whole connection on a network error. Here such an error becomes the answer to the one request that met
it, as a JSON-RPC error with a code of ours, so that a server that restarts costs one call and not the session.
"""

from __future__ import annotations

import inspect
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from toolloop.mcp.failures import REFUSED, SESSION_LOST, TIMED_OUT, UNREACHABLE
from toolloop.mcp.transports import HttpTransport

_NOTICE_SECONDS = 10.0  # For what has no answer: notifications, and the end of a session.
_SLACK_SECONDS = 5.0  # The call's own timeout comes first; this one closes what the server still holds open.
_STREAMS_A_MINUTE = 20
_WINDOW_S = 60.0
_STREAM_BYTES = 1_000_000  # A minute's notifications; each costs about 0.1 ms, whoever asked for them.
_EVENT_LINES = 100_000  # Of an answer that comes as events, for the same reason.
_REDIRECTS = (301, 302, 303, 307, 308)


class BodyRefused(httpx2.StreamError):
    """An answer is too large or too slow. The SDK turns this kind into an error of the one request."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Wraps what opens connections.

    Args:
        settings: limits and the URL guard.
        call_timeout_s: seconds a request may take until its answer is complete.
    """

    def __init__(self, settings: HttpTransport, call_timeout_s: float) -> None:
        self._settings = settings
        self._seconds = call_timeout_s + _SLACK_SECONDS
        self._inner = settings.network or httpx2.AsyncHTTPTransport()
        self._opened: deque[float] = deque()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or answer it ourselves when it must not be sent or cannot be."""
        method = _rpc_method(request)
        is_stream = request.method == "GET" or method == "subscriptions/listen"
        if is_stream and not self._may_open():
            return _answer(request, REFUSED, "too many streams were opened within a minute", 429)
        refusal = await self._refused(str(request.url))
        if refusal:
            return _answer(request, REFUSED, f"the URL {_shown(request.url)} may not be used: {refusal}", 403)
        is_call = request.method == "POST" and not method.startswith("notifications/")
        seconds = self._seconds if is_call or is_stream else _NOTICE_SECONDS
        deadline = anyio.current_time() + seconds
        # Compressed answers could be a thousand times the size we count.
        request.headers["accept-encoding"] = "identity"
        try:
            with anyio.fail_after(seconds):
                response = await self._inner.handle_async_request(request)
        except TimeoutError:
            return _answer(request, TIMED_OUT, f"it did not answer within {seconds:g} s", 504)
        except (httpx2.TransportError, OSError) as error:
            return _answer(request, UNREACHABLE, f"{type(error).__name__}: {error}".strip(": "), 503)
        reason = self._unusable(request, response)
        if reason is not None:
            await response.aclose()
            return _answer(request, *reason)
        limit = self._settings.max_response_bytes
        is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _Bounded(
            response.stream,
            min(limit, _STREAM_BYTES) if is_stream else limit,
            None if is_stream else deadline,
            _EVENT_LINES if is_events else None,
        )
        return response

    def _may_open(self) -> bool:
        """Count streams: a server that closes each one at once must not have us open them in a circle."""
        now = time.monotonic()
        while self._opened and self._opened[0] < now - _WINDOW_S:
            self._opened.popleft()
        self._opened.append(now)
        return len(self._opened) <= _STREAMS_A_MINUTE

    async def _refused(self, url: str) -> str:
        if self._settings.guard is None:
            return ""
        try:
            verdict = self._settings.guard(url)
            if inspect.isawaitable(verdict):
                await verdict
        except Exception as error:  # noqa: BLE001 - whatever a guard raises is a refusal; only it knows its errors
            return str(error) or type(error).__name__
        return ""

    def _unusable(self, request: httpx2.Request, response: httpx2.Response) -> tuple[int, str, int] | None:
        status, headers = response.status_code, response.headers
        if status in _REDIRECTS and not self._settings.follow_redirects:
            target = headers.get("location", "")
            try:
                target = _shown(request.url.join(target))
            except httpx2.InvalidURL:
                target = ascii(target)[:200]
            return (REFUSED, f"it redirects to {target}; use that URL if it is the right server", 502)
        if status == 404 and "mcp-session-id" in request.headers:
            return SESSION_LOST, "it no longer knows the session", 404
        if status in (401, 403):
            if self._settings.auth is not None:
                return None  # Its headers say how to sign in.
            return REFUSED, f"it refused the credentials (HTTP {status})", status
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in ("", "identity"):
            return (REFUSED, f"it answered in encoding {ascii(encoding)[:40]}, which was not requested", 502)
        size = headers.get("content-length", "")
        limit = self._settings.max_response_bytes
        if size.isdecimal() and int(size) > limit:
            return REFUSED, f"its answer has {size} bytes, the limit is {limit}", 502
        if status >= 400 and not headers.get("content-type", "").startswith("application/json"):
            return UNREACHABLE, f"it answered with HTTP {status}", status
        return None


class _Bounded(httpx2.AsyncByteStream):
    """A body with limits: on the whole of it, or, for a stream without a deadline, on what comes within a minute."""

    def __init__(self, stream: Any, limit: int, deadline: float | None, lines: int | None) -> None:
        self._stream, self._limit, self._deadline, self._lines = stream, limit, deadline, lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._stream.__aiter__()
        seen, lines, window = 0, 0, time.monotonic()
        while True:
            try:
                if self._deadline is None:
                    chunk = await chunks.__anext__()
                else:
                    with anyio.fail_after(max(0.0, self._deadline - anyio.current_time())):
                        chunk = await chunks.__anext__()
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise BodyRefused("the answer was not complete in time") from None
            except httpx2.TransportError as error:
                raise BodyRefused(f"the answer was cut off: {type(error).__name__}") from error
            if self._deadline is None and time.monotonic() - window > _WINDOW_S:
                seen, lines, window = 0, 0, time.monotonic()
            seen += len(chunk)
            if self._lines is not None:
                lines += chunk.count(b"\n") + chunk.count(b"\r")
                if lines > self._lines:
                    raise BodyRefused("the answer has too many events")
            if seen > self._limit:
                raise BodyRefused(f"the answer has more than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_open(settings: HttpTransport, call_timeout_s: float) -> AsyncIterator[Any]:
    """Connect; yields the SDK's two message streams."""
    headers = dict(settings.headers)
    if settings.bearer:
        headers["Authorization"] = f"Bearer {settings.bearer}"
    connect = settings.connect_timeout_s
    client = httpx2.AsyncClient(
        transport=GuardedTransport(settings, call_timeout_s),
        headers=headers,
        auth=settings.auth,
        timeout=httpx2.Timeout(connect, read=None),
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(
            settings.url, http_client=client, max_sse_event_size=settings.max_response_bytes
        ) as streams,
    ):
        yield streams


def _rpc_method(request: httpx2.Request) -> str:
    if request.method != "POST":
        return ""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return ""  # OAuth's own requests are forms.
    return str(message.get("method", "")) if isinstance(message, dict) else ""


def _answer(request: httpx2.Request, code: int, message: str, status: int) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=error, request=request)


def _shown(url: httpx2.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))

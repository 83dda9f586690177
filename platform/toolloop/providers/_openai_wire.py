"""The HTTP side shared by every adapter that speaks through the openai package.

Authentication, headers and error classes are the SDK's. Requests go to its HTTP client as encoded JSON: the SDK's own
way there would double what a short request costs, and its transform blocks the event loop for 342 ms over a history of
400 items. Events are decoded here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolloop.providers._common import (
    CONNECT_TIMEOUT_S,
    account_of,
    checked_base_url,
    import_sdk,
    json_body,
    mapping,
    timed_out,
)
from toolloop.providers._failures import normalised_errors
from toolloop.providers._sse import EventReader

if TYPE_CHECKING:
    import httpx2

    from toolloop.providers._calls import StainlessCalls


class OpenAIWire:
    """One client of one account, to be used in one event loop.

    Args:
        name: provider name used in errors and in the key of the native echo.
        api_key: the account's key.
        base_url: including "/v1".
        http_client: used instead of an own one; the adapter owns it from then on and closes it.
        account: key of the native echo; derived from URL and key when empty.
        organization, project: sent as headers when given. The SDK's own environment variables for them are not
            read: a tenant's key must not travel with the platform's organisation.
    """

    def __init__(
        self,
        *,
        name: str,
        api_key: str,
        base_url: str,
        http_client: httpx2.AsyncClient | None,
        account: str,
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        sdk = import_sdk("openai", "openai")
        self._sdk = sdk
        self._name = name
        self._key = api_key
        url = checked_base_url(base_url)
        self.account = account or account_of(name, url, api_key)
        self._url = url
        self._http = http_client or sdk.DefaultAsyncHttpxClient()
        self._client = sdk.AsyncOpenAI(api_key=api_key, base_url=url, max_retries=0, http_client=self._http)
        self._client.organization = organization
        self._client.project = project
        self._headers: dict[str, str] = {}
        self._heads: dict[str, tuple[httpx2.URL, httpx2.Headers]] = {}
        self._tools: tuple[object, bytes] = (None, b"")

    @asynccontextmanager
    async def post(
        self, path: str, body: dict[str, Any], timeout_s: float
    ) -> AsyncIterator[tuple[str, AsyncIterator[dict[str, Any]]]]:
        """Open a stream and yield the request id and the decoded events; leaving closes the HTTP response.

        Args:
            path: below the base URL, e.g. "/responses".
            body: JSON body, with ``stream`` already set.
            timeout_s: seconds for the whole call, the reading of the stream included.

        Raises:
            ProviderError: of the fitting kind, also for failures while the stream is read.
        """
        async with self._streamed(path, body, timeout_s) as opened:
            yield opened

    @asynccontextmanager
    async def follow(
        self, path: str, timeout_s: float
    ) -> AsyncIterator[tuple[str, AsyncIterator[dict[str, Any]]]]:
        """Open the stream of something that is being made already; else as ``post``."""
        async with self._streamed(path, None, timeout_s) as opened:
            yield opened

    @asynccontextmanager
    async def _streamed(
        self, path: str, body: dict[str, Any] | None, timeout_s: float
    ) -> AsyncIterator[tuple[str, AsyncIterator[dict[str, Any]]]]:
        import httpx2

        deadline = asyncio.get_running_loop().time() + timeout_s
        timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        with normalised_errors(self._name, self._key):
            try:
                async with asyncio.timeout_at(deadline):
                    sent = None if body is None else self._encoded(body)
                    response = await self._opened(path, sent, timeout)
            except TimeoutError:
                raise timed_out() from None
            events = EventReader(response, deadline)
            try:
                request_id = response.headers.get("x-request-id", "")
                yield request_id, _Objects(events, self._stream_error)
                await events.drain()
            finally:
                await events.aclose()

    def _encoded(self, body: dict[str, Any]) -> bytes:
        """Return a body as JSON; tools, mostly the greater part, are written once for all calls that offer the same."""
        tools = body.get("tools")
        if not tools:
            return json_body(body)
        # Quick where they are the same: the schemas in them are the same objects then.
        if tools != self._tools[0]:
            self._tools = tools, json_body(tools)
        rest = json_body({name: value for name, value in body.items() if name != "tools"})
        return b'%b,"tools":%b}' % (rest[:-1], self._tools[1])

    async def _opened(self, path: str, body: bytes | None, timeout: httpx2.Timeout) -> httpx2.Response:
        """Send a request and return its response, of which the body is still to be read.

        Raises:
            APIStatusError: the SDK's, for what is no success.
        """
        request = self._built(path, timeout) if body is None else self._posted(path, body, timeout)
        response = await self._http.send(request, stream=True)
        if response.is_success:
            return response
        try:
            await response.aread()
        finally:
            await response.aclose()
        raise self._status_error(response)

    def _posted(self, path: str, body: bytes, timeout: httpx2.Timeout) -> httpx2.Request:
        """Return a POST with the head of the first one to its path: building a head takes ten times as long as copying one."""
        import httpx2

        if self._http.cookies:  # a server has given some, and the next request carries them
            return self._built(path, timeout, body)
        if path not in self._heads:
            built = self._built(path, timeout, body)
            kept = [(name, value) for name, value in built.headers.raw if name.lower() != b"content-length"]
            self._heads[path] = built.url, httpx2.Headers(kept)
        url, headers = self._heads[path]
        request = httpx2.Request(
            "POST",
            url,
            headers=headers,
            stream=httpx2.ByteStream(body),
            extensions={"timeout": timeout.as_dict()},
        )
        request.headers["Content-Length"] = str(len(body))
        return request

    def _built(self, path: str, timeout: httpx2.Timeout, body: bytes | None = None) -> httpx2.Request:
        """Return a request as the client builds it: a POST where there is a body, else a GET."""
        if not self._headers:  # Here, because they name the event loop's library.
            given = {**self._client.default_headers, **self._client.auth_headers}
            self._headers = {name: value for name, value in given.items() if isinstance(value, str)}
        method = "GET" if body is None else "POST"
        return self._http.build_request(
            method, self._url + path, content=body, headers=self._headers, timeout=timeout
        )

    def _status_error(self, response: httpx2.Response) -> Exception:
        """Return what the SDK raises for a response that is no success."""
        try:
            body = mapping(json.loads(response.text))
        except ValueError:
            body = {}
        failure: Exception = self._sdk.APIStatusError(
            f"Error code: {response.status_code}", response=response, body=body.get("error", body)
        )
        return failure

    async def get(self, path: str, timeout_s: float) -> dict[str, Any]:
        """Fetch a JSON object; SDK errors are the caller's to translate."""
        return mapping(await self._client.get(path, cast_to=object, options={"timeout": timeout_s}))

    def calls(self) -> StainlessCalls:
        """Return calls of the same account beside those of models."""
        from toolloop.providers._calls import StainlessCalls

        return StainlessCalls(self._client, self._sdk, name=self._name, key=self._key)

    async def post_plain(self, path: str, timeout_s: float) -> None:
        """Send a request without a body and without interest in its answer; SDK errors are the caller's to translate."""
        await self._client.post(path, cast_to=object, options={"timeout": timeout_s})

    def _stream_error(self, error: object) -> Exception:
        """Return what the SDK raises for an error that comes as an event."""
        message = mapping(error).get("message")
        if not message or not isinstance(message, str):
            message = "An error occurred during streaming"
        failure: Exception = self._sdk.APIError(message=message, request=None, body=error)
        return failure

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._client.close()


class _Objects(AsyncIterator[dict[str, Any]]):
    """Pass JSON objects on; anything else a server sends becomes an empty event, which adapters ignore."""

    def __init__(self, events: EventReader, error: Callable[[object], Exception]) -> None:
        from pydantic_core import from_json  # The SDK has loaded it; it takes a third of json's time.

        self._events, self._error, self._read = events, error, from_json

    async def __anext__(self) -> dict[str, Any]:
        _, data = await anext(self._events)
        if data.startswith("[DONE]"):
            raise StopAsyncIteration
        try:
            read = self._read(data)
        except ValueError:
            read = json.loads(data)  # It takes more: half a surrogate pair, lists in lists without end.
        event = mapping(read)
        if event.get("error"):
            raise self._error(event["error"])
        return event

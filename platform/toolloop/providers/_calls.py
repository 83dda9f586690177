"""Calls of an account beside those of models: JSON to and fro, and files. The SDKs authenticate and name what failed.

Answers are read as plain JSON, for the same reason as those of models: the SDKs' types drop and rewrite.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlencode, urlsplit, urlunsplit

from toolloop.errors import MalformedResponse
from toolloop.providers._common import CONNECT_TIMEOUT_S, json_body, mapping, timed_out
from toolloop.providers._failures import normalised_errors
from toolloop.providers._sse import read_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

_ASK_S: Final = 60.0
# For what sends or reads a whole file; between two pieces of one no more than ``_ASK_S`` may pass.
_FILE_S: Final = 600.0


class Calls(Protocol):
    """Calls over an adapter's connection; they raise kinds of ``ProviderError`` only."""

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: dict[str, Any] | bytes | None = None,
    ) -> dict[str, Any]:
        """Make a call and return the JSON object that answers it, {} where something else does.

        Args:
            method: "GET", "POST" or "DELETE".
            path: below the base URL and, for Gemini, the version.
            query: parameters of the address.
            body: JSON, encoded already if it is large.
        """
        ...

    def download(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file and give its bytes piece by piece; leaving closes the response."""
        ...


class StainlessCalls:
    """Calls through the openai or the anthropic package, which are generated alike.

    Args:
        client, sdk: the package's client of the account, and the package.
        name, key: of the provider, for its errors.
    """

    def __init__(self, client: Any, sdk: ModuleType, *, name: str, key: str) -> None:
        self._client, self._sdk = client, sdk
        self._name, self._key = name, key

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: dict[str, Any] | bytes | None = None,
    ) -> dict[str, Any]:
        """See ``Calls.ask``."""
        options: dict[str, Any] = {"params": dict(query or {})}
        content = json_body(body) if isinstance(body, dict) else body
        seconds = _ASK_S if content is None else _FILE_S
        with self._failing():
            async with _within(seconds):
                options["timeout"] = _timeout(seconds)
                if method == "POST":
                    answer = await self._client.post(path, cast_to=object, content=content, options=options)
                elif method == "DELETE":
                    answer = await self._client.delete(path, cast_to=object, options=options)
                else:
                    answer = await self._client.get(path, cast_to=object, options=options)
        return mapping(answer)

    async def upload(self, path: str, name: str, content: bytes, fields: dict[str, Any]) -> dict[str, Any]:
        """Send a file as a form and return the JSON object that answers it."""
        options = {"headers": {"Content-Type": "multipart/form-data"}, "timeout": _timeout(_FILE_S)}
        files = [("file", (name, content, "application/jsonl"))]
        with self._failing():
            async with _within(_FILE_S):
                answer = await self._client.post(
                    path, cast_to=object, body=fields, files=files, options=options
                )
        return mapping(answer)

    @asynccontextmanager
    async def download(self, path: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        """See ``Calls.download``."""
        with self._failing():
            async with _within(_ASK_S):
                stream = await self._client.get(
                    path,
                    cast_to=object,
                    options={"timeout": _timeout(_ASK_S)},
                    stream=True,
                    stream_cls=self._sdk.AsyncStream[object],
                )
            async with _body(stream.response) as pieces:
                yield pieces

    @contextmanager
    def _failing(self) -> Iterator[None]:
        with normalised_errors(self._name, self._key):
            yield


class GoogleCalls:
    """Calls through the google-genai package; only version v1beta of the Gemini API documents batches.

    Args:
        client, http: the package's client of the account, and the HTTP client it was given.
        name, key: of the provider, for its errors.
    """

    version: Final = "v1beta"

    def __init__(self, client: Any, http: httpx2.AsyncClient, *, name: str, key: str) -> None:
        from google.genai import errors, types

        # Private, as in the adapter: it knows URL, key and headers of a request. A test pins what we use.
        self._api = client._api_client
        self._http, self._types, self._errors = http, types, errors
        self._name, self._key = name, key

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: dict[str, Any] | bytes | None = None,
    ) -> dict[str, Any]:
        """See ``Calls.ask``."""
        address = f"{path}?{urlencode(query)}" if query else path
        content = json_body(body) if isinstance(body, dict) else body
        with normalised_errors(self._name, self._key):
            async with _within(_ASK_S):
                response = await self._sent(method, address, content)
                return mapping(response.json())

    async def upload(self, name: str, content: bytes) -> dict[str, Any]:
        """Send a file in one piece by the resumable protocol and return what the provider says of it.

        Wire facts: https://ai.google.dev/gemini-api/docs/files.

        Raises:
            MalformedResponse: the provider names no place to send the file to.
        """
        begin = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        path = "upload/{api_version}/files"
        with normalised_errors(self._name, self._key):
            async with _within(_FILE_S):
                named = json_body({"file": {"displayName": name}})
                begun = await self._sent("POST", path, named, begin)
                place = begun.headers.get("x-goog-upload-url", "")
                if not place:
                    raise MalformedResponse(f"{self._name} named no place to send the file to.")
                response = await self._http.request(
                    "POST",
                    _same_host(place, str(begun.request.url)),
                    content=content,
                    headers=finish,
                    timeout=_timeout(_FILE_S),
                )
                await self._errors.APIError.raise_for_async_response(response)
                return mapping(mapping(response.json()).get("file"))

    @asynccontextmanager
    async def download(self, path: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        """See ``Calls.download``."""
        with normalised_errors(self._name, self._key):
            async with _within(_ASK_S):
                call = self._built("GET", path, {})
                request = self._http.build_request(
                    "GET", call.url, headers=call.headers, timeout=_timeout(_ASK_S)
                )
                response = await self._http.send(request, stream=True)
            async with _body(response) as pieces:
                await self._errors.APIError.raise_for_async_response(response)
                yield pieces

    async def _sent(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        call = self._built(method, path, headers or {})
        response = await self._http.request(
            method, call.url, content=content, headers=call.headers, timeout=_timeout(_ASK_S)
        )
        await self._errors.APIError.raise_for_async_response(response)
        return response

    def _built(self, method: str, path: str, headers: dict[str, str]) -> Any:
        options = self._types.HttpOptions(api_version=self.version, headers=headers)
        return self._api._build_request(method.lower(), path, {}, options)


def _timeout(seconds: float) -> httpx2.Timeout:
    import httpx2

    return httpx2.Timeout(seconds, connect=CONNECT_TIMEOUT_S)


@asynccontextmanager
async def _within(seconds: float) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise timed_out() from None


@asynccontextmanager
async def _body(response: httpx2.Response) -> AsyncGenerator[AsyncIterator[bytes]]:
    """Give the bytes of a response that was opened as a stream, and close it after."""
    pieces = response.aiter_bytes()
    try:
        yield pieces
    except OSError as error:
        # TLS failures are not translated everywhere, see ``_sse``.
        raise read_error(error) from error
    finally:
        await pieces.aclose()
        await response.aclose()


def _same_host(place: str, base: str) -> str:
    """Return an address on the host of another: what a server names is no reason to send documents elsewhere."""
    given, own = urlsplit(place), urlsplit(base)
    return urlunsplit((own.scheme, own.netloc, given.path, given.query, ""))

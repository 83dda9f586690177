"""How requests go out: the key, keys for repetition, retries, errors, events. Written by hand; ``client.py`` is generated."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx

File: TypeAlias = Path | tuple[str, bytes] | tuple[str, IO[bytes]]
"""What an upload takes: a path, or a name with bytes or with a file that is open for reading bytes."""

_Self = TypeVar("_Self", bound="Transport")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_AGAIN = frozenset({429, 502, 503, 504})


class ApiError(Exception):
    """The server refused a request.

    Attributes:
        status: of HTTP.
        code: stable name of the reason, for programs; "" when the answer was not the server's own.
        message: what happened and what to do, for people.
        details: facts; ``fields`` maps input fields to their problems.
        request_id: quote it when you ask for help.
    """

    def __init__(self, response: httpx.Response) -> None:
        try:
            said = response.json()
        except ValueError:
            said = None
        body: dict[str, Any] = said if isinstance(said, dict) else {}
        self.status = response.status_code
        self.code = str(body.get("code") or "")
        self.message = str(body.get("message") or response.reason_phrase)
        self.details: dict[str, Any] = body.get("details") or {}
        self.request_id = str(body.get("request_id") or response.headers.get("X-Request-ID", ""))
        super().__init__(f"{self.status} {self.code}: {self.message}")


class Invalid(ApiError):
    """400, 413, 422: the input cannot be used."""


class Unauthorized(ApiError):
    """401: no valid key."""


class Forbidden(ApiError):
    """403: the key's scopes, or its person's role, do not allow this."""


class NotFound(ApiError):
    """404: no such object in this workspace."""


class Conflict(ApiError):
    """409: the state of the object does not allow this now."""


class RateLimited(ApiError):
    """429: too many requests, also after waiting; ``retry_after_s`` says for how long to be quiet."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        self.retry_after_s = _retry_after(response) or 0.0


class ServerFailed(ApiError):
    """5xx: the server, or what stands before it, failed."""


class ConnectionFailed(Exception):
    """No answer came, also after trying again."""


_ERRORS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    429: RateLimited,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream: ``kind`` such as "text" or "finished", its number, and its data."""

    id: str
    kind: str
    data: Any


class Transport:
    """Base of the client.

    Args:
        url: of the server, for example ``https://groundwork.example.org``.
        key: an API key of the workspace.
        timeout_s: for each step of a request: connecting, sending, waiting for the next bytes.
        retries: how often to try again after 429, 502, 503, 504 and lost connections. Writes carry an
            ``Idempotency-Key``, so that a repetition does nothing twice.
        max_wait_s: longest wait that a server may ask for; beyond it the error is raised at once.
        http: an httpx client to use in place of an own one; it is not closed here.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = 60.0,
        retries: int = 3,
        max_wait_s: float = 60.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._timeout, self._retries, self._max_wait_s = timeout_s, retries, max_wait_s
        self._is_own = http is None
        self._http = httpx.Client() if http is None else http

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            self._http.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        form: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send a request and return the JSON of its answer, None for an empty one."""
        headers = {}
        if method in _WRITES:
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        response = self._send(method, path, query, headers, body, form)
        return response.json() if response.content else None

    def _bytes(self, path: str, *, query: Mapping[str, Any] | None = None) -> bytes:
        """Get a file."""
        return self._send("GET", path, query, {"Accept": "*/*"}, None, None).content

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        body: Any,
        form: Mapping[str, Any] | None,
    ) -> httpx.Response:
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries
            pause = min(2.0**attempt / 2, 8.0)
            with ExitStack() as opened:
                data, files = _multipart(form, opened)
                try:
                    response = self._http.request(
                        method,
                        self._url + path,
                        params=_params(query),
                        headers={**self._headers, **headers},
                        json=body,
                        data=data,
                        files=files,
                        timeout=self._timeout,
                    )
                except httpx.TransportError as error:
                    if is_last:
                        raise ConnectionFailed(f"{method} {path}: {error}") from error
                    time.sleep(pause)
                    continue
            if response.is_success:
                return response
            wait = _retry_after(response)
            again = response.status_code in _AGAIN or (response.status_code == 409 and wait is not None)
            again = again and response.headers.get("x-should-retry") != "false"
            if is_last or not again or (wait or 0) > self._max_wait_s:
                raise _error(response)
            time.sleep(pause if wait is None else wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _events(
        self, path: str, *, query: Mapping[str, Any] | None = None, after: str = ""
    ) -> Iterator[Event]:
        """Yield a stream's events until its end; a lost connection is taken up again behind the last event."""
        last, failures = after, 0
        while True:
            headers = {**self._headers, "Accept": "text/event-stream"}
            if last:
                headers["Last-Event-ID"] = last
            try:
                with self._http.stream(
                    "GET", self._url + path, params=_params(query), headers=headers, timeout=self._timeout
                ) as response:
                    if not response.is_success:
                        response.read()
                        raise _error(response)
                    for event in _parsed(response.iter_lines()):
                        failures = 0
                        if event.kind == "end":
                            return
                        last = event.id or last
                        yield event
            except httpx.TransportError as error:
                if failures == self._retries:
                    raise ConnectionFailed(f"GET {path}: {error}") from error
            failures += 1
            if failures > self._retries:
                raise ConnectionFailed(f"GET {path}: the stream ended before its last event")
            time.sleep(min(2.0**failures / 2, 8.0))

    def _every(self, fetch: Callable[[str | None], Any]) -> Iterator[Any]:
        """Yield the rows of all pages; ``fetch`` takes a cursor."""
        cursor: str | None = None
        while True:
            page = fetch(cursor)
            yield from page["results"]
            following = page.get("next")
            if not following:
                return
            cursor = parse_qs(urlsplit(following).query)["cursor"][0]


def _error(response: httpx.Response) -> ApiError:
    fallback = ServerFailed if response.status_code >= 500 else ApiError
    return _ERRORS.get(response.status_code, fallback)(response)


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else None


def _params(query: Mapping[str, Any] | None) -> httpx.QueryParams:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        many = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        pairs += [(name, str(v).lower() if isinstance(v, bool) else str(v)) for v in many]
    return httpx.QueryParams(tuple(pairs))


def _multipart(
    form: Mapping[str, Any] | None, opened: ExitStack
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Split a form into fields and files; files are opened, or read again from their beginning."""
    if form is None:
        return None, None
    data: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for name, value in form.items():
        if isinstance(value, Path):
            files[name] = (value.name, opened.enter_context(value.open("rb")))
        elif isinstance(value, tuple):
            if hasattr(value[1], "seek"):
                value[1].seek(0)
            files[name] = value
        elif value is not None:
            data[name] = str(value).lower() if isinstance(value, bool) else value
    return data, files


def _parsed(lines: Iterator[str]) -> Iterator[Event]:
    """Yield the events of a text/event-stream (WHATWG HTML, 9.2.6)."""
    ident, kind, data = "", "", list[str]()
    for line in lines:
        if not line:
            if data or kind:
                text = "\n".join(data)
                yield Event(ident, kind or "message", _value(text))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            ident = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

"""Requests of a source: to its own hosts and to public addresses only, bounded, and with secrets for its own server alone.

Requests go straight to a guarded transport and not through httpx2's client: that one logs addresses, which may hold a
secret, keeps cookies and follows redirects.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, urljoin

import httpx2

from apps.tools.connectors.base import SourceError
from apps.tools.connectors.secrets import SourceSecret
from basics.net_guard import GuardedTransport
from basics.net_guard_async import AsyncGuardedTransport
from basics.net_policy import AddressRefused, NetPolicy, system_resolver, url_check
from basics.texts import Told, number_told
from basics.texts import gettext as _

if TYPE_CHECKING:
    from apps.tools.models import ToolSource

MAX_DOCUMENT_BYTES = 10_000_000
MAX_RESPONSE_BYTES = 1_000_000
DOCUMENT_SECONDS = 30.0
CALL_SECONDS = 60.0
HIDDEN = "[secret]"
_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 3
_MIN_HIDDEN = 4  # shorter ones are found everywhere, and hide nothing
_HEADERS = {"User-Agent": "Groundwork-Tools/1", "Accept-Encoding": "identity"}
resolver = system_resolver
"""Gives the addresses of a name; tests put their own here."""


class RequestFailed(Exception):
    """A request got no answer that can be used.

    Args:
        text: says why, without any secret.
        may_have_arrived: the server may have done what it was asked for.
    """

    def __init__(self, text: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(text)
        self.message = text
        self.may_have_arrived = may_have_arrived


@dataclass(frozen=True, slots=True)
class SourceReply:
    """What a server answered; secrets that it repeated are hidden in the body.

    Attributes:
        status: of HTTP.
        media_type: without parameters, in small letters; "" when it gave none.
        charset: of a text, "" when it gave none.
        body: at most ``MAX_RESPONSE_BYTES``.
        location: where it redirects to, "" when nowhere.
    """

    status: int
    media_type: str
    charset: str
    body: bytes
    location: str


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates of all authorities takes 20 ms: once."""
    return httpx2.create_ssl_context(trust_env=False)


def origin(url: str) -> tuple[str, str, int | None]:
    """Return (scheme, host, port) of an address that was checked; two empty texts and None for ""."""
    if not url:
        return "", "", None
    parsed = httpx2.URL(url)
    host = parsed.raw_host.decode("ascii", "replace").lower().rstrip(".")
    return parsed.scheme, host, parsed.port or {"http": 80, "https": 443}.get(parsed.scheme)


def host_check(source: ToolSource, url: str) -> None:
    """Refuse an address that is on none of a source's hosts.

    Raises:
        RequestFailed: it is not.
    """
    host = origin(url)[1]
    if host not in {origin(source.url)[1], *source.allowed_hosts}:
        text = _("This source can't call the host “%(host)s”. An admin can add it to the source's hosts.")
        raise RequestFailed(text % {"host": host[:100]})


def secrets_apply(request: httpx2.Request, source: ToolSource, secrets: Iterable[SourceSecret]) -> None:
    """Put a source's secrets into a request, if it goes to the source's own server; what stands in their place goes."""
    if origin(str(request.url)) != origin(source.url):
        return
    for one in secrets:
        value = one.secret.reveal()
        if one.placement == "bearer":
            request.headers["Authorization"] = f"Bearer {value}"
        elif one.placement == "basic":
            request.headers["Authorization"] = f"Basic {_basic(one.parameter, value)}"
        elif one.placement == "header":
            request.headers[one.parameter] = value
        else:
            request.url = request.url.copy_set_param(one.parameter, value)


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


class Redactor:
    """Hides secrets, in every form in which they are sent or written in JSON, wherever a server repeats them."""

    def __init__(self, secrets: Sequence[SourceSecret]) -> None:
        forms: set[str] = set()
        for one in secrets:
            value = one.secret.reveal()
            forms |= {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}
            if one.placement == "basic":
                forms.add(_basic(one.parameter, value))
            forms |= {form.replace("/", "\\/") for form in forms}
        # The longest first: one may be part of another.
        self._forms = sorted((f for f in forms if len(f) >= _MIN_HIDDEN), key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return the text without secrets; one that can be told in other languages still can."""
        if isinstance(text, Told):
            return Told(self._hidden(text), self._hidden(text.kept))
        return self._hidden(text)

    def _hidden(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def bytes(self, data: bytes) -> bytes:
        """Return the bytes without secrets."""
        for form in self._forms:
            data = data.replace(form.encode(), HIDDEN.encode())
        return data


async def request_send(
    source: ToolSource, request: httpx2.Request, secrets: Sequence[SourceSecret], policy: NetPolicy
) -> SourceReply:
    """Send one request of a source; redirects are not followed.

    Args:
        policy: where the workspace's requests may go now.

    Raises:
        RequestFailed: its host or address may not be called, the network failed, or the answer is too large or too slow.
    """
    hide = Redactor(secrets)
    host_check(source, str(request.url))
    request.headers.update(_HEADERS)
    secrets_apply(request, source, secrets)
    transport = AsyncGuardedTransport(policy, resolver=resolver, verify=_tls())
    try:
        async with asyncio.timeout(CALL_SECONDS), transport:
            response = await transport.handle_async_request(request)
            try:
                _check(response, MAX_RESPONSE_BYTES)
                body = bytearray()
                async for chunk in response.stream:  # type: ignore[union-attr]
                    body += chunk
                    if len(body) > MAX_RESPONSE_BYTES:
                        raise _too_large(MAX_RESPONSE_BYTES)
            finally:
                await response.aclose()
    except TimeoutError as error:
        text = _("The server didn't finish its answer within %(seconds)s s.") % {
            "seconds": number_told(CALL_SECONDS, None)
        }
        raise RequestFailed(text, may_have_arrived=True) from error
    except (AddressRefused, httpx2.HTTPError, httpx2.StreamError) as error:
        raise _failed(error, hide) from None
    return _answer(response, bytes(body), hide)


def document_fetch(source: ToolSource, url: str, secrets: Sequence[SourceSecret], policy: NetPolicy) -> bytes:
    """Return the document at an address; a few redirects are followed, each judged like the first.

    Secrets go along only to the source's own server.

    Args:
        policy: where the workspace's requests may go now.

    Raises:
        SourceError: it cannot be read; the message says why and what to do.
    """
    hide = Redactor(secrets)
    begun = time.monotonic()
    try:
        for _hop in range(_MAX_REDIRECTS + 1):
            left = DOCUMENT_SECONDS - (time.monotonic() - begun)
            answer = _get(source, url, secrets, policy, max(left, 0.1), hide)
            if not answer.location:
                break
            url = urljoin(url, answer.location)
        else:
            raise RequestFailed(
                _("The server redirects more than %(most)s times.") % {"most": _MAX_REDIRECTS}
            )
    except RequestFailed as error:
        raise SourceError(_("The document couldn't be read. %(why)s") % {"why": error.message}) from None
    if answer.status in (401, 403):
        text = _(
            "The document couldn't be read: the server answered with status %(status)s. If it needs a credential, "
            "store one. It is sent along if the document is on the source's own server."
        )
        raise SourceError(text % {"status": answer.status})
    if answer.status != 200:
        text = _("The document couldn't be read: the server answered with status %(status)s.")
        raise SourceError(text % {"status": answer.status})
    return answer.body


def _get(
    source: ToolSource,
    url: str,
    secrets: Sequence[SourceSecret],
    policy: NetPolicy,
    seconds: float,
    hide: Redactor,
) -> SourceReply:
    try:
        url_check(url, policy)
        request = httpx2.Request(
            "GET", url, headers={"Accept": "application/json, application/yaml, */*;q=0.5", **_HEADERS}
        )
        secrets_apply(request, source, secrets)
        with GuardedTransport(policy, seconds=seconds, resolver=resolver, verify=_tls()) as wire:
            response = wire.handle_request(request)
            try:
                _check(response, MAX_DOCUMENT_BYTES)
                body = bytearray()
                for chunk in response.stream:  # type: ignore[union-attr]
                    body += chunk
                    if len(body) > MAX_DOCUMENT_BYTES:
                        raise _too_large(MAX_DOCUMENT_BYTES)
            finally:
                response.close()
    except (AddressRefused, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise _failed(error, hide) from None
    return _answer(response, bytes(body), hide)


def _check(response: httpx2.Response, limit: int) -> None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        # Compressed, it could be a thousand times the size that is counted.
        raise RequestFailed(
            _("The server answered in a compressed form that wasn't requested."), may_have_arrived=True
        )
    size = response.headers.get("content-length", "")
    if size.isascii() and size.isdecimal() and int(size[:20]) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> RequestFailed:
    text = _(
        "The answer has more than %(most)s bytes. Ask for less: a filter, fewer fields or a smaller page."
    )
    return RequestFailed(text % {"most": number_told(limit)}, may_have_arrived=True)


def _failed(error: Exception, hide: Redactor) -> RequestFailed:
    if isinstance(error, AddressRefused):
        return RequestFailed(hide.text(error.message))
    if isinstance(error, httpx2.TimeoutException):
        return RequestFailed(_("The server didn't answer in time."), may_have_arrived=True)
    why = hide.text(str(error))[:200] or type(error).__name__
    if isinstance(error, httpx2.ConnectError):
        return RequestFailed(_("The server couldn't be reached (%(why)s).") % {"why": why})
    text = _("The connection to the server was lost (%(why)s).") % {"why": why}
    return RequestFailed(text, may_have_arrived=True)


def _answer(response: httpx2.Response, body: bytes, hide: Redactor) -> SourceReply:
    media_type, _semicolon, rest = response.headers.get("content-type", "").partition(";")
    charset = ""
    for part in rest.split(";"):
        name, _equals, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()
    is_redirect = response.status_code in _REDIRECTS
    location = response.headers.get("location", "") if is_redirect else ""
    return SourceReply(
        response.status_code,
        hide.text(media_type.strip().lower())[:100],
        charset[:40],
        hide.bytes(body),
        hide.text(location)[:500],
    )

"""Edge middleware: a request id on every answer and log line, one way to show a refusal, no connection while an answer is sent.

HEAD is answered wherever GET is, and every page says which devices it may use.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from basics.errors import refusal_of
from tenancy.database.waiting import connections_let_go, holding_watched
from tenancy.origin import origin_scope, valid_ip
from web.errors import error_response

PERMISSIONS_POLICY = (
    "microphone=(self), on-device-speech-recognition=(self), camera=(), geolocation=(), payment=(), usb=(), "
    "serial=(), hid=(), midi=(), bluetooth=(), accelerometer=(), gyroscope=(), magnetometer=(), "
    "display-capture=(), screen-wake-lock=()"
)
_SAFE_ID = re.compile(r"^[A-Za-z0-9._-]{8,36}\Z")


def client_ip(request: HttpRequest) -> str:
    """Return the caller's address: the peer's, or what a trusted proxy appended to X-Forwarded-For; "" where that is none.

    Without a port, which is new for each connection: limits by address would then hold nobody.
    """
    if settings.TRUST_PROXY and (forwarded := request.headers.get("X-Forwarded-For")):
        return valid_ip(forwarded.rsplit(",", 1)[-1])
    return valid_ip(str(request.META.get("REMOTE_ADDR") or ""))


def answers_let_go(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Give the database connection back before an answer is sent: Django itself would do it after its last byte.

    A stream may stay open for hours, and whoever reads slowly keeps any page for as long; a pool has few connections.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with holding_watched():
            response: HttpResponseBase = get_response(request)
            connections_let_go()
        return response

    return middleware


def head_as_get(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer HEAD as GET, without what a stream would send; the server leaves out any other body.

    Here and not in each view: one that forgets HEAD would answer 405, and one that takes every method but GET for POST
    would write, without a token, as HEAD needs none.
    """

    def middleware(request: HttpRequest) -> Any:
        if request.method != "HEAD":
            return get_response(request)
        request.method = "GET"
        response = get_response(request)
        request.method = "HEAD"
        if response.streaming:
            response.streaming_content = _no_pieces() if response.is_async else ()
        return response

    return middleware


async def _no_pieces() -> AsyncIterator[bytes]:
    nothing: list[bytes] = []
    for piece in nothing:
        yield piece


def devices_limited(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Say which devices a page may ask for: the microphone, to dictate a question. No page that is embedded may anything."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        response["Permissions-Policy"] = PERMISSIONS_POLICY
        return response

    return middleware


def request_id(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Give each request an id (a sane ``X-Request-ID`` of a proxy is kept) for the log and the audit trail."""

    def middleware(request: Any) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        ident = request.request_id = given if _SAFE_ID.match(given) else uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=ident)
        with origin_scope(ip=client_ip(request), request_id=ident):
            response: HttpResponseBase = get_response(request)
        response["X-Request-ID"] = ident
        return response

    return middleware


class DomainErrors:
    """Turn a ``DomainError`` of a view into an answer a person can use."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        refusal = refusal_of(exception)
        return None if refusal is None else error_response(request, refusal)

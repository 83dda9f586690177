"""Know that a client has left while its answer was still being made.

Django cancels what a request awaits when its client disconnects, but only what is awaited at that moment: a view that runs
in a thread goes on. Who begins work that costs money therefore looks here once it has begun to wait for it.

ASGI: https://asgi.readthedocs.io/en/latest/specs/www.html#disconnect-receive-event
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpRequest

from tenancy.database.waiting import holding_watched

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Application = Callable[[dict[str, Any], Receive, Callable[[Message], Awaitable[None]]], Awaitable[None]]

_LEFT = "groundwork.left"


def departures_noted(application: Application) -> Application:
    """Return an ASGI application that notes in a request's scope that its client has disconnected."""

    async def noting(scope: dict[str, Any], receive: Receive, send: Any) -> None:
        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                scope[_LEFT] = True
            return message

        await application(scope, received, send)

    return noting


def has_left(request: HttpRequest) -> bool:
    """Say whether the request's client is known to have disconnected; always False without ASGI."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    return bool(scope.get(_LEFT))


def holding_noted(application: Application) -> Application:
    """Return an ASGI application that knows which database connections each request holds, to the end of its answer."""

    async def watched(scope: dict[str, Any], receive: Receive, send: Any) -> None:
        with holding_watched():
            await application(scope, receive, send)

    return watched

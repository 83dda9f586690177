"""What a web process begins with its server and not with an import.

ASGI: https://asgi.readthedocs.io/en/latest/specs/lifespan.html
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Application = Callable[
    [dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def beginning_with(start: Callable[[], None], application: Application) -> Application:
    """Return an ASGI application that calls ``start`` when its server starts; one that imports it alone starts nothing."""

    async def begun(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        await receive()
        start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    return begun

"""What a web process begins with its server and not with an import.

ASGI: https://asgi.readthedocs.io/en/latest/specs/lifespan.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from web.departures import Application


def beginning_with(application: Application, *starts: Callable[[], None]) -> Application:
    """Return an ASGI application that calls these, in its event loop, when its server starts; an import alone calls none."""

    async def begun(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                for start in starts:
                    start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    return begun

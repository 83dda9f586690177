"""What a web process begins with its server and not with an import.

ASGI: https://asgi.readthedocs.io/en/latest/specs/lifespan.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from web.departures import Application

log = structlog.get_logger(__name__)


def beginning_with(application: Application, *starts: Callable[[], None]) -> Application:
    """Return an ASGI application that calls these, in its event loop, when its server starts; an import alone calls none.

    When one of them fails, the server is told why and does not start.
    """

    async def begun(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    for start in starts:
                        start()
                except Exception as error:
                    # Raised on, it would say that this application knows no such messages, and the server would go on.
                    log.exception("start_failed")
                    await send(
                        {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
                    )
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    return begun

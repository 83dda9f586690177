"""Hear that the server ends while it still answers: an ASGI application is told only when its last answer is over.

The server's own handler of a signal closes its port, waits for the answers under way, and cuts those that are not over
within its grace. Ours comes before it and lets streams end at once (``runs.draining``).

ASGI: https://asgi.readthedocs.io/en/latest/specs/lifespan.html
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from runs.draining import drain_begin
from web.departures import Application


def drain_noted(application: Application) -> Application:
    """Return an ASGI application that answers the server's lifespan, and has streams end when a signal comes."""

    async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                _signals_hear(asyncio.get_running_loop())
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    return noting


def _signals_hear(loop: asyncio.AbstractEventLoop) -> None:
    """Come before the handlers that the server has set by now. One that it has not set is left as it is."""
    if threading.current_thread() is not threading.main_thread():
        return  # a server in a thread (tests) hears no signals
    for number in (signal.SIGTERM, signal.SIGINT):
        servers = signal.getsignal(number)
        if callable(servers):
            signal.signal(number, _before(servers, loop))


def _before(
    handler: Callable[[int, FrameType | None], Any], loop: asyncio.AbstractEventLoop
) -> Callable[[int, FrameType | None], None]:
    def heard(number: int, frame: FrameType | None) -> None:
        drain_begin(loop)
        handler(number, frame)

    return heard

"""Hear that the server ends while it still answers: an ASGI application is told only when its last answer is over.

The server's own handler of a signal closes its port, waits for the answers under way, and cuts those that are not over
within its grace. Ours comes before it and lets streams end at once (``runs.draining``).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from runs.draining import drain_begin


def drain_on_signals() -> None:
    """Have streams of the running event loop end when a signal comes; to be called when the server starts.

    It comes before the handlers that the server has set by then. One that it has not set is left as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # a server in a thread (tests) hears no signals
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        servers = signal.getsignal(number)
        if callable(servers):
            signal.signal(number, _before(servers, loop))


def _before(
    handler: Callable[[int, FrameType | None], Any], loop: asyncio.AbstractEventLoop
) -> Callable[[int, FrameType | None], None]:
    def heard(number: int, frame: FrameType | None) -> None:
        # A closed loop has no streams any more, and the server's own handler must still be called.
        with contextlib.suppress(RuntimeError):
            drain_begin(loop)
        handler(number, frame)

    return heard

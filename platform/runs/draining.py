"""This process ends soon: streams that can be followed from another one end now, instead of being cut off later.

Such a stream is a browser's or a client's that comes back with ``Last-Event-ID``: it loses no word. The server stops taking
connections at the same moment, so whoever comes back meets another process.
"""

from __future__ import annotations

import asyncio
import random
import weakref

FIRST_MS, LAST_MS = 100, 1000
"""Between these the clients of one process come back, each at a time of its own: the next one is not met by all at once."""

_begun: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = weakref.WeakKeyDictionary()


def draining() -> asyncio.Event:
    """Return what is set once the process of the running loop has been told to end."""
    return _begun.setdefault(asyncio.get_running_loop(), asyncio.Event())


def drain_begin(loop: asyncio.AbstractEventLoop) -> None:
    """Say that the process of this loop ends; from any thread, or from a signal handler."""
    loop.call_soon_threadsafe(lambda: _begun.setdefault(loop, asyncio.Event()).set())


def farewell() -> bytes:
    """Return the last piece of a stream that goes on elsewhere: when to come back, and no event."""
    return f"retry: {random.randint(FIRST_MS, LAST_MS)}\n\n".encode()  # noqa: S311 - spreads, hides nothing

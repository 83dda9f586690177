"""Run coroutines from plain functions, all in one event loop of a thread of its own.

One loop and not ``asyncio.run`` for each call: HTTP clients keep connections that belong to a loop, and a second call
would meet those of a closed one.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

from toolloop.errors import ConfigurationError

T = TypeVar("T")

_CLOSE_SECONDS = 10.0

_lock = threading.Lock()
_running: tuple[int, asyncio.AbstractEventLoop, threading.Thread] | None = None


def run_in_portal(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result; blocks the calling thread.

    Raises:
        ConfigurationError: when called from within such a coroutine, which would wait for itself.
        BaseException: whatever the coroutine raised.
    """
    loop, thread = _portal()
    if threading.current_thread() is thread:
        coroutine.close()
        raise ConfigurationError("a synchronous call from async code: use the async form (await)")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # An interrupt from the keyboard ends what runs there as well.
        raise


def iterate_in_portal(generator: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate an async generator from plain code; it runs in one task, and only as far as values are asked for.

    Raises:
        ConfigurationError: when called from within such a task.
        BaseException: whatever the generator raised.
    """
    loop, thread = _portal()
    if threading.current_thread() is thread:
        raise ConfigurationError("a synchronous call from async code: use the async form (await)")
    values: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
    ended = threading.Event()

    wanted = asyncio.Semaphore(0)

    async def feed() -> None:
        try:
            async with aclosing(generator) as stream:
                await wanted.acquire()
                async for value in stream:
                    values.put((value,))
                    await wanted.acquire()
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(feed(), loop)
    future.add_done_callback(lambda _: values.put(None))
    try:
        while True:
            loop.call_soon_threadsafe(wanted.release)
            item = values.get()
            if item is None:
                break
            yield item[0]
        future.result()
    finally:
        if future.cancel():
            # The task still has to close what it holds open; a task cancelled before its first step has nothing.
            ended.wait(_CLOSE_SECONDS)


def _portal() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    global _running
    with _lock:
        # A forked child has the variable, but not the thread.
        if _running is None or _running[0] != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="toolloop-portal", daemon=True)
            thread.start()
            _running = (os.getpid(), loop, thread)
        return _running[1], _running[2]

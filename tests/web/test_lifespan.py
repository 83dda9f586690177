"""The start and the end of a web process: a start that fails is told, and a signal always reaches the server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from typing import Any

from web.draining import _before
from web.lifespan import beginning_with


async def _application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    raise AssertionError("a lifespan is not the application's")


def _told(*starts: Any) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(dict(message))

    async def served() -> None:
        await beginning_with(_application, *starts)({"type": "lifespan"}, receive, send)

    asyncio.run(served())
    return sent


def test_a_server_is_told_why_its_start_failed() -> None:
    """An exception that is raised on means "no lifespan here" to it, and it would serve."""

    def broken() -> None:
        raise OSError("no room for a watch")

    later: list[int] = []
    sent = _told(broken, lambda: later.append(1))
    assert sent == [{"type": "lifespan.startup.failed", "message": "OSError: no room for a watch"}]
    assert later == []


def test_what_begins_with_the_server_is_called_once() -> None:
    calls: list[int] = []
    sent = _told(lambda: calls.append(1))
    assert [m["type"] for m in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert calls == [1]


def test_a_signal_reaches_the_server_when_the_loop_is_closed() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    heard: list[int] = []
    _before(lambda number, frame: heard.append(number), loop)(signal.SIGTERM, None)
    assert heard == [signal.SIGTERM]

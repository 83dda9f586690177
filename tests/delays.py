"""Slow lines for browser tests: requests, answers, frames of streams and the worker's writes come late by chance.

With ``TEST_DELAYS=<seed>`` in the environment, web server and worker of the tests (tests/nursery.py) wait before each
request is handled, before its answer leaves, before each frame of a stream, before each claim of a job and before some
commits of the worker. Whatever a page shows then and a reload would not is a race that a person on a slow line meets.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

SEED = "TEST_DELAYS"
MOST_S = 0.7
_App = Callable[[Any, Any, Any], Awaitable[None]]


def is_on() -> bool:
    """Tell whether this run asks for delays."""
    return bool(os.environ.get(SEED))


class _Chance:
    def __init__(self, kind: str) -> None:
        self._random = random.Random(f"{os.environ[SEED]} {kind}")
        print(f"delays of the {kind}: {SEED}={os.environ[SEED]}", flush=True)  # noqa: T201 - to its log

    def __call__(self, most_s: float = MOST_S) -> float:
        """Return how long to wait now: every second time not at all, so that later ones overtake."""
        return self._random.uniform(0, most_s) if self._random.random() < 0.5 else 0.0


def late_web(app: _App) -> _App:
    """Return an ASGI application whose requests and answers come late, those of files excepted."""
    chance = _Chance("web server")

    async def late(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].startswith(("/static/", "/healthz")):
            await app(scope, receive, send)
            return
        is_stream = False

        async def sent(message: Any) -> None:
            nonlocal is_stream
            if message["type"] == "http.response.start":
                is_stream = any(
                    v.startswith(b"text/event-stream") for k, v in message["headers"] if k == b"content-type"
                )
                await asyncio.sleep(chance())
            elif is_stream:
                await asyncio.sleep(chance(0.3))
            await send(message)

        await asyncio.sleep(chance())
        await app(scope, receive, sent)

    return late


def late_worker() -> None:
    """Make this process claim jobs and commit late."""
    from django.db.backends.base.base import BaseDatabaseWrapper

    from jobs import runner

    chance = _Chance("worker")
    claim, commit = runner.claim, BaseDatabaseWrapper.commit

    def late_claim(tenant_id: int, job_id: int) -> Any:
        time.sleep(chance())
        return claim(tenant_id, job_id)

    def late_commit(self: Any) -> None:
        time.sleep(chance(0.2) if chance(1) > 0.5 else 0)
        commit(self)

    runner.claim = late_claim
    BaseDatabaseWrapper.commit = late_commit  # type: ignore[method-assign]

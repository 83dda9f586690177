"""Runs against a provider that fails: the real SDK on a mock transport, driven by the loop to its end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.toolloop.helpers import loop_values
from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, GOOGLE, SlowStream, Wire, answer
from toolloop.events import Event, RunFinished, StepReset, TextDelta, ToolFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.providers.base import Provider
from toolloop.tokens import Usage
from toolloop.tools import Toolset, tool

FAST = Limits(retry_min_s=0.01, retry_max_s=0.02)
GOOD = Script(text=["All", " is well."])
CALL = Call("call_a")
Answer = bytes | httpx2.Response | Exception | Callable[[], Any]


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        events: all of them, in order.
        times: when each request arrived, in seconds.
        bodies: of the requests.
        ran: arguments with which the tool was really run.
    """

    events: list[Event]
    times: list[float]
    bodies: list[dict[str, Any]]
    ran: list[str] = field(default_factory=list)

    @property
    def end(self) -> RunFinished:
        assert sum(isinstance(event, RunFinished) for event in self.events) == 1
        assert isinstance(self.events[-1], RunFinished)
        return self.events[-1]

    @property
    def resets(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, StepReset)]

    @property
    def shown(self) -> str:
        """The text a person sees: what came after the last reset."""
        text = ""
        for event in self.events:
            if isinstance(event, StepReset):
                text = ""
            elif isinstance(event, TextDelta):
                text += event.text
        return text

    @property
    def results(self) -> list[ToolFinished]:
        return [event for event in self.events if isinstance(event, ToolFinished)]


async def run(
    wire: Wire, *answers: Answer, limits: Limits = FAST, provider: Provider | None = None, **settings: Any
) -> Outcome:
    """Run a question; the provider gives these answers in turn, and any request beyond them fails the test."""
    outcome = Outcome([], [], [])
    queue = list(answers)

    async def handler(request: httpx2.Request) -> httpx2.Response:
        outcome.times.append(time.monotonic())
        outcome.bodies.append(json.loads(request.content))
        assert queue, "one request too many"
        given = queue.pop(0)
        if callable(given) and not isinstance(given, httpx2.Response):
            given = await given()
        if isinstance(given, Exception):
            raise given
        return answer(given) if isinstance(given, bytes) else given

    @tool
    def search_documents(query: str) -> str:
        """Search the documents.

        Args:
            query: what for.
        """
        outcome.ran.append(query)
        return f"found {query}"

    provider = provider or wire.provider(handler)
    stream = run_loop(
        *loop_values(
            model=wire.model,
            system="Be brief.",
            history=[UserMessage("What is the duty?")],
            toolset=Toolset([search_documents]),
            limits=limits,
            provider=provider,
            **settings,
        )
    )
    async with asyncio.timeout(20):
        outcome.events = [event async for event in stream]
    await provider.aclose()
    return outcome


def refused(wire: Wire, status: int, word: str, message: str = "no", **headers: str) -> Answer:
    """An answer with an error status, as this provider words it."""
    return httpx2.Response(status, headers=headers, json=wire.error_body(status, word, message))


def spent(wire: Wire, turns: int = 1) -> Usage:
    """What so many whole turns of the scripts cost on this wire."""
    written = 0 if wire in (COMPATIBLE, GOOGLE) else 7
    total = Usage()
    for _ in range(turns):
        total += Usage(100, 40, written, 20, 5, 1)
    return total


def begun(wire: Wire) -> Usage:
    """What a wire has already counted when its stream breaks off: only Anthropic begins with the prompt's tokens."""
    return Usage(100, 40, 7, 1, 0, 1) if wire is ANTHROPIC else Usage()


def stream_error(wire: Wire, status: int, word: str, message: str = "no") -> bytes:
    """An error inside a stream that began with status 200."""
    if wire is ANTHROPIC:
        return sse({"type": "error", "error": {"type": word, "message": message}}, named=True)
    if wire in (COMPATIBLE, GOOGLE):
        return sse(wire.error_body(status, word, message))
    return sse({"type": "error", "code": word, "message": message}, named=True)


def broken(*pieces: bytes, by: Exception | None = None) -> httpx2.Response:
    """A stream that breaks off after these pieces: the connection fails when ``by`` is given, ends otherwise."""

    async def fail() -> None:
        if by is not None:
            raise by

    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=SlowStream(pieces, fail)
    )


def stalled(*pieces: bytes) -> httpx2.Response:
    """A stream that says nothing more after these pieces, and does not end."""

    async def forever() -> None:
        await asyncio.Event().wait()

    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=SlowStream(pieces, forever)
    )


def half_text(wire: Wire) -> bytes:
    return wire.encode(Script(text=["Half an ans"], stop=""))


def half_call(wire: Wire) -> bytes:
    """A stream that ends within the arguments of a call; Gemini's arrive whole, so there it ends after the call."""
    whole = wire.encode(Script(calls=[CALL], stop=""))
    if wire is GOOGLE:
        return whole
    events = whole.split(b"\n\n")
    first = next(index for index, event in enumerate(events) if b'que"' in event)
    return b"\n\n".join(events[: first + 1]) + b"\n\n"


def good(wire: Wire) -> bytes:
    return wire.encode(GOOD)

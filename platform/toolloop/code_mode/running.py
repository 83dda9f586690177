"""Around a program: its events as a stream, its end from outside, what tools say when they fail."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from toolloop.code_mode.result import ADVICE, CallRecord, CodeResult, Ending
from toolloop.deferred import ParkCall
from toolloop.tools.context import ToolError
from toolloop.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Printed:
    """The program printed something."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of the program has ended."""

    record: CallRecord


@dataclass(frozen=True, slots=True)
class Ended:
    """The program has ended, or was paused; always the last."""

    result: CodeResult


CodeEvent = Printed | Called | Ended


async def streamed(run: Callable[..., Coroutine[Any, Any, CodeResult]]) -> AsyncGenerator[CodeEvent, None]:
    """Run a program, ``run(on_event=...)``, and yield what happens in order; ``Ended`` is the last."""
    events: asyncio.Queue[CodeEvent] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(event: CodeEvent) -> None:
        # Output may be told from a thread of the interpreter's client.
        loop.call_soon_threadsafe(events.put_nowait, event)

    task = asyncio.ensure_future(run(on_event=put))
    task.add_done_callback(
        lambda done: None if done.cancelled() or done.exception() else put(Ended(done.result()))
    )
    try:
        while True:
            waiting = asyncio.ensure_future(events.get())
            await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                if task.cancelled() or task.exception() is not None:
                    await task
                waiting = asyncio.ensure_future(events.get())
            event = await waiting
            yield event
            if isinstance(event, Ended):
                return
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


class Seen:
    """Passes events on and keeps them, for a program that is stopped."""

    def __init__(self, on_event: Callable[[CodeEvent], None] | None) -> None:
        self._on_event = on_event
        self.text: list[str] = []
        self.calls: list[CallRecord] = []

    def __call__(self, event: CodeEvent) -> None:
        if isinstance(event, Printed):
            self.text.append(event.text)
        elif isinstance(event, Called):
            self.calls.append(event.record)
        if self._on_event is not None:
            self._on_event(event)


async def until(stop: asyncio.Event | None, work: Coroutine[Any, Any, CodeResult], seen: Seen) -> CodeResult:
    """Await a program; a cancelled result, with what it did so far, when ``stop`` is set first."""
    if stop is None:
        return await work
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            return await task
        return CodeResult(
            Ending.CANCELLED,
            output="".join(seen.text),
            calls=tuple(seen.calls),
            error="The program was stopped.",
            advice=ADVICE[Ending.CANCELLED],
        )
    finally:
        stopped.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def parked(result: CodeResult) -> ParkCall:
    """Park the run at the first call that waits; the next one parks it again."""
    waiting = result.pending[0]
    shown = json.dumps(waiting.call.arguments, ensure_ascii=False)[:2000]
    # A call parked by its own rule comes with its name and arguments as the reason already.
    reason = waiting.reason or f"{waiting.call.name} {shown}"
    reason = f"{reason} (line {result.line} of the program)"
    state = {
        "program": result.state,
        "call_id": waiting.call.id,
        "inner": waiting.state,
        "call": waiting.call.to_json(),
    }
    return ParkCall(waiting.kind, reason, state, waiting.approval)


def declaring(tool: Tool, errors: tuple[type[Exception], ...]) -> Tool:
    """Return a tool whose declared exceptions tell the program their text."""
    if not errors:
        return tool
    function = tool.function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaiting(*args: Any, **kwargs: Any) -> Any:
            try:
                return await function(*args, **kwargs)
            except errors as error:
                raise ToolError(_text(error)) from error

        return replace(tool, function=awaiting)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except errors as error:
            raise ToolError(_text(error)) from error

    return replace(tool, function=wrapped)


def _text(error: Exception) -> str:
    # str() of a KeyError is quoted; the program's own KeyError quotes once more.
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)

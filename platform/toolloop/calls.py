"""Answer the calls of one model turn: in parallel where allowed, each one journalled, none left without a result."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolloop.events import Event, ToolFinished, ToolRunning
from toolloop.interrupts import Cause, Interrupted, Interrupter
from toolloop.journal import Journal
from toolloop.limits import Limits
from toolloop.messages import Message, ToolCall, ToolResult, Turn
from toolloop.tools.guards import CircleGuard
from toolloop.tools.runtime import (
    BlockingRunner,
    Prepared,
    call_prepare,
    call_run,
    error_result,
    output_cut,
)
from toolloop.tools.tool import ToolContext
from toolloop.tools.toolset import Toolset

logger = logging.getLogger(__name__)

_CANCEL_GRACE_S = 0.5  # A stop must be through within a second, also when a tool resists.
_NEVER_RAN = frozenset(
    {"unknown_tool", "invalid_arguments", "truncated", "limit", "cancelled", "lost"}
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no call of a turn is run."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class _Running:
    index: int
    call: ToolCall
    context: ToolContext
    started: float


class CallRunner:
    """Runs the calls of a run's turns and keeps what must be counted over all of them.

    Attributes:
        results: after ``answer``, the results of that turn in call order.
    """

    def __init__(
        self,
        *,
        toolset: Toolset,
        limits: Limits,
        journal: Journal,
        interrupter: Interrupter,
        context: Mapping[str, Any],
        run_blocking: BlockingRunner,
    ) -> None:
        self._toolset, self._limits, self._journal = toolset, limits, journal
        self._interrupter, self._data, self._run_blocking = interrupter, context, run_blocking
        self._guard = CircleGuard(
            repeat_warn=limits.repeat_warn,
            repeat_stop=limits.repeat_stop,
            failure_warn=limits.failure_warn,
            failure_stop=limits.failure_stop,
        )
        self._made = 0
        self._step = 0
        self._calls: Sequence[ToolCall] = ()
        self._found: list[ToolResult | None] = []
        self._waiting: deque[int] = deque()
        self._running: dict[asyncio.Task[ToolResult], _Running] = {}
        self.results: list[ToolResult] = []
        self._limit = ""
        self._detail = ""

    @property
    def limit(self) -> str:
        """Return the limit that calls have met, as ``LimitReached`` names it; "" for none."""
        return self._limit or self._guard.stop

    @property
    def detail(self) -> str:
        """Return what ``LimitReached`` says about it."""
        return self._detail if self._limit else self._guard.detail

    def count_past(self, messages: Sequence[Message]) -> None:
        """Count the calls of earlier attempts, so that a resumed run has the same limits as an unbroken one."""
        calls: dict[str, ToolCall] = {}
        for message in messages:
            if isinstance(message, Turn):
                self._guard.turn_begins()
                calls = {call.id: call for call in message.tool_calls}
            elif isinstance(message, ToolResult) and message.call_id in calls:
                self._count(calls[message.call_id], message)

    async def answer(
        self,
        step: int,
        turn: Turn,
        answered: Mapping[str, ToolResult],
        refusal: Refusal | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answer every call of a turn.

        Args:
            step: the turn's step.
            turn: a turn with calls.
            answered: results that exist already, by call id.
            refusal: run none of them, for this reason.

        Yields:
            ``ToolRunning`` and ``ToolFinished`` as things happen (results in order of completion).

        Raises:
            Interrupted: the run was stopped; every call is answered and journalled by then.
        """
        self._step, self._calls = step, turn.tool_calls
        self._guard.turn_begins()
        self._found = [answered.get(call.id) for call in self._calls]
        for call, result in zip(self._calls, self._found, strict=True):
            if result is not None:
                self._count(call, result)
        self._waiting = deque(i for i, result in enumerate(self._found) if result is None)
        stopped: Interrupted | None = None
        try:
            while self._waiting or self._running:
                for event in await self._launch(refusal):
                    yield event
                if self._running:
                    done, _ = await self._interrupter.run(
                        functools.partial(
                            asyncio.wait, self._running, return_when=asyncio.FIRST_COMPLETED
                        )
                    )
                    for task in [task for task in self._running if task in done]:
                        yield await self._end(task)
        except Interrupted as interrupted:
            stopped = interrupted
        finally:
            if stopped is None:
                await self._cancel_all()
        if stopped is not None:
            for event in await self._give_up(stopped.cause):
                yield event
        self.results = [result for result in self._found if result is not None]
        if stopped is not None and stopped.cause == "stop":
            raise stopped

    async def _launch(self, refusal: Refusal | None) -> list[Event]:
        """Start as many waiting calls as may run now; answer those that may not run at all."""
        events: list[Event] = []
        while self._waiting and len(self._running) < self._limits.max_parallel_tools:
            if self._interrupter.cause:
                if events:
                    break
                raise Interrupted(self._interrupter.cause)
            index = self._waiting[0]
            call = self._calls[index]
            prepared = (
                call_prepare(call, self._toolset)
                if refusal is None
                else error_result(call, refusal.code, refusal.text)
            )
            if isinstance(prepared, Prepared) and self._must_wait(prepared):
                break
            self._waiting.popleft()
            if isinstance(prepared, Prepared):
                prepared = self._over_limit(prepared) or prepared
            if isinstance(prepared, ToolResult):
                stored = None
                if prepared.error_code == "unknown_tool":
                    stored = await self._journal.call_started(self._step, call, None)
                events.append(await self._store(index, stored or prepared, 0.0, known=bool(stored)))
                continue
            stored = await self._journal.call_started(self._step, call, prepared.tool)
            self._made += 1
            if stored is not None:
                events.append(await self._store(index, stored, 0.0, known=True))
                continue
            self._start(index, prepared)
            events.append(ToolRunning(call, self._step))
        return events

    def _start(self, index: int, prepared: Prepared) -> None:
        context = ToolContext(self._data, prepared.call.id, self._step)
        task = asyncio.create_task(
            call_run(
                prepared,
                context,
                timeout_s=self._limits.tool_timeout_s,
                run_blocking=self._run_blocking,
            )
        )
        self._running[task] = _Running(index, prepared.call, context, time.monotonic())

    def _must_wait(self, prepared: Prepared) -> bool:
        """Tell whether a sequential tool, this one or one that runs, stands in the way."""
        if not self._running:
            return False
        if prepared.tool.sequential:
            return True
        running = (self._toolset.get(entry.call.name) for entry in self._running.values())
        return any(tool is not None and tool.sequential for tool in running)

    def _over_limit(self, prepared: Prepared) -> ToolResult | None:
        call, most = prepared.call, self._limits.max_tool_calls
        if most is not None and self._made >= most:
            self._limit = "max_tool_calls"
            self._detail = f"{most} tool calls were made"
            text = (
                f"{call.name} was not run: this run may make {most} tool calls and has made them."
            )
            return error_result(call, "limit", text)
        if not self._guard.call_allowed(call):
            text = f"{call.name} was not run: {self._guard.detail}. Its result would be the same."
            return error_result(call, "limit", text)
        return None

    async def _end(self, task: asyncio.Task[ToolResult]) -> ToolFinished:
        entry = self._running.pop(task)
        if task.cancelled():
            text = f"{entry.call.name} was cancelled from within."
            result = error_result(entry.call, "cancelled", text, severity="fatal")
        else:
            result = task.result()
        return await self._store(entry.index, result, time.monotonic() - entry.started)

    async def _store(
        self, index: int, result: ToolResult, duration_s: float, *, known: bool = False
    ) -> ToolFinished:
        """Keep a result, shortened and with a warning where due; ``known`` results are the journal's own."""
        call = self._calls[index]
        warning = self._guard.call_ended(call, is_error=result.is_error)
        content = output_cut(result.content, self._limits.max_tool_output_chars)
        if warning and not known and result.error_code not in ("limit", "cancelled"):
            content = f"{content}\n{warning}"
        if content != result.content:
            result = replace(result, content=content)
        self._found[index] = result
        self._toolset.call_ended(call.name, is_error=result.is_error)
        if not known:
            await self._journal.call_finished(self._step, call, result, duration_s)
        return ToolFinished(call, result, duration_s, self._step)

    def _count(self, call: ToolCall, result: ToolResult) -> None:
        if result.error_code not in _NEVER_RAN:
            self._made += 1
            self._guard.call_allowed(call)
        self._guard.call_ended(call, is_error=result.is_error)

    async def _give_up(self, cause: Cause) -> list[Event]:
        """Cancel what runs, and answer it and all that waits."""
        running = list(self._running.items())
        await self._cancel_all()
        events: list[Event] = []
        why = "the run was stopped" if cause == "stop" else "the run's time is over"
        code = "cancelled" if cause == "stop" else "limit"
        if cause == "deadline":
            self._limit = "max_seconds"
            self._detail = f"{self._limits.max_seconds:g} s have passed"
        for task, entry in running:
            if task.done() and not task.cancelled():
                result = task.result()  # It ended in the moment of the cancellation.
            else:
                text = (
                    f"{entry.call.name} was cancelled ({why}); it may have had an effect already."
                )
                result = error_result(entry.call, code, text)
            duration_s = time.monotonic() - entry.started
            events.append(await self._store(entry.index, result, duration_s))
        while self._waiting:
            index = self._waiting.popleft()
            call = self._calls[index]
            result = error_result(call, code, f"{call.name} was not run: {why}.")
            events.append(await self._store(index, result, 0.0))
        return events

    async def _cancel_all(self) -> None:
        tasks = dict(self._running)
        self._running.clear()
        for task, entry in tasks.items():
            entry.context.cancelled.set()
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=_CANCEL_GRACE_S)
            for task in left:
                logger.warning(
                    "tool %s ignores its cancellation; it is left behind", tasks[task].call.name
                )

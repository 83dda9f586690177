"""Answer the calls of one model turn: in parallel where allowed, each one journalled, none left without a result."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolloop.call_counters import CallCounters
from toolloop.deferred import Decision, ParkCall, PendingCall, edit_restored
from toolloop.events import CallParked, Event, ToolFinished, ToolProgress, ToolRunning
from toolloop.interrupts import Cause, Interrupted, Interrupter
from toolloop.journal import Journal
from toolloop.limits import Limits
from toolloop.messages import ToolCall, ToolResult, Turn
from toolloop.nested import NestedCalls, SerialJournal, arguments_shown
from toolloop.tools.context import ToolContext
from toolloop.tools.gate import call_gate
from toolloop.tools.runtime import BlockingRunner, CheckedCall, call_prepare, error_result, output_cut
from toolloop.tools.toolset import Toolset

logger = logging.getLogger(__name__)

_CANCEL_GRACE_S = 0.5  # A stop must be through within a second, also when a tool resists.


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

    Args:
        decisions: about calls that were parked before, by call id.
        waiting: calls that were parked before; those without a decision wait on where they are.
        mock: call the mocks of tools; nothing needs approval then.

    Attributes:
        results: after ``answer``, the results of that turn in call order.
        pending: after ``answer``, its calls that wait for a decision; these have no result.
        accounts: limits and figures over all calls of the run.
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
        run_admission: BlockingRunner | None = None,
        decisions: Mapping[str, Decision],
        mock: bool,
        waiting: Iterable[PendingCall] = (),
    ) -> None:
        self._toolset, self._limits = toolset, limits
        self._journal = SerialJournal(journal)
        self._interrupter, self._data = interrupter, context
        self._given, self._mock = decisions, mock
        self._waited = {pending.call.id: pending for pending in waiting}
        self._is_decided = False
        self._decisions: Mapping[str, Decision] = {}
        self.accounts = CallCounters(limits)
        self._nested = NestedCalls(
            toolset=toolset,
            limits=limits,
            journal=self._journal,
            accounts=self.accounts,
            run_blocking=run_blocking,
            run_admission=run_admission,
            mock=mock,
        )
        self._step = 0
        self._calls: list[ToolCall] = []
        self._asked: list[ToolCall] = []  # As the model wrote them; people edit.
        self._found: list[ToolResult | None] = []
        self._waiting: deque[int] = deque()
        self._running: dict[asyncio.Task[ToolResult], _Running] = {}
        self._pending: dict[int, PendingCall] = {}
        self._heard: deque[ToolProgress] = deque()
        self._hears: asyncio.Future[None] | None = None
        self.results: list[ToolResult] = []
        self._used: set[str] = set()

    @property
    def pending(self) -> list[PendingCall]:
        """Return the last turn's calls that wait for a decision, in call order."""
        return [self._pending[index] for index in sorted(self._pending)]

    @property
    def notes(self) -> list[str]:
        """Say which decisions found no call that waits for them."""
        waiting = {pending.call.id for pending in self._pending.values()}
        return [
            f"The decision about call {call_id} was not used: no such call waits, or it has its result."
            for call_id in self._given
            if call_id not in self._used and call_id not in waiting
        ]

    async def answer(
        self,
        step: int,
        turn: Turn,
        answered: Mapping[str, ToolResult],
        refusal: Refusal | None = None,
        *,
        decided: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Answer every call of a turn.

        Args:
            step: the turn's step.
            turn: a turn with calls.
            answered: results that exist already, by call id.
            refusal: run none of them, for this reason.
            decided: the decisions are about this turn. Those of any other must not count: ids are the model's, and one
                that comes again would pass as approved.

        Yields:
            ``ToolRunning``, ``ToolProgress``, ``ToolFinished`` and ``CallParked`` as things happen (results in order of
            completion).

        Raises:
            Interrupted: the run was stopped; every call is answered and journalled by then.
        """
        self._step, self._asked = step, list(turn.tool_calls)
        self._calls = list(self._asked)
        self._decisions, self._is_decided = (self._given if decided else {}), decided
        self._edited: set[int] = set()
        self._pending.clear()
        self.accounts.turn_begins()
        self._found = [answered.get(call.id) for call in self._calls]
        for call, result in zip(self._calls, self._found, strict=True):
            if result is not None:
                self.accounts.count(call, result)
        self._waiting = deque(i for i, result in enumerate(self._found) if result is None)
        stopped: Interrupted | None = None
        try:
            while self._waiting or self._running:
                for event in await self._launch(refusal):
                    yield event
                if self._running:
                    if self._hears is None or self._hears.done():
                        self._hears = asyncio.get_running_loop().create_future()
                    awaited: list[asyncio.Future[Any]] = [*self._running, self._hears]
                    done, _ = await self._interrupter.run(
                        functools.partial(asyncio.wait, awaited, return_when=asyncio.FIRST_COMPLETED)
                    )
                    while self._heard:
                        yield self._heard.popleft()
                    for task in [task for task in self._running if task in done]:
                        yield await self._end(task)
        except Interrupted as interrupted:
            stopped = interrupted
        finally:
            if stopped is None:
                await self._cancel_all()
        while self._heard:
            yield self._heard.popleft()
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
            prepared = self._checked(index, refusal)
            if isinstance(prepared, CheckedCall) and self._must_wait(prepared):
                break
            self._waiting.popleft()
            if isinstance(prepared, PendingCall):
                events.append(await self._park(index, prepared))
                continue
            call = self._calls[index]
            if isinstance(prepared, CheckedCall):
                prepared = self.accounts.refused(call) or prepared
            if isinstance(prepared, ToolResult):
                stored = None
                if prepared.error_code in ("unknown_tool", "denied"):
                    stored = await self._journal.call_started(self._step, call, None)
                events.append(await self._store(index, stored or prepared, 0.0, known=bool(stored)))
                continue
            stored = await self._journal.call_started(self._step, call, prepared.tool)
            self.accounts.made()
            if stored is not None:
                events.append(await self._store(index, stored, 0.0, known=True))
                continue
            self._start(index, prepared)
            events.append(ToolRunning(call, self._step))
        return events

    def _context(self, call: ToolCall) -> ToolContext:
        _, decision = edit_restored(call, self._decisions.get(call.id))
        return ToolContext(self._data, call.id, self._step, decision=decision, nested=self._nested)

    def _checked(self, index: int, refusal: Refusal | None) -> CheckedCall | ToolResult | PendingCall:
        """Check a call and apply what was decided about it; edited arguments take the place of the model's."""
        call = self._calls[index]
        if refusal is not None:
            return error_result(call, refusal.code, refusal.text)
        given = self._decisions.get(call.id)
        waited = self._waited.get(call.id) if self._is_decided and given is None else None
        if waited is not None and waited.state is not None:
            return waited
        restored, _ = edit_restored(call, given)
        if restored is not call:
            self._edited.add(index)
        call = restored
        prepared: CheckedCall | ToolResult | PendingCall = call_prepare(call, self._toolset)
        if self._mock or not isinstance(prepared, CheckedCall):
            return prepared
        context = self._context(call)
        judged = functools.partial(self._journal.call_judged, self._step)
        prepared = call_gate(prepared, self._toolset, context, context.decision, judged)
        if isinstance(prepared, PendingCall):
            return prepared
        if context.decision is not None:
            self._used.add(call.id)
        if isinstance(prepared, CheckedCall):
            self._calls[index] = prepared.call
            if context.decision is not None and context.decision.arguments is not None:
                # With a state the edit was of a call that the tool makes (a program's), and the tool itself tells of it.
                self._edited |= {index} if context.decision.state is None else set()
        return prepared

    async def _park(self, index: int, pending: PendingCall) -> CallParked:
        pending = pending.kept(self._asked[index])
        self._pending[index] = pending
        await self._journal.call_parked(self._step, pending)
        return CallParked(pending, self._step)

    def _start(self, index: int, prepared: CheckedCall) -> None:
        hear = functools.partial(self._hear, index, prepared.call)
        context = replace(self._context(prepared.call), on_piece=hear)
        task = asyncio.create_task(self._nested.run(prepared, context))
        self._running[task] = _Running(index, prepared.call, context, time.monotonic())

    def _hear(self, index: int, call: ToolCall, text: str) -> None:
        """Pass on a piece of a call's result, unless the call has been given up."""
        if any(entry.index == index for entry in self._running.values()):
            self._heard.append(ToolProgress(call, text, self._step))
            if self._hears is not None and not self._hears.done():
                self._hears.set_result(None)

    def _must_wait(self, prepared: CheckedCall) -> bool:
        """Tell whether a sequential tool, this one or one that runs, stands in the way."""
        if not self._running:
            return False
        if prepared.tool.sequential:
            return True
        running = (self._toolset.get(entry.call.name) for entry in self._running.values())
        return any(tool is not None and tool.sequential for tool in running)

    async def _end(self, task: asyncio.Task[ToolResult]) -> ToolFinished | CallParked:
        entry = self._running.pop(task)
        if self._journal.error is not None:
            raise self._journal.error  # A call that a tool made could not be recorded.
        if task.cancelled():
            text = f"{entry.call.name} was cancelled from within."
            result = error_result(entry.call, "cancelled", text, severity="fatal")
        elif isinstance(parked := task.exception(), ParkCall):
            pending = PendingCall(entry.call, parked.kind, parked.reason, parked.state, parked.approval)
            return await self._park(entry.index, pending)
        else:
            result = task.result()
        return await self._store(entry.index, result, time.monotonic() - entry.started)

    async def _store(
        self, index: int, result: ToolResult, duration_s: float, *, known: bool = False
    ) -> ToolFinished:
        """Keep a result, shortened and with a warning where due; ``known`` results are the journal's own."""
        call = self._calls[index]
        warning = self.accounts.ended(call, result, duration_s)
        content = output_cut(result.content, self._limits.max_tool_output_chars)
        if index in self._edited and not known:
            changed = arguments_shown(call, self._toolset.get(call.name))
            content = f"[A person changed the arguments to {changed}]\n{content}"
        if warning and not known:
            content = f"{content}\n{warning}"
        if content != result.content:
            result = replace(result, content=content, whole_chars=len(result.content))
        if not known:
            result = await self._journal.result_shown(self._step, call, result)
        self._found[index] = result
        self._toolset.call_ended(call.name, is_error=result.is_error)
        if not known:
            await self._journal.call_finished(self._step, call, result, duration_s)
        return ToolFinished(call, result, duration_s, self._step)

    async def _give_up(self, cause: Cause) -> list[Event]:
        """Cancel what runs, and answer it and all that waits."""
        running = list(self._running.items())
        await self._cancel_all()
        if self._journal.error is not None:
            raise self._journal.error
        events: list[Event] = []
        why = "the run was stopped" if cause == "stop" else "the run's time is over"
        code = "cancelled" if cause == "stop" else "limit"
        if cause == "deadline":
            self.accounts.meet("max_seconds", f"{self._limits.max_seconds:g} s have passed")
        for task, entry in running:
            if task.done() and not task.cancelled() and task.exception() is None:
                result = task.result()  # It ended in the moment of the cancellation.
            else:
                text = f"{entry.call.name} was cancelled ({why}); it may have had an effect already."
                result = error_result(entry.call, code, text)
            duration_s = time.monotonic() - entry.started
            events.append(await self._store(entry.index, result, duration_s))
        if cause == "stop":
            self._waiting.extendleft(sorted(self._pending, reverse=True))
            self._pending.clear()
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
                logger.warning("tool %s ignores its cancellation; it is left behind", tasks[task].call.name)

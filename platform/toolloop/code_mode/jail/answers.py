"""What a program is told: the answers of its calls, and, when it goes on after a pause, the same ones in the same order."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from toolloop.code_mode.host import ApprovalNeeded, CallAnswer, CallsExhausted, Planned, ToolHost, tasks_end
from toolloop.code_mode.jail.line import Lost
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.names import PARALLEL
from toolloop.code_mode.result import Ending, Problem
from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall

_LONGEST_S = 1e10
_MOST_WAITS = 20_000  # Times a program may sleep or wait, besides its calls.


class Ended(Exception):
    """The program was ended by the host."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.error)
        self.problem = problem


class Answers:
    """Answers one program's questions.

    Args:
        host: makes its calls.
        limits: of the program.
        is_async: whether it awaits its calls.

    Attributes:
        line: line of its last question, 0 before the first.
    """

    def __init__(self, host: ToolHost, limits: CodeLimits, *, is_async: bool) -> None:
        self._host, self._limits, self._is_async = host, limits, is_async
        self.line = 0
        self._asked: Counter[str] = Counter()
        self._slept = 0.0
        # What the program was told so far, in order, and what of it is still to be told again.
        self.told: list[Any] = []
        self._again: list[Any] = []
        # Calls of a program that awaits, by its own number: answered and not told yet, and being worked on.
        self.settled: dict[int, CallAnswer] = {}
        self.planned: dict[int, Planned] = {}
        self._marks: dict[int, str] = {}
        self._tasks: dict[int, asyncio.Task[CallAnswer]] = {}

    def memory(self) -> dict[str, Any]:
        """Return what must survive a pause, as JSON."""
        return {
            "told": self.told,
            "slept_s": self._slept,
            "settled": {str(k): answer.to_json() for k, answer in self.settled.items()},
            "unsettled": {str(k): [p.call.to_json(), p.line] for k, p in self.planned.items()},
            "marks": {str(k): mark for k, mark in self._marks.items()},
        }

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on where ``memory`` was taken."""
        self.told, self._again = list(memory["told"]), list(memory["told"])
        self._slept = memory["slept_s"]
        self.settled = {int(k): CallAnswer(*answer) for k, answer in memory["settled"].items()}
        self.planned = {
            int(k): Planned(ToolCall.from_json(call), line) for k, (call, line) in memory["unsettled"].items()
        }
        self._marks = {int(k): mark for k, mark in memory["marks"].items()}

    def begin(self) -> None:
        """Make the calls that were not answered when the program was paused."""
        for number, planned in self.planned.items():
            self._tasks[number] = asyncio.create_task(self._host.make(planned))

    async def end(self) -> None:
        """Cancel what still runs."""
        await tasks_end(list(self._tasks.values()))

    async def rest(self) -> tuple[PendingCall, ...]:
        """Wait for all calls under way; return those that wait for somebody."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
            self._collect()
        waiting: tuple[PendingCall, ...] = ()
        for task in self._tasks.values():
            error = task.exception()
            if isinstance(error, ApprovalNeeded):
                waiting += error.pending
        return waiting

    async def answer(self, frame: list[Any]) -> Any:
        """Return what to tell the program, None for nothing yet.

        Raises:
            ApprovalNeeded: somebody must decide first.
            CallsExhausted: it may make no more calls.
            Ended: it slept for too long, or did not repeat itself.
            Lost: it says what no program says.
        """
        kind = "waits" if frame[0] in ("wait", "sleep") else "calls"
        self._asked[kind] += 1
        if self._asked["calls"] > self._limits.suspensions or self._asked["waits"] > _MOST_WAITS:
            raise CallsExhausted("The program called out too many times.")
        match frame:
            case ["call", 0, str(name), given, int(where)]:
                return await self._call(name, given, where)
            case ["call", int(number), str(name), given, int(where)] if self._is_async:
                self._call_begin(number, name, given, where)
                return None
            case ["parallel", list(specs), int(where)]:
                return await self._parallel(specs, where)
            case ["wait", None]:
                return await self._wait(None)
            case ["wait", int() | float() as seconds] if 0 <= seconds < _LONGEST_S:
                return await self._wait(seconds)
            case ["sleep", int() | float() as seconds, int(where)] if 0 <= seconds < _LONGEST_S:
                self.line = where
                return await self._sleep(seconds)
            case _:
                raise Lost("it said something that no program says")

    # Calls that the program waits for

    async def _call(self, name: str, given: Any, line: int) -> Any:
        self.line = line
        if self._again:
            return self._repeated(name, given)
        planned = [self._planned(name, given, line)]
        return self._kept(name, given, await self._made(planned, lambda: self._host.make(planned[0])))

    async def _parallel(self, specs: list[Any], line: int) -> Any:
        self.line = line
        if self._again:
            return self._repeated(PARALLEL, specs)
        planned = self._host.plan(PARALLEL, [specs], {}, line) if specs else []
        return self._kept(PARALLEL, specs, await self._made(planned, lambda: self._host.make_all(planned)))

    async def _made(self, planned: list[Planned], make: Callable[[], Any]) -> CallAnswer:
        try:
            answer: CallAnswer = await make()
        except ApprovalNeeded:
            self._host.plan_undo(planned)
            raise
        return answer

    def _kept(self, name: str, given: Any, answer: CallAnswer) -> list[Any]:
        self.told.append(["call", _mark(name, given), answer.to_json()])
        return ["answer", *answer.to_json()]

    def _repeated(self, name: str, given: Any) -> list[Any]:
        """Return what the program was told when it was here before."""
        known = self._again.pop(0)
        if known[:2] != ["call", _mark(name, given)]:
            self._strayed()
        return ["answer", *known[2]]

    def _strayed(self) -> None:
        text = "The program did not repeat what it did before it was paused."
        advice = "Send a program that makes the remaining calls; those listed as done are done."
        raise Ended(Problem(Ending.RUNTIME_ERROR, text, self.line, advice))

    def _planned(self, name: str, given: Any, line: int) -> Planned:
        if not self._host.has(name) or name == PARALLEL:
            raise Lost("it called what is no tool")
        if isinstance(given, str):
            return self._host.refused(name, line, given)
        match given:
            case [list(args), dict(kwargs)]:
                return self._host.plan(name, args, kwargs, line)[0]
            case _:
                raise Lost("its call has no arguments")

    async def _sleep(self, seconds: float) -> Any:
        if not self._again:
            await asyncio.sleep(self._sleepable(seconds))
        return ["slept"]

    def _sleepable(self, seconds: float) -> float:
        self._slept += max(0.0, seconds)
        if self._slept > self._limits.sleep_s:
            text = f"TimeoutError: a program may sleep {self._limits.sleep_s:g} s in all"
            raise Ended(Problem(Ending.LIMIT_TIME, text, self.line))
        return max(0.0, seconds)

    # Calls that the program awaits

    def _call_begin(self, number: int, name: str, given: Any, line: int) -> None:
        self.line = line
        if number in self._marks:  # Made before the pause.
            if self._marks[number] != _mark(name, given):
                self._strayed()
            return
        planned = self._planned(name, given, line)
        self._marks[number] = _mark(name, given)
        self.planned[number] = planned
        self._tasks[number] = asyncio.create_task(self._host.make(planned))

    async def _wait(self, seconds: float | None) -> Any:
        """Wait for the first answers, or until the program wants to go on by itself."""
        if self._again:
            known = self._again.pop(0)
            if known[0] not in ("answers", "skip"):
                self._strayed()
            return known
        self._collect()
        if not self.settled:
            running = [task for task in self._tasks.values() if not task.done()]
            if seconds is not None and not running and not self._tasks:
                await asyncio.sleep(self._sleepable(seconds))
            elif running:
                await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                self._collect()
            elif self._tasks:
                raise ApprovalNeeded(())
            else:
                text = "RuntimeError: the program waits for something that never happens"
                raise Ended(Problem(Ending.RUNTIME_ERROR, text, self.line))
        if not self.settled and seconds is None:
            return await self._wait(seconds)
        if self.settled:
            answers = [[number, *answer.to_json()] for number, answer in self.settled.items()]
            self.settled.clear()
            frame: list[Any] = ["answers", answers]
            self.told.append(frame)
            return frame
        self.told.append(["skip"])
        return ["woken"]

    def _collect(self) -> None:
        """Take the answers of the tasks that have one; those that wait for somebody stay."""
        for number, task in list(self._tasks.items()):
            if task.done() and not isinstance(task.exception(), ApprovalNeeded):
                self.settled[number] = task.result()
                del self._tasks[number]
                self.planned.pop(number, None)


def _mark(name: str, given: Any) -> str:
    """Return a short text that is another one for another call."""
    text = json.dumps([name, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

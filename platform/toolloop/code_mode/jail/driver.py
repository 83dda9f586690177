"""Run programs on CPython in a process of their own that may only compute: every call comes back to the host.

A paused program is not kept in memory: its source, its seed, the clock it read and the answers it got are written down. When
it goes on it is run again, is given the same answers, and is at the same place.
"""

from __future__ import annotations

import ast
import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolloop.code_mode.backend import Outcome
from toolloop.code_mode.host import (
    Answer,
    ApprovalNeeded,
    CallsExhausted,
    Planned,
    ToolHost,
    tasks_end,
)
from toolloop.code_mode.jail.check import check
from toolloop.code_mode.jail.endings import problem_of
from toolloop.code_mode.jail.line import Late, Line, Lost
from toolloop.code_mode.jail.zygote import Zygote, room, zygote_get
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.names import PARALLEL
from toolloop.code_mode.result import CodeResult, Ending, Output, Problem
from toolloop.code_mode.scan import Scan
from toolloop.code_mode.state import StateRefused
from toolloop.code_mode.values import ValueTooLarge, value_plain
from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall

INTERPRETER = f"cpython {sys.version_info.major}.{sys.version_info.minor}"
_ROOM_S = 5.0  # How long a program waits for one of the places of this process.
_IN_THREAD_BYTES = 4096  # Longer programs are read off the event loop.
_MOST_READINGS = 2000


class CPythonBackend:
    """The sandbox of code mode where the kernel can confine a process.

    Args:
        processes: programs that run at the same time in this process; counts for the first backend that runs one.
    """

    name = "cpython"

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes

    async def run(
        self, source: str, host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> Outcome:
        """See ``SandboxBackend``."""
        begun = time.monotonic()
        read = await _read(source, host, limits)
        if isinstance(read, Problem):
            return Outcome(read.result(source, duration_ms=(time.monotonic() - begun) * 1000))
        run = _Run(read, host, limits, on_output, secrets.randbits(64))
        outcome = await run.go(self._processes)
        crashed = outcome.result.ending is Ending.WORKER_CRASHED
        if crashed and not host.made and not host.log and not run.output.total:
            # Nothing had happened yet, not even begun, so a second attempt repeats nothing.
            outcome = await _Run(read, host, limits, on_output, run.seed).go(self._processes)
        return outcome

    async def resume(
        self,
        state: Mapping[str, Any],
        host: ToolHost,
        limits: CodeLimits,
        on_output: Callable[[str], None],
    ) -> Outcome:
        """See ``SandboxBackend``."""
        if state["interpreter"] != INTERPRETER:
            raise StateRefused(
                f"The program was paused by {state['interpreter']}, this is {INTERPRETER}: run it again."
            )
        read = await _read(state["source"], host, limits)
        if isinstance(read, Problem):
            return Outcome(read.result(state["source"]))
        host.remember(state["host"])
        run = _Run(read, host, limits, on_output, state["seed"])
        run.remember(state)
        return await run.go(self._processes)


class Program:
    """A program that was read and found good to run.

    Args:
        source: its text.
        scan: what was found in it.
    """

    def __init__(self, source: str, scan: Scan, loop_line: int) -> None:
        self.source = source
        self.is_async = scan.is_async
        self.loop_line = loop_line


async def _read(source: str, host: ToolHost, limits: CodeLimits) -> Program | Problem:
    if len(source) > limits.code_bytes or len(source.encode(errors="replace")) > limits.code_bytes:
        text = f"The program is longer than {limits.code_bytes} bytes."
        return Problem(Ending.SYNTAX_ERROR, text, 0, "Write a shorter program, or several.")
    if len(source) < _IN_THREAD_BYTES:
        return program_read(source, host.names)
    return await asyncio.to_thread(program_read, source, host.names)


def program_read(source: str, tools: Any) -> Program | Problem:
    """Parse and check a program of bounded length.

    Args:
        source: hostile text; the parser ends in one of four exceptions on it.
        tools: names the program may call.
    """
    try:
        source.encode()
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        tree = ast.parse(source)
        scan = Scan(tree, tools)
        return check(tree, scan) or Program(source, scan, _only_loop(tree))
    except SyntaxError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error.msg}", error.lineno or 0)
    except (RecursionError, MemoryError):
        return Problem(Ending.SYNTAX_ERROR, "SyntaxError: the program is nested too deeply")
    except ValueError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error}")


def _only_loop(tree: ast.Module) -> int:
    loops = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return loops[0] if len(loops) == 1 else 0


class _Ended(Exception):
    """The program was ended by the host."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.error)
        self.problem = problem


class _Run:
    """One program in one process."""

    def __init__(
        self,
        program: Program,
        host: ToolHost,
        limits: CodeLimits,
        on_output: Callable[[str], None],
        seed: int,
    ) -> None:
        self.program, self.host, self.limits, self.seed = program, host, limits, seed
        self.output = Output(limits.output_chars)
        self.spent_s = 0.0  # Before a pause.
        self.clock: list[float] = []
        # What the program was told so far, in order, and what of it is still to be told again.
        self.told: list[Any] = []
        self._again: list[Any] = []
        # Calls of a program that awaits, by its own number: answered and not told yet, and being worked on.
        self.settled: dict[int, Answer] = {}
        self.planned: dict[int, Planned] = {}
        self._names: dict[int, str] = {}
        self._tasks: dict[int, asyncio.Task[Answer]] = {}
        self._on_output = on_output
        self._muted = 0  # Characters of output that were reported before the pause.
        self._slept = 0.0
        self._line = 0
        self._begun = time.monotonic()
        host.ordered = not program.is_async

    def remember(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.spent_s, self.clock = state["spent_s"], list(state["clock"])
        self.told, self._again = list(state["told"]), list(state["told"])
        self._muted = state["output_total"]
        self.settled = {int(k): Answer(*answer) for k, answer in state["settled"].items()}
        self.planned = {
            int(k): Planned(ToolCall.from_json(call), line)
            for k, (call, line) in state["unsettled"].items()
        }
        self._names = {int(k): name for k, name in state["names"].items()}
        self._slept = state["slept_s"]

    async def go(self, processes: int) -> Outcome:
        """Run to an outcome, within the wall-clock limit."""
        scope = asyncio.timeout(max(0.01, self.limits.wall_s - self.spent_s))
        free = room(processes)
        try:
            async with scope:
                if not await _taken(free):
                    return self._ended(Problem(Ending.BUSY, "All places for programs are taken."))
                try:
                    return await self._session(await asyncio.to_thread(zygote_get))
                finally:
                    free.release()
        except TimeoutError:
            if not scope.expired():
                raise
            text = f"The program had not ended after {self.limits.wall_s:g} s."
            return self._ended(Problem(Ending.WALL_CLOCK, text, self._last_line()))
        finally:
            await tasks_end(list(self._tasks.values()))

    async def _session(self, zygote: Zygote) -> Outcome:
        try:
            line = Line(zygote, self.limits)
        except OSError as error:
            return self._ended(Problem(Ending.WORKER_CRASHED, f"The sandbox was lost: {error}"))
        try:
            return await self._drive(line)
        except _Ended as ended:
            return self._ended(ended.problem)
        except CallsExhausted as error:
            return self._ended(Problem(Ending.LIMIT_CALLS, str(error), self._last_line()))
        except Late:
            return self._ended(self._late(self._last_line()))
        except Lost as error:
            text = f"The interpreter was lost: {error}"[:300]
            return self._ended(Problem(Ending.WORKER_CRASHED, text, self._last_line()))
        finally:
            line.close()

    async def _drive(self, line: Line) -> Outcome:
        limits = self.limits
        await line.greet()
        order = {
            "source": self.program.source,
            "tools": list(self.host.names),
            "awaits": self.program.is_async,
            "clock": self.clock,
            "seed": self.seed,
            "run_s": limits.run_s,
            "turn_s": limits.turn_s,
            "memory": limits.memory_bytes,
            "nodes": limits.value_nodes,
            "size": limits.result_bytes,
            "most_calls": limits.tool_calls,
            "depth": limits.recursion_depth,
        }
        await line.send(["order", order])
        for number, planned in self.planned.items():
            self._tasks[number] = asyncio.create_task(self.host.make(planned))
        while True:
            frame = await line.next()
            match frame:
                case ["out", "stdout" | "stderr" as stream, str(text)]:
                    self._printed(stream, text)
                case ["clock", list(readings)] if len(self.clock) < _MOST_READINGS:
                    self.clock += [float(reading) for reading in readings]
                case ["end", value]:
                    return self._complete(value)
                case ["error", str(kind), str(text), int(where), bool(syntax)]:
                    where = where or (0 if syntax else self._last_line())
                    return self._ended(problem_of(kind, text, where, syntax, self.host))
                case ["late", int(where)]:
                    return self._ended(self._late(where or self._last_line()))
                case ["unconfined", str(text)]:
                    raise Lost(f"it cannot be confined on this machine: {text}")
                case _:
                    try:
                        answer = await self._answer(frame)
                    except ApprovalNeeded as needed:
                        return await self._pause(needed.pending)
                    if answer is not None:
                        await line.send(answer)

    async def _answer(self, frame: list[Any]) -> Any:
        match frame:
            case ["call", 0, str(name), given, int(where)]:
                return await self._call(name, given, where)
            case ["call", int(number), str(name), given, int(where)] if self.program.is_async:
                self._call_begin(number, name, given, where)
                return None
            case ["parallel", list(specs), int(where)]:
                return await self._parallel(specs, where)
            case ["wait", None | int() | float() as seconds]:
                return await self._wait(seconds)
            case ["sleep", int() | float() as seconds, int(where)]:
                self._line = where
                return await self._sleep(float(seconds))
            case _:
                raise Lost("it said something that no program says")

    # Calls that the program waits for

    async def _call(self, name: str, given: Any, line: int) -> Any:
        self._line = line
        if self._again:
            return self._repeated("call", name)
        planned = [self._planned(name, given, line)]
        return self._kept(
            "call", name, await self._made(planned, lambda: self.host.make(planned[0]))
        )

    async def _parallel(self, specs: list[Any], line: int) -> Any:
        self._line = line
        if self._again:
            return self._repeated("call", PARALLEL)
        planned = self.host.plan(PARALLEL, [specs], {}, line) if specs else []
        return self._kept(
            "call", PARALLEL, await self._made(planned, lambda: self.host.make_all(planned))
        )

    async def _made(self, planned: list[Planned], make: Callable[[], Any]) -> Answer:
        try:
            answer: Answer = await make()
        except ApprovalNeeded:
            self.host.plan_undo(planned)
            raise
        return answer

    def _kept(self, kind: str, name: str, answer: Answer) -> list[Any]:
        self.told.append([kind, name, answer.to_json()])
        return ["answer", *answer.to_json()]

    def _repeated(self, kind: str, name: str) -> list[Any]:
        """Return what the program was told when it was here before."""
        known = self._again.pop(0)
        if known[:2] != [kind, name]:
            self._strayed()
        return ["answer", *known[2]]

    def _strayed(self) -> None:
        text = "The program did not repeat what it did before it was paused."
        advice = "Send a program that makes the remaining calls; those listed as done are done."
        raise _Ended(Problem(Ending.RUNTIME_ERROR, text, self._last_line(), advice))

    def _planned(self, name: str, given: Any, line: int) -> Planned:
        if not self.host.has(name) or name == PARALLEL:
            raise Lost("it called what is no tool")
        if isinstance(given, str):
            return self.host.refused(name, line, given)
        match given:
            case [list(args), dict(kwargs)]:
                return self.host.plan(name, args, kwargs, line)[0]
            case _:
                raise Lost("its call has no arguments")

    async def _sleep(self, seconds: float) -> Any:
        if not self._again:
            await asyncio.sleep(self._sleepable(seconds))
        return ["slept"]

    def _sleepable(self, seconds: float) -> float:
        self._slept += max(0.0, seconds)
        if self._slept > self.limits.sleep_s:
            text = f"TimeoutError: a program may sleep {self.limits.sleep_s:g} s in all"
            raise _Ended(Problem(Ending.LIMIT_TIME, text, self._last_line()))
        return max(0.0, seconds)

    # Calls that the program awaits

    def _call_begin(self, number: int, name: str, given: Any, line: int) -> None:
        self._line = line
        if number in self._names:  # Made before the pause.
            if self._names[number] != name:
                self._strayed()
            return
        planned = self._planned(name, given, line)
        self._names[number] = name
        self.planned[number] = planned
        self._tasks[number] = asyncio.create_task(self.host.make(planned))

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
                raise _Ended(Problem(Ending.RUNTIME_ERROR, text, self._last_line()))
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

    # The end

    async def _pause(self, pending: tuple[PendingCall, ...]) -> Outcome:
        """Write the program down; calls that still run are waited for, because they cannot be."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
            self._collect()
        for task in self._tasks.values():
            error = task.exception()
            if isinstance(error, ApprovalNeeded):
                pending += error.pending
        problem = Problem(
            Ending.PAUSED_APPROVAL,
            f"{', '.join(one.call.name for one in pending)} needs a decision.",
            self._line,
        )
        state = {
            "interpreter": INTERPRETER,
            "source": self.program.source,
            "seed": self.seed,
            "clock": self.clock,
            "told": self.told,
            "host": self.host.memory(),
            "output_total": self.output.total,
            "spent_s": self._spent(),
            "slept_s": self._slept,
            "settled": {str(k): answer.to_json() for k, answer in self.settled.items()},
            "unsettled": {str(k): [p.call.to_json(), p.line] for k, p in self.planned.items()},
            "names": {str(k): name for k, name in self._names.items()},
        }
        return Outcome(self._result(problem, pending=pending), state)

    def _complete(self, value: Any) -> Outcome:
        try:
            plain = value_plain(
                value, nodes=self.limits.value_nodes, size=self.limits.result_bytes, loose=True
            )
        except ValueTooLarge as error:
            raise Lost("its value is larger than a program may send") from error
        result = CodeResult(
            Ending.OK,
            value=plain,
            output=self.output.text(),
            error_output=self.output.text("stderr"),
            output_cut=self.output.cut,
            calls=tuple(self.host.log),
            parts=tuple(self.host.parts),
            duration_ms=self._spent() * 1000,
        )
        return Outcome(result)

    def _late(self, line: int) -> Problem:
        return Problem(Ending.LIMIT_TIME, "TimeoutError: time limit exceeded", line)

    def _ended(self, problem: Problem) -> Outcome:
        return Outcome(self._result(problem))

    def _result(self, problem: Problem, **more: Any) -> CodeResult:
        return problem.result(
            self.program.source,
            output=self.output.text(),
            error_output=self.output.text("stderr"),
            output_cut=self.output.cut,
            calls=tuple(self.host.log),
            duration_ms=self._spent() * 1000,
            **more,
        )

    def _printed(self, stream: str, text: str) -> None:
        before = self.output.total
        kept = self.output.add(stream, text)
        told = max(0, self._muted - before)
        if kept[told:] and stream == "stdout":
            self._on_output(kept[told:])
        if self.output.total > self.limits.output_stop:
            said = f"The program printed more than {self.limits.output_stop} characters."
            raise _Ended(Problem(Ending.LIMIT_OUTPUT, said, self._last_line()))

    def _last_line(self) -> int:
        """Return where the program most likely is: its last call, or its only loop."""
        return self._line or self.program.loop_line

    def _spent(self) -> float:
        return self.spent_s + time.monotonic() - self._begun


async def _taken(free: Any) -> bool:
    """Take a place, which is shared by all threads and event loops of this process."""
    until = time.monotonic() + _ROOM_S
    while not free.acquire(blocking=False):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True

"""Run programs on CPython in a process of their own that may only compute: every call comes back to the host.

A paused program is not kept in memory: its source, its seed, the clock it read and the answers it got are written down. When
it goes on it is run again, is given the same answers, and is at the same place.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolloop.code_mode.backend import ProgramResult
from toolloop.code_mode.host import ApprovalNeeded, CallsExhausted, ToolHost
from toolloop.code_mode.jail.answers import Answers, Ended
from toolloop.code_mode.jail.endings import problem_of
from toolloop.code_mode.jail.line import Late, Lost, ProgramProcess
from toolloop.code_mode.jail.reading import Program, program_read
from toolloop.code_mode.jail.zygote import Zygote, room, zygote_get, zygote_ready
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.parsing import program_prepare
from toolloop.code_mode.result import CodeResult, Ending, Output, Problem
from toolloop.code_mode.state import StateRefused
from toolloop.code_mode.values import ValueTooLarge, value_plain
from toolloop.deferred import PendingCall

INTERPRETER = f"cpython {sys.version_info.major}.{sys.version_info.minor}"
_ROOM_S = 5.0  # How long a program waits for one of the places of this process.
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
    ) -> ProgramResult:
        """See ``SandboxBackend``."""
        begun = time.monotonic()
        read = await program_prepare(source, host, limits, program_read)
        if isinstance(read, Problem):
            return ProgramResult(read.result(source, duration_ms=(time.monotonic() - begun) * 1000))
        run = _Run(read, host, limits, on_output, secrets.randbits(64))
        outcome = await run.go(self._processes)
        crashed = outcome.result.ending is Ending.WORKER_CRASHED
        if crashed and not host.made and not host.log and not run.output.total:
            # Nothing had happened yet, not even begun, so a second attempt repeats nothing.
            outcome = await _Run(read, host, limits, on_output, run.seed).go(self._processes)
        return outcome

    async def resume(
        self, state: Mapping[str, Any], host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> ProgramResult:
        """See ``SandboxBackend``."""
        if state["interpreter"] != INTERPRETER:
            raise StateRefused(
                f"The program was paused by {state['interpreter']}, this is {INTERPRETER}: run it again."
            )
        read = await program_prepare(state["source"], host, limits, program_read)
        if isinstance(read, Problem):
            return ProgramResult(read.result(state["source"]))
        host.remember(state["host"])
        run = _Run(read, host, limits, on_output, state["seed"])
        run.remember(state)
        return await run.go(self._processes)


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
        self.answers = Answers(host, limits, is_async=program.is_async)
        self._on_output = on_output
        self._muted = 0  # Characters of output that were reported before the pause.
        self._begun = time.monotonic()
        host.ordered = not program.is_async

    def remember(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.spent_s, self.clock = state["spent_s"], list(state["clock"])
        self._muted = state["output_total"]
        self.answers.remember(state["answers"])

    async def go(self, processes: int) -> ProgramResult:
        """Run to an outcome, within the wall-clock limit."""
        scope = asyncio.timeout(max(0.01, self.limits.wall_s - self.spent_s))
        free = room(processes)
        try:
            async with scope:
                if not await _taken(free):
                    return self._ended(Problem(Ending.BUSY, "All places for programs are taken."))
                try:
                    zygote = zygote_ready()
                    if zygote is None:
                        zygote = await asyncio.to_thread(zygote_get)
                    return await self._session(zygote)
                finally:
                    free.release()
        except TimeoutError:
            if not scope.expired():
                raise
            text = f"The program had not ended after {self.limits.wall_s:g} s."
            return self._ended(Problem(Ending.WALL_CLOCK, text, self._last_line()))
        finally:
            await self.answers.end()

    async def _session(self, zygote: Zygote) -> ProgramResult:
        try:
            line = ProgramProcess(zygote, self.limits)
        except OSError as error:
            return self._ended(Problem(Ending.WORKER_CRASHED, f"The sandbox was lost: {error}"))
        try:
            return await self._drive(line)
        except Ended as ended:
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

    async def _drive(self, line: ProgramProcess) -> ProgramResult:
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
        self.answers.begin()
        while True:
            frame = await line.next()
            match frame:
                case ["out", "stdout" | "stderr" as stream, str(text)]:
                    self._printed(stream, text)
                case ["clock", [*readings]] if all(type(one) is float for one in readings):
                    self.clock = [*self.clock, *readings][:_MOST_READINGS]
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
                        answer = await self.answers.answer(frame)
                    except ApprovalNeeded as needed:
                        return await self._pause(needed.pending)
                    if answer is not None:
                        await line.send(answer)

    # The end

    async def _pause(self, pending: tuple[PendingCall, ...]) -> ProgramResult:
        """Write the program down; calls that still run are waited for, because they cannot be."""
        pending += await self.answers.rest()
        problem = Problem(
            Ending.PAUSED_APPROVAL,
            f"{', '.join(one.call.name for one in pending)} needs a decision.",
            self.answers.line,
        )
        state = {
            "interpreter": INTERPRETER,
            "source": self.program.source,
            "seed": self.seed,
            "clock": self.clock,
            "answers": self.answers.memory(),
            "host": self.host.memory(),
            "output_total": self.output.total,
            "spent_s": self._spent(),
        }
        return ProgramResult(self._result(problem, pending=pending), state)

    def _complete(self, value: Any) -> ProgramResult:
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
        return ProgramResult(result)

    def _late(self, line: int) -> Problem:
        return Problem(Ending.LIMIT_TIME, "TimeoutError: time limit exceeded", line)

    def _ended(self, problem: Problem) -> ProgramResult:
        return ProgramResult(self._result(problem))

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
            raise Ended(Problem(Ending.LIMIT_OUTPUT, said, self._last_line()))

    def _last_line(self) -> int:
        """Return where the program most likely is: its last call, or its only loop."""
        return self.answers.line or self.program.loop_line

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

"""Run programs on pydantic-monty: the host answers every suspension, so that it alone decides what a program reaches."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from toolloop.code_mode.backend import Program, ProgramResult, program_read
from toolloop.code_mode.endings import problem_of
from toolloop.code_mode.host import ApprovalNeeded, CallAnswer, CallsExhausted, Planned, ToolHost, tasks_end
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.names import PARALLEL
from toolloop.code_mode.parsing import program_prepare
from toolloop.code_mode.pool import VERSION, monty, pool_open
from toolloop.code_mode.result import CodeResult, Ending, Output, Problem
from toolloop.code_mode.state import StateRefused
from toolloop.code_mode.values import ValueTooLarge, value_plain
from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall

_SLEEPS = ("system.sleep", "system.async_sleep")


class MontyBackend:
    """The sandbox of code mode.

    Args:
        processes: most workers of this process's pool; counts for the first backend that runs a program.
    """

    name = "monty"

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes

    async def run(
        self, source: str, host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> ProgramResult:
        """See ``SandboxBackend``."""
        begun = time.monotonic()
        program = await program_prepare(source, host, limits, program_read)
        if isinstance(program, Problem):
            return ProgramResult(program.result(source, duration_ms=_ms(begun)))
        run = _Run(program, host, limits, Output(limits.output_chars), on_output)
        outcome = await run.go(await pool_open(self._processes), None)
        crashed = outcome.result.ending is Ending.WORKER_CRASHED
        if crashed and not host.made and not host.log and not run.output.total:
            # Nothing had happened yet, not even begun, so a second attempt repeats nothing.
            run = _Run(program, host, limits, Output(limits.output_chars), on_output)
            outcome = await run.go(await pool_open(self._processes), None)
        return outcome

    async def resume(
        self, state: Mapping[str, Any], host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> ProgramResult:
        """See ``SandboxBackend``."""
        if state["interpreter"] != f"monty {VERSION}":
            raise StateRefused(
                f"The program was paused by {state['interpreter']}, this is monty {VERSION}: run it again."
            )
        program = await program_prepare(state["source"], host, limits, program_read)
        if isinstance(program, Problem):
            return ProgramResult(program.result(state["source"]))
        host.remember(state["host"])
        output = Output(limits.output_chars, total=state["output_total"], cut=state["output_cut"])
        for stream, text in state["output"].items():
            output.parts[stream].append(text)
            output.kept[stream] = len(text)
        run = _Run(program, host, limits, output, on_output)
        run.spent_s = state["spent_s"]
        run.settled = {int(k): CallAnswer(*answer) for k, answer in state["settled"].items()}
        run.planned = {
            int(k): Planned(ToolCall.from_json(call), line) for k, (call, line) in state["unsettled"].items()
        }
        return await run.go(await pool_open(self._processes), base64.b64decode(state["snapshot"]))


class _Run:
    """One program on one worker."""

    def __init__(
        self,
        program: Program,
        host: ToolHost,
        limits: CodeLimits,
        output: Output,
        on_output: Callable[[str], None],
    ) -> None:
        self.program, self.host, self.limits, self.output = program, host, limits, output
        self.spent_s = 0.0  # Before a pause.
        # Futures of the program by the interpreter's number: answered, and being worked on.
        self.settled: dict[int, CallAnswer] = {}
        self.planned: dict[int, Planned] = {}
        self._on_output = on_output
        self._tasks: dict[int, asyncio.Task[CallAnswer]] = {}
        self._begun = time.monotonic()
        self._flooded = False
        self._called_at = 0
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._inside = False
        host.ordered = not program.is_async

    async def go(self, pool: Any, snapshot: bytes | None) -> ProgramResult:
        """Run to an outcome, within the wall-clock limit."""
        module = monty()
        self._task = asyncio.current_task()
        scope = asyncio.timeout(max(0.01, self.limits.wall_s - self.spent_s))
        self._inside = True
        try:
            async with scope:
                return await self._session(module, pool, snapshot)
        except asyncio.CancelledError:
            if self._flooded and self._task is not None and self._task.uncancel() == 0:
                text = f"The program printed more than {self.limits.output_stop} characters."
                return self._ended(Problem(Ending.LIMIT_OUTPUT, text, self._last_line()))
            raise
        except TimeoutError:
            if not scope.expired():
                raise
            text = f"The program had not ended after {self.limits.wall_s:g} s."
            return self._ended(Problem(Ending.WALL_CLOCK, text, self._last_line()))
        finally:
            self._inside = False
            await tasks_end(list(self._tasks.values()))

    async def _session(self, module: Any, pool: Any, snapshot: bytes | None) -> ProgramResult:
        limits = self.limits
        session = pool.checkout(
            limits={
                "max_feed_duration_secs": limits.run_s,
                "max_turn_duration_secs": limits.turn_s,
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": limits.recursion_depth,
                "max_suspensions": limits.suspensions,
                "max_total_sleep_secs": limits.sleep_s,
            },
            os_policy={"timezone": "utc", "sleep_system_max": max(10.0, 2 * limits.sleep_s)},
            assert_message_annotations=False,
        )
        try:
            entered = await session.__aenter__()
        except TimeoutError:
            return self._ended(Problem(Ending.BUSY, "All interpreters are busy."))
        except module.MontyError as error:
            return self._ended(Problem(Ending.WORKER_CRASHED, str(error)[:500]))
        try:
            return await self._drive(module, entered, snapshot)
        except module.MontyError as error:
            problem = problem_of(error, module, self.program, self.host)
            problem = replace(problem, line=problem.line or self._last_line())
            if self._flooded or (
                problem.ending is Ending.LIMIT_TIME and self.output.total > 4 * limits.output_chars
            ):
                problem = Problem(Ending.LIMIT_OUTPUT, "The program printed without end.", problem.line)
            return self._ended(problem)
        except CallsExhausted as error:
            return self._ended(Problem(Ending.LIMIT_CALLS, str(error), self._last_line()))
        finally:
            await session.__aexit__(None, None, None)

    async def _drive(self, module: Any, session: Any, snapshot: bytes | None) -> ProgramResult:
        if snapshot is not None:
            try:
                now = await session.load_snapshot(snapshot, print_callback=self._print)
            except (module.MontyError, ValueError, RuntimeError) as error:
                raise StateRefused("The paused program cannot be restored: run it again.") from error
            for number, planned in self.planned.items():
                self._tasks[number] = asyncio.create_task(self.host.make(planned))
        else:
            if self.program.lowered.prelude:
                await session.feed_run(self.program.lowered.prelude, print_callback=self._print)
            now = await session.feed_start(self.program.lowered.code, print_callback=self._print)
        while not isinstance(now, module.MontyComplete):
            if isinstance(now, module.AsyncNameLookupSnapshot):
                now = await self._look_up(now)
            elif isinstance(now, module.AsyncFutureSnapshot):
                try:
                    settled = await self._settle(now.pending_call_ids)
                except ApprovalNeeded as needed:
                    return await self._pause(now, needed.pending)
                now = await now.resume(settled)
            elif now.is_os_function:
                now = await self._system(now)
            else:
                try:
                    answer = await self._call(now)
                except ApprovalNeeded as needed:
                    return await self._pause(now, needed.pending)
                now = await now.resume(answer)
        return self._complete(now.output)

    async def _system(self, now: Any) -> Any:
        """Answer what the interpreter asks of a system: imports and short sleeps; there is nothing else."""
        if now.function_name == "import":
            return await now.resume_auto()
        if now.function_name not in _SLEEPS:
            return await now.resume_not_handled()
        # The interpreter has charged these seconds to its limit, and refused what is beyond.
        seconds = max(0.0, float(now.args[0]))
        if now.function_name == "system.async_sleep":
            self._tasks[now.call_id] = asyncio.create_task(_slept(seconds))
            return await now.resume({"future": ...})
        await asyncio.sleep(seconds)
        return await now.resume({"return_value": None})

    async def _look_up(self, now: Any) -> Any:
        name = now.variable_name
        if now.object_id is not None or not self.host.has(name):
            return await now.resume()
        return await now.resume(value=_reference(name))

    async def _call(self, now: Any) -> dict[str, Any]:
        """Answer a function call of the program, at once or by a future."""
        name = now.function_name
        if now.object_id is not None or not self.host.has(name):
            return {"exc_type": "NameError", "message": self.host.unknown(str(name)[:100])}
        self._called_at = self._line(now.position)
        planned = self.host.plan(name, now.args, now.kwargs, self._called_at)
        if self.program.is_async and name != PARALLEL:
            self.planned[now.call_id] = planned[0]
            self._tasks[now.call_id] = asyncio.create_task(self.host.make(planned[0]))
            return {"future": ...}
        try:
            if name == PARALLEL:
                return _told(await self.host.make_all(planned))
            return _told(await self.host.make(planned[0]))
        except ApprovalNeeded:
            self.host.plan_undo(planned)
            raise

    async def _settle(self, ids: list[int]) -> dict[int, dict[str, Any]]:
        """Wait until at least one of these futures has its answer.

        Raises:
            ApprovalNeeded: all that have not are waiting for somebody.
        """
        while True:
            self._collect()
            known = {i: _told(self.settled.pop(i)) for i in ids if i in self.settled}
            if known:
                return known
            running = [task for task in self._tasks.values() if not task.done()]
            if not running:
                raise ApprovalNeeded(())
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    def _collect(self) -> None:
        """Take the answers of the tasks that have one; those that wait for somebody stay."""
        for number, task in list(self._tasks.items()):
            if task.done() and not isinstance(task.exception(), ApprovalNeeded):
                self.settled[number] = task.result()
                del self._tasks[number]
                self.planned.pop(number, None)

    async def _pause(self, now: Any, pending: tuple[PendingCall, ...]) -> ProgramResult:
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
            self._line(now.position),
        )
        state = {
            "interpreter": f"monty {VERSION}",
            "source": self.program.source,
            "snapshot": base64.b64encode(now.dump()).decode(),
            "host": self.host.memory(),
            "output": {name: self.output.text(name) for name in self.output.parts},
            "output_total": self.output.total,
            "output_cut": self.output.cut,
            "spent_s": self._spent(),
            "settled": {str(k): answer.to_json() for k, answer in self.settled.items()},
            "unsettled": {str(k): [p.call.to_json(), p.line] for k, p in self.planned.items()},
        }
        return ProgramResult(self._result(problem, pending=pending), state)

    def _complete(self, value: Any) -> ProgramResult:
        try:
            plain = value_plain(
                value, nodes=self.limits.value_nodes, size=self.limits.result_bytes, loose=True
            )
        except ValueTooLarge:
            plain = f"<{type(value).__name__}, too large to show: print or return a part of it>"
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

    def _print(self, stream: str, text: str) -> None:
        kept = self.output.add(stream, text)
        if kept and stream == "stdout":
            self._on_output(kept)
        if self.output.total > self.limits.output_stop and not self._flooded:
            self._flooded = True
            # The worker goes on whatever happens here; cancelling what waits for it ends it.
            self._loop.call_soon_threadsafe(self._flood_end)

    def _flood_end(self) -> None:
        if self._inside and self._task is not None:
            self._task.cancel()

    def _line(self, position: Any) -> int:
        code = self.program.lowered.code.encode()
        first = 1 if self.program.lowered.prelude else 0
        if position.filename != f"<python-input-{first}>":
            return 0
        return code.count(b"\n", 0, position.start) + 1

    def _last_line(self) -> int:
        """Return where the program most likely is, when the interpreter cannot say: its last call, or its only loop."""
        return self._called_at or self.program.loop_line

    def _spent(self) -> float:
        return self.spent_s + time.monotonic() - self._begun


def _reference(name: str) -> Callable[[], Awaitable[None]]:
    """Return what stands for a tool inside the interpreter: it takes the name only, and calls come back to the host."""

    async def tool() -> None:
        raise RuntimeError("the host answers calls itself")

    tool.__name__ = tool.__qualname__ = name
    return tool


async def _slept(seconds: float) -> CallAnswer:
    await asyncio.sleep(seconds)
    return CallAnswer()


def _told(answer: CallAnswer) -> dict[str, Any]:
    if answer.error_type:
        return {"exc_type": answer.error_type, "message": answer.message}
    return {"return_value": answer.value}


def _ms(begun: float) -> float:
    return (time.monotonic() - begun) * 1000

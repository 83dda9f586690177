"""Every kind of ending, with its line and advice; the interpreter's texts they rest on are those of the pinned version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.toolloop.code_mode.support import fail, get_user
from toolloop.code_mode import CodeLimits, CodeMode, CodeResult, Ending
from toolloop.code_mode import driver as driver_module
from toolloop.code_mode.backend import ProgramResult, SandboxBackend
from toolloop.code_mode.default import default_backend
from toolloop.code_mode.driver import MontyBackend
from toolloop.code_mode.result import ADVICE
from toolloop.journal import NullJournal
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import Tool, tool

SMALL = CodeLimits(run_s=0.5, turn_s=0.5, wall_s=3.0, tool_calls=5)


@tool
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@tool(needs_approval=True, side_effects=True)
def send(to: str) -> str:
    """Send."""
    return f"sent {to}"


class Refusing(NullJournal):
    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        if call.name != "get_user":
            return None
        return ToolResult(call.id, call.name, "No.", is_error=True, error_code="permission_denied")


async def run(
    code: str, *, limits: CodeLimits = SMALL, backend: SandboxBackend | None = None, **options: Any
) -> CodeResult:
    tools = [get_user, fail, wait, send]
    mode = CodeMode(tools, limits=limits, state_key=b"k" * 16, backend=backend)
    return await mode.execute(code, **options)


PROGRAMS = [
    (Ending.SYNTAX_ERROR, 2, "x = 1\nif x\n    pass"),
    (Ending.UNSUPPORTED_SYNTAX, 3, "get_user(1)\ndef f():\n    return open('x')"),
    (Ending.UNSUPPORTED_IMPORT, 2, "get_user(1)\nimport requests"),
    (Ending.TYPE_ERROR, 2, "u = get_user(1)\nu + 1"),
    (Ending.TYPE_ERROR, 1, "get_user('x', 2)"),
    (Ending.RUNTIME_ERROR, 3, "def f():\n    u = get_user(1)\n    return u['nmae']\nf()"),
    (Ending.TOOL_ERROR, 2, "x = 1\nfail('boom')"),
    (Ending.LIMIT_TIME, 1, "while True: pass"),
    (Ending.LIMIT_TIME, 2, "import time\ntime.sleep(1000)"),
    (Ending.LIMIT_MEMORY, 1, "x = [0] * 10**9"),
    (Ending.LIMIT_CALLS, 2, "for i in range(9):\n    get_user(i)"),
    (Ending.LIMIT_CALLS, 3, "while True:\n    try:\n        get_user({1})\n    except BaseException: pass"),
    (Ending.LIMIT_OUTPUT, 1, "while True: print('x' * 10000)"),
    (Ending.WALL_CLOCK, 2, "x = 1\nwait(30)"),
    (Ending.PAUSED_APPROVAL, 2, "x = 1\nsend('a')"),
]


@pytest.mark.parametrize(("ending", "line", "code"), PROGRAMS)
async def test_ending_has_line_and_advice_when_a_program_fails(ending, line, code):
    result = await run(code)
    assert result.ending is ending, result.to_text()
    assert result.line == line
    assert result.advice
    assert result.error
    text = result.to_text()
    assert str(ending) in text
    assert result.advice in text
    if line:
        assert result.source_line == code.splitlines()[line - 1]


async def test_ending_is_denied_when_the_journal_forbids_the_call():
    result = await run("x = 1\nget_user(1)", journal=Refusing())
    assert (result.ending, result.line) == (Ending.TOOL_DENIED, 2)
    assert result.calls[0].status == "denied"


async def test_program_goes_on_when_it_catches_the_refusal():
    code = "try:\n    get_user(1)\nexcept PermissionError as e:\n    print('no', e)"
    result = await run(code, journal=Refusing())
    assert (result.ending, result.output) == (Ending.OK, "no No.\n")


async def test_ending_is_cancelled_when_stop_is_set():
    stop = asyncio.Event()

    @tool
    async def long() -> str:
        """Take long."""
        stop.set()  # the program is there
        # Were the stop not heard, the call would end before the program, and well.
        await asyncio.sleep(30)
        return "waited"

    mode = CodeMode([long], limits=CodeLimits(), state_key=b"k" * 16)
    result = await mode.execute("print('a')\nlong()", stop=stop)
    assert result.ending is Ending.CANCELLED
    assert result.output == "a\n"
    assert (await run("1 + 1")).value == 2


async def test_cancellation_passes_through_when_the_task_is_cancelled():
    task = asyncio.create_task(run("while True: pass", limits=CodeLimits()))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run("1 + 1")).value == 2


async def test_ending_is_busy_when_no_interpreter_is_free(monkeypatch):
    class Full:
        def checkout(self, **_: Any) -> Any:
            return self

        async def __aenter__(self) -> Any:
            raise TimeoutError

    async def full(_: int) -> Any:
        return Full()

    monkeypatch.setattr(driver_module, "pool_open", full)
    result = await run("1", backend=MontyBackend())
    assert result.ending is Ending.BUSY
    assert "again" in result.advice


async def test_program_runs_once_more_when_the_worker_is_lost_before_anything_happened(monkeypatch):
    attempts: list[int] = []
    real = driver_module._Run.go

    async def lost(self: Any, pool: Any, snapshot: bytes | None) -> ProgramResult:
        attempts.append(1)
        if len(attempts) < 2:
            return ProgramResult(CodeResult(Ending.WORKER_CRASHED))
        return await real(self, pool, snapshot)

    monkeypatch.setattr(driver_module._Run, "go", lost)
    assert (await run("1 + 1", backend=MontyBackend())).value == 2
    assert len(attempts) == 2


async def test_ending_is_crashed_when_the_worker_dies_after_a_call(monkeypatch):
    import os
    import signal

    real = driver_module._Run._call

    async def kill(self: Any, now: Any) -> Any:
        if self.host.log:
            os.kill(pids[-1], signal.SIGKILL)
        return await real(self, now)

    pids: list[int] = []
    look = driver_module._Run._drive

    async def drive(self: Any, module: Any, session: Any, snapshot: Any) -> Any:
        pids.append(session.worker_pid)
        return await look(self, module, session, snapshot)

    monkeypatch.setattr(driver_module._Run, "_call", kill)
    monkeypatch.setattr(driver_module._Run, "_drive", drive)
    result = await run("get_user(1)\nget_user(2)\nprint('never')", backend=MontyBackend())
    assert result.ending is Ending.WORKER_CRASHED, result.to_text()
    assert len(pids) == 1, "a program that had called a tool must not start anew by itself"
    monkeypatch.undo()
    assert (await run("1 + 1", backend=MontyBackend())).value == 2


async def test_program_does_not_run_again_when_a_call_had_begun_as_the_worker_died(monkeypatch):
    import os
    import signal

    begun: list[int] = []
    pids: list[int] = []

    @tool(side_effects=True)
    async def pay(amount: int) -> str:
        """Pay."""
        begun.append(amount)
        os.kill(pids[-1], signal.SIGKILL)
        await asyncio.sleep(30)
        return "paid"

    real = driver_module._Run._drive

    async def drive(self: Any, module: Any, session: Any, snapshot: Any) -> Any:
        pids.append(session.worker_pid)
        return await real(self, module, session, snapshot)

    monkeypatch.setattr(driver_module._Run, "_drive", drive)
    code = "import asyncio\nawait asyncio.gather(pay(1), wait_a_little())"

    @tool
    async def wait_a_little() -> str:
        """Wait."""
        await asyncio.sleep(0.2)
        return ""

    mode = CodeMode([pay, wait_a_little], limits=CodeLimits(wall_s=5.0), backend=MontyBackend())
    result = await mode.execute(code)
    assert result.ending is Ending.WORKER_CRASHED, result.to_text()
    assert begun == [1]


async def test_advice_names_the_keys_that_results_had_when_one_is_misspelt():
    result = await run("u = get_user(1)\nprint(u['nmae'])")
    assert "'name'" in result.advice
    assert "get_user: id, name, mail" in result.advice


async def test_advice_names_the_tools_when_a_name_is_unknown():
    result = await run("get_usr(1)")
    assert "Did you mean 'get_user'?" in result.error
    assert "get_user" in result.advice


async def test_text_of_an_unexpected_error_stays_in_the_log_when_it_is_not_declared():
    code = "try:\n    fail('password=hunter2')\nexcept ValueError as e:\n    print(e)"
    result = await run(code)
    assert "hunter2" not in str(result.to_json()).replace("fail('password=hunter2')", "").replace(
        "'text': 'password=hunter2'", ""
    )
    assert "internal error (ValueError)" in result.output
    declared = CodeMode([fail], declared_errors=(ValueError,))
    assert (await declared.execute(code)).output == "password=hunter2\n"


async def test_output_is_kept_and_marked_when_it_is_cut():
    result = await run("print('x' * 100_000)\nprint('end')")
    assert result.success
    assert len(result.output) == 64_000
    assert result.output_cut
    assert len(result.to_text(5_000)) < 6_000


async def test_value_is_bounded_when_it_shares_its_parts():
    result = await run("x = [1]\nfor i in range(40): x = [x, x]\nx")
    assert result.success
    assert "too large" in result.value


async def test_tool_does_not_run_when_its_arguments_are_too_large():
    result = await run("x = [1]\nfor i in range(40): x = [x, x]\nget_user(x)")
    assert result.ending is Ending.TYPE_ERROR
    assert result.calls[0].status == "refused"


async def test_log_holds_every_call_when_some_fail():
    code = "get_user(1)\ntry:\n    fail('x')\nexcept ValueError: pass\ntry:\n    get_user(nope=1)\nexcept TypeError: pass"
    result = await run(code)
    assert [(c.name, c.status, c.line) for c in result.calls] == [
        ("get_user", "ok", 1),
        ("fail", "failed", 3),
        ("get_user", "refused", 6),
    ]
    assert result.calls[0].result == "{'id': 1, 'name': 'user1', 'mail': None}"


async def test_parallel_takes_as_long_as_the_slowest_when_calls_are_independent():
    together = asyncio.Barrier(5)

    @tool
    async def meet() -> int:
        """Wait for the four others."""
        return await together.wait()

    async with asyncio.timeout(30):
        result = await CodeMode([meet]).execute("sorted(parallel(*[(meet,) for _ in range(5)]))")
    assert result.value == [0, 1, 2, 3, 4], result.to_text()


async def test_repair_gets_code_and_result_when_a_program_fails():
    seen: list[Ending] = []

    async def repair(code: str, result: CodeResult) -> str | None:
        seen.append(result.ending)
        return "get_user(2)['name']"

    result = await run("get_user(1)['nope']", max_repairs=2, repair=repair)
    assert (result.value, result.attempts, seen) == ("user2", 2, [Ending.RUNTIME_ERROR])
    assert len(result.calls) == 2


async def test_events_come_in_order_when_a_program_is_streamed():
    mode = CodeMode([get_user])
    stream = mode.execute_streaming("print('a')\nget_user(1)\nprint('b')")
    kinds = [type(event).__name__ async for event in stream]
    assert kinds == ["Printed", "Called", "Printed", "Ended"]


def test_every_ending_has_advice():
    assert len(Ending) == 17
    assert set(ADVICE) == set(Ending)
    assert all(ADVICE[ending] for ending in Ending if ending is not Ending.OK)


def test_backend_is_cpython_where_it_can_be_confined(monkeypatch):
    assert default_backend().name == "cpython"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_backend().name == "monty"

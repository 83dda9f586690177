"""The shared acceptance cases: programs that must work as in CPython, and programs that must be contained."""

from __future__ import annotations

import ast
import asyncio
import gc
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.code_mode.support import BACKENDS, cases, run_case
from toolloop.code_mode import CodeLimits, CodeMode
from toolloop.journal import NullJournal
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import Tool, tool

# These pydantic-monty refuses (yield, class inheritance), but before any tool has run.
REFUSED = {"paginate_generator", "class_inherit_exception", "enum_status"}
FAST = ("escape", "file", "env", "network", "process", "tools")
ENDINGS = {
    "OK": {"completed"},
    "SYNTAX_ERROR": {"syntax", "rejected", "error"},
    "UNSUPPORTED_SYNTAX": {"unsupported-syntax", "syntax", "error"},
    "UNSUPPORTED_IMPORT": {"unsupported-syntax", "error"},
    "TYPE_ERROR": {"error"},
    "RUNTIME_ERROR": {"error"},
    "TOOL_ERROR": {"error"},
    "TOOL_DENIED": {"error"},
    "LIMIT_TIME": {"time", "timeout-killed"},
    "LIMIT_MEMORY": {"memory"},
    "LIMIT_CALLS": {"suspensions", "budget"},
    "LIMIT_OUTPUT": {"output"},
    "WORKER_CRASHED": {"crashed"},
}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("case", cases("compat.json"))
async def test_result_is_cpythons_when_a_program_is_supported(case, backend):
    result = await run_case(case["code"], awaited=case["async"], backend=backend)
    if case["id"] in REFUSED and backend.name == "monty":
        assert result.ending in ("UNSUPPORTED_SYNTAX", "UNSUPPORTED_IMPORT")
        assert result.line > 0
        assert result.advice
        assert result.calls == ()
        return
    assert result.success, result.to_text()
    assert result.output == case["stdout"]
    assert result.value == ast.literal_eval(case["value"])


dangerous: list[str] = []


@tool
def ping(x: int = 0) -> int:
    """Ping."""
    return x


@tool
def echo(x: str = "") -> str:
    """Echo."""
    return x


@tool
def danger(x: str = "") -> str:
    """Do harm."""
    dangerous.append(x)
    return "boom"


class Refusing(NullJournal):
    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        if call.name != "danger":
            return None
        return ToolResult(call.id, call.name, "You may not.", is_error=True, error_code="denied")


@pytest.fixture(autouse=True)
def heap() -> Iterator[None]:
    """Keep what thousands of tests before left from being collected while a program runs: that takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Iterator[None]:
    monkeypatch.setenv("CANARY", "CANARY-IN-ENVIRONMENT")
    yield
    assert dangerous == []


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("case", cases("hostile.json"))
async def test_program_is_contained_when_it_is_hostile(case, backend):
    if backend.name == "monty" and case.get("cat") not in FAST:
        pytest.skip("limits take their time: once is enough")
    tools = {"ping": ping, "echo": echo, "danger": danger}
    mode = CodeMode(
        [tools[name] for name in case["tools"]], limits=CodeLimits(run_s=2.0, turn_s=2.0), backend=backend
    )
    await mode.execute("1")  # The pool's start is not the program's.
    lags: list[float] = []
    beat = asyncio.create_task(_beat(lags))
    async with asyncio.timeout(PATIENCE_S):
        result = await mode.execute(case["code"], journal=Refusing())
    beat.cancel()
    assert ENDINGS[str(result.ending)] & set(case["expect"]), result.to_text(2000)
    assert "CANARY-IN" not in json.dumps(result.to_json())
    assert max(lags, default=0.0) < 1.0
    again = await mode.execute("print(ping_ok := 1)\nping_ok + 1")
    assert (again.output, again.value) == ("1\n", 2)


async def _beat(lags: list[float]) -> None:
    while True:
        begun = time.thread_time()  # What this thread computes: others may hold up the machine.
        await asyncio.sleep(0.01)
        lags.append(time.thread_time() - begun)

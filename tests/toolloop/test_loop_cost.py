"""What a streamed delta costs must not grow tasks and timers with it; counted, because times lie on a busy machine.

``benchmarks/loop_overhead.py`` measures the times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import WIRES, Wire
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.tools import Toolset
from toolloop.usage import Spending

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in small pieces, each after a turn of the event loop, as over a socket."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> Any:
        for start in range(0, len(self.body), 100):
            await asyncio.sleep(0)
            yield self.body[start : start + 100]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the tasks and timers that the event loop makes."""
    found = {"tasks": 0, "timers": 0}
    kind = asyncio.SelectorEventLoop
    call_at, create_task = kind.call_at, kind.create_task

    def timer(self: Any, *args: Any, **named: Any) -> Any:
        found["timers"] += 1
        return call_at(self, *args, **named)

    def task(self: Any, coroutine: Coroutine[Any, Any, Any], **named: Any) -> Any:
        found["tasks"] += 1
        return create_task(self, coroutine, **named)

    monkeypatch.setattr(kind, "call_at", timer)
    monkeypatch.setattr(kind, "create_task", task)
    return found


async def answered(wire: Wire, deltas: int) -> None:
    """Let the loop read an answer of so many deltas."""
    body = wire.encode(Script(text=[f"word{number} " for number in range(deltas)]))
    headers = {"content-type": "text/event-stream"}
    provider = wire.provider(lambda _: httpx2.Response(200, headers=headers, stream=Pieces(body)))
    run = run_loop(
        LoopInput(
            model=wire.model,
            system="",
            history=[UserMessage("Say many words.")],
            toolset=Toolset([]),
            limits=Limits(max_tokens=10_000_000),
        ),
        LoopServices(provider=provider),
    )
    async for event in run:
        last = event
    await provider.aclose()
    assert isinstance(last, RunFinished)
    assert last.status == "completed"
    assert last.text.count("word") == deltas


@every_wire
async def test_neither_task_nor_timer_is_made_for_a_delta(wire: Wire, counted: dict[str, int]) -> None:
    await answered(wire, 5)
    few = dict(counted)
    counted.update(tasks=0, timers=0)
    await answered(wire, 400)
    assert counted["tasks"] <= few["tasks"]
    assert counted["timers"] <= few["timers"] + 2


async def test_a_history_is_estimated_once_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates: list[int] = []
    original = Spending._input_tokens

    def estimate(self: Spending, system: str, history: Any, tools: Any) -> int:
        estimates.append(len(history))
        return original(self, system, history, tools)

    monkeypatch.setattr(Spending, "_input_tokens", estimate)
    await answered(WIRES[0], 1)
    assert estimates == [1]

"""What the loop's tests share: run a dialogue to its end, a journal that remembers, a few tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from toolloop.events import Event, RunFinished, TextDelta
from toolloop.journal import NullJournal
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn
from toolloop.tools import Tool, Toolset, tool


def loop_values(**given: Any) -> tuple[LoopInput, LoopServices]:
    """Return what ``run_loop`` takes, from fields of either value by name."""
    services = {name: given.pop(name) for name in list(given) if name in LoopServices.__dataclass_fields__}
    return LoopInput(**given), LoopServices(**services)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


@tool
async def wait(seconds: float) -> str:
    """Wait.

    Args:
        seconds: how long.
    """
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


@tool
def broken() -> str:
    """Fail with what no model should read."""
    raise RuntimeError("password=hunter2")


class Recorder(NullJournal):
    """A journal that keeps what it was told, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.results: dict[str, ToolResult] = {}
        self.turns: list[Turn] = []

    async def turn_started(self, step: int) -> None:
        self.log.append(f"turn {step} started")

    async def turn_finished(self, step: int, turn: Turn) -> None:
        self.log.append(f"turn {step} finished")
        self.turns.append(turn)

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        self.log.append(f"{call.id} started")
        return None

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        self.log.append(f"{call.id} finished")
        self.results[call.id] = result


class Dialogue:
    """A run that was driven to its end, and what came out."""

    def __init__(self, provider: ScriptedProvider, events: list[Event]) -> None:
        self.provider = provider
        self.events = events

    @property
    def end(self) -> RunFinished:
        last = self.events[-1]
        assert isinstance(last, RunFinished)
        assert sum(isinstance(event, RunFinished) for event in self.events) == 1
        return last

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def told(self, request: int = -1) -> list[ToolResult]:
        """Return the tool results the model saw in a request."""
        messages = self.provider.requests[request].messages
        return [message for message in messages if isinstance(message, ToolResult)]


async def converse(
    script: Sequence[ScriptedTurn] | ScriptedProvider,
    *tools: Tool,
    history: Sequence[ModelMessage] = (UserMessage("Hello"),),
    **settings: Any,
) -> Dialogue:
    """Run a script with these tools to its end."""
    provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
    stream = run_loop(
        *loop_values(
            model="script-1",
            system="Be brief.",
            history=history,
            toolset=Toolset(tools),
            provider=provider,
            **settings,
        )
    )
    return Dialogue(provider, [event async for event in stream])

"""toolloop with a long history, and with ten slow tools in one turn; answers one line of stdin with one of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from _worker import MODELS, QUESTION, SYSTEM, TOOL_CALLS
from ours import provider_of

from toolloop.events import RunFinished, ToolFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolResult, UserMessage, message_from_json
from toolloop.providers.base import Provider
from toolloop.tools import Tool, Toolset

ITEMS = 400
OFFERED_TOOLS = 10
SLEEP_S = 0.1
PARAGRAPH = "Every number on the list was added to the one before it, and the sum was written down. " * 4
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def make_tool(name: str, function: Callable[..., Any], *, blocking: bool = False) -> Tool:
    return Tool(name, "Add two numbers of the list.", SCHEMA, function, blocking=blocking)


async def last_of(events: Any) -> tuple[RunFinished, list[ModelMessage]]:
    """Drain a run; return its end and the messages it made."""
    made: list[ModelMessage] = []
    async for event in events:
        if isinstance(event, ToolFinished):
            made.append(event.result)
        elif type(event).__name__ == "TurnFinished":
            made.append(event.turn)
    assert isinstance(event, RunFinished), event
    assert event.status == "completed", event
    return event, made


async def written(provider: Provider, protocol: str) -> list[ModelMessage]:
    """Let the model write the turns of a history, with their native forms, and repeat them to its length."""
    toolset = Toolset([make_tool("add", lambda a, b: f"{a + b}. {PARAGRAPH}")])
    question: list[ModelMessage] = [UserMessage(f"{QUESTION} {PARAGRAPH}")]
    run = run_loop(
        LoopInput(model=MODELS[protocol], system=SYSTEM.format("seq"), history=question, toolset=toolset),
        LoopServices(provider=provider),
    )
    _, made = await last_of(run)
    found: list[ModelMessage] = []
    while len(found) < ITEMS:
        found += question + made
    del found[ITEMS:]
    while not isinstance(found[-1], UserMessage):  # The last word is the user's: the model answers it.
        found.pop()
    return [UserMessage(f"{QUESTION} {PARAGRAPH}")] * (ITEMS - len(found)) + found


def stored(messages: list[ModelMessage], *, native: bool) -> list[dict[str, Any]]:
    """Return the history as a database holds it; without native forms it is what another provider wrote."""
    rows = [json.loads(json.dumps(message.to_json())) for message in messages]
    for row in rows:
        if row["role"] == "assistant" and not native:
            row.update(provider="other", model="other", account="other")
    return rows


async def history_cost(provider: Provider, protocol: str, rounds: int) -> dict[str, Any]:
    """Measure the CPU time of one answer to a history that was just read from the database, in ms."""
    offered = Toolset(make_tool(f"add_{n}", lambda a, b: a + b) for n in range(OFFERED_TOOLS))
    messages = await written(provider, protocol)
    assert len(messages) == ITEMS
    found: dict[str, Any] = {}
    for form in ("native", "normalised"):
        rows = stored(messages, native=form == "native")
        costs = []
        for _ in range(rounds + 3):
            history = [message_from_json(row) for row in rows]
            gc.collect()  # what reading the rows has left is not the loop's
            begun = time.process_time()
            await last_of(
                run_loop(
                    LoopInput(
                        model=MODELS[protocol],
                        system=SYSTEM.format("now"),
                        history=history,
                        toolset=offered,
                        limits=Limits(max_tokens=100_000_000),
                    ),
                    LoopServices(provider=provider),
                )
            )
            costs.append((time.process_time() - begun) * 1000)
        found[form] = statistics.median(costs[3:])
    found["history_kb"] = len(json.dumps(rows)) / 1000
    return found


def sleepers() -> dict[str, Tool]:
    async def sleep(a: int, b: int) -> int:
        await asyncio.sleep(SLEEP_S)
        return a + b

    def block(a: int, b: int) -> int:
        time.sleep(SLEEP_S)
        return a + b

    return {"async": make_tool("add", sleep), "threads": make_tool("add", block, blocking=True)}


async def parallel_wall(provider: Provider, protocol: str, rounds: int) -> dict[str, float]:
    """Measure the wall time of a run with one turn of ten slow calls, as a multiple of the slowest tool's."""
    found = {}
    for kind, tool in sleepers().items():
        walls = []
        for _ in range(rounds + 1):
            begun = time.perf_counter()
            _, made = await last_of(
                run_loop(
                    LoopInput(
                        model=MODELS[protocol],
                        system=SYSTEM.format("par"),
                        history=[UserMessage(QUESTION)],
                        toolset=Toolset([tool]),
                    ),
                    LoopServices(provider=provider),
                )
            )
            walls.append((time.perf_counter() - begun) / SLEEP_S)
            results = [message for message in made if isinstance(message, ToolResult)]
            assert len(results) == TOOL_CALLS
            assert not any(result.is_error for result in results)
        found[kind] = statistics.median(walls[1:])
    return found


WORKS = {"history": history_cost, "parallel": parallel_wall}


async def main() -> None:
    protocol, _, url = sys.argv[1:4]
    print(json.dumps({"versions": {}}), flush=True)
    async with contextlib.aclosing(provider_of(protocol, url)) as provider:
        for line in sys.stdin:
            order = json.loads(line)
            done = await WORKS[order["scenario"]](provider, protocol, order["rounds"])
            print(json.dumps(done), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

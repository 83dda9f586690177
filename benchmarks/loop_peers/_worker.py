"""What every peer of `loop_overhead.py` shares: the task, and the loop that is told what to run and answers with CPU time.

A peer is a script with one coroutine that opens a client and returns the coroutine of one conversation. It runs in a
process of its own, perhaps in another virtual environment: nothing but the standard library may be imported here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version

# The server looks for this mark in the body, because a system prompt passes every framework unchanged.
SYSTEM = "You add numbers with the tool you have and tell the sum in the end. SCENARIO={}"
QUESTION = "What is the sum of all the numbers on the list?"
TOOL_NAME = "add"
TOOL_TEXT = "Add two numbers."
TOOL_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "description": "the one number"},
        "b": {"type": "integer", "description": "the other number"},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}
MODELS = {
    "responses": "gpt-5.4-mini",
    "chat": "local-model",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3-flash-preview",
}
TOOL_CALLS = 10
ANSWER_BEGINS = "The sum is"

Conversation = Callable[[str], Awaitable[tuple[str, int]]]
Opener = Callable[[str, bool, str], Awaitable[Conversation]]


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the one number
        b: the other number
    """
    return a + b


def serve(opener: Opener, packages: tuple[str, ...]) -> None:
    """Do what the lines of stdin say (scenario and number of conversations); write one line of JSON for each.

    Args:
        opener: takes protocol, whether answers are streamed, and the server's URL.
        packages: whose versions the first line reports.
    """
    asyncio.run(_serve(opener, packages))


async def _serve(opener: Opener, packages: tuple[str, ...]) -> None:
    protocol, mode, url = sys.argv[1:4]
    converse = await opener(protocol, mode == "streamed", url)
    _write({"versions": {name: _version(name) for name in packages}})
    for line in sys.stdin:
        order = json.loads(line)
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(order["conversations"]):
            answer, calls = await converse(order["scenario"])
            if calls != TOOL_CALLS or not answer.startswith(ANSWER_BEGINS):
                raise SystemExit(f"not the task: {calls} tool calls, answer {answer!r}")
        _write({"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall})


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _write(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)

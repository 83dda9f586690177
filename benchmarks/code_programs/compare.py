"""Run programs in code mode and under CPython, and say where the two differ."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.code_programs.judge import merged
from benchmarks.code_programs.make import program_make
from benchmarks.code_programs.tools import FUNCTIONS
from toolloop.code_mode import CodeLimits, CodeMode, Printed
from toolloop.limits import Limits
from toolloop.tools import Tool, tool

_ROOT = Path(__file__).resolve().parents[2]
_REFUSED = ("UNSUPPORTED_SYNTAX", "UNSUPPORTED_IMPORT", "SYNTAX_ERROR")


@dataclass
class Compared:
    """What came out.

    Attributes:
        same: programs that did the same.
        refused: programs that were refused before anything ran, by what they were refused for.
        different: programs that did something else.
        calls: tool calls that CPython's runs made.
    """

    same: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    different: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0


async def judge_all(programs: Sequence[str]) -> list[Any]:
    """Return what programs do under CPython, in order."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.code_programs.judge",
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", "TZ": "UTC", "PYTHONPATH": f"{_ROOT}:{_ROOT / 'platform'}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    text, _ = await process.communicate("".join(json.dumps(p) + "\n" for p in programs).encode())
    lines = text.decode().splitlines()
    if len(lines) != len(programs):
        raise RuntimeError(f"the judge ended at program {len(lines)}:\n{programs[len(lines)]}")
    return [json.loads(line) for line in lines]


_events: ContextVar[list[Any]] = ContextVar("events of the program that runs")


def _watched(name: str, function: Callable[..., Any]) -> Tool:
    @functools.wraps(function)
    async def called(**kwargs: Any) -> Any:
        _events.get().append(["call", name, kwargs])
        return function(**kwargs)

    return tool(called)


def code_mode_make() -> CodeMode:
    """Return code mode with the tools of generated programs, as an application has it."""
    return CodeMode(
        [_watched(name, function) for name, function in FUNCTIONS.items()],
        declared_errors=(ValueError, KeyError),
        limits=CodeLimits(wall_s=600.0, tool_calls=1000, run_s=20.0, turn_s=20.0),
        run_limits=Limits(max_tool_calls=1000),
    )


async def ran(mode: CodeMode, source: str) -> dict[str, Any]:
    """Return what a program does in code mode."""
    events: list[Any] = []
    _events.set(events)

    def seen(event: Any) -> None:
        if isinstance(event, Printed):
            events.append(["out", event.text])

    result = await mode.execute(source, on_event=seen)
    kind, _, text = result.error.partition(": ")
    return {
        "events": merged(events),
        "ending": ["end"] if result.success else ["error", kind, text, str(result.ending)],
        "refused": str(result.ending) in _REFUSED,
        "calls": len(result.calls),
        "text": result.error,
    }


def _arguments(event: list[Any]) -> list[Any]:
    """Return a call with its arguments by position: a tool is called by names in the end."""
    if event[0] != "call":
        return event
    given = event[2]
    if isinstance(given, dict):
        return ["call", event[1], given]
    names = list(inspect.signature(FUNCTIONS[event[1]]).parameters)
    return ["call", event[1], {**dict(zip(names, given[0], strict=False)), **given[1]}]


def _apart(events: list[Any]) -> list[Any]:
    """Return what was printed as one text, and the calls after it."""
    text = "".join(event[1] for event in events if event[0] == "out")
    return [["out", text], *(event for event in events if event[0] == "call")]


def difference(want: dict[str, Any], got: dict[str, Any], *, awaited: bool = False) -> str:
    """Return what differs between two runs of a program; "" for nothing.

    Args:
        want, got: the runs.
        awaited: the program awaits its tools. They run beside it then, so only the order of what it prints and that of its
            calls are its own, not where in its prints a call begins.
    """
    before, after = want["events"], got["events"]
    if awaited:
        before, after = _apart(before), _apart(after)
    wanted = [json.dumps(_arguments(e)) for e in before]
    found = [json.dumps(_arguments(e)) for e in after]
    for i in range(max(len(wanted), len(found))):
        here = wanted[i] if i < len(wanted) else "nothing"
        there = found[i] if i < len(found) else "nothing"
        if here != there:
            return f"CPython: {here[-600:]}\ncode mode: {there[-600:]} (ended {got['ending']})"
    if want["ending"] != got["ending"][:3]:
        error, other = want["ending"][1:], got["ending"][1:3]
        # An advice may follow the text of a NameError.
        if not (error and other and error[0] == other[0] == "NameError" and other[1].startswith(error[1])):
            return f"CPython ended {want['ending']}, code mode {got['ending']}"
    return ""


async def compare(seeds: Sequence[int]) -> Compared:
    """Compare the programs of these seeds."""
    compared = Compared()
    made = [program_make(seed) for seed in seeds]
    wanted = await judge_all([source for source, _ in made])
    room = asyncio.Semaphore(2)

    mode = code_mode_make()

    async def one(source: str) -> dict[str, Any]:
        async with room:
            return await ran(mode, source)

    results = await asyncio.gather(*(one(source) for source, _ in made))
    for seed, (source, families), want, got in zip(seeds, made, wanted, results, strict=True):
        compared.calls += sum(event[0] == "call" for event in want["events"])
        if got["refused"] and not got["calls"] and not got["events"]:
            why = got["text"]
            compared.refused[why] = compared.refused.get(why, 0) + 1
        elif found := difference(want, got, awaited=families == "awaited"):
            compared.different.append(
                {"seed": seed, "families": families, "difference": found, "program": source}
            )
        else:
            compared.same += 1
    return compared

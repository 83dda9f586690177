"""CPython as the judge: runs programs of ours as they are, in a process with the sets' order of the sandbox.

Reads one JSON text per line (a program), writes one per line: what it printed and called, in order, and how it ended.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import random
import signal
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.code_programs.tools import FUNCTIONS


class _Out(io.TextIOBase):
    def __init__(self, events: list[Any]) -> None:
        self._events = events

    def write(self, text: str) -> int:
        text.encode()
        if text:
            self._events.append(["out", text])
        return len(text)


def _is_async(tree: ast.Module) -> bool:
    """Tell whether a program awaits its tools, as code mode tells it: it has an ``await`` or an ``async def``."""
    return any(isinstance(node, ast.Await | ast.AsyncFunctionDef) for node in ast.walk(tree))


def _awaited(name: str, function: Callable[..., Any], events: list[Any]) -> Callable[..., Any]:
    plain = _watched(name, function, events)

    async def tool(*args: Any, **kwargs: Any) -> Any:
        try:
            return plain(*args, **kwargs)
        finally:
            await asyncio.sleep(0)  # The host is asked at once, and answers a little later.

    tool.__name__ = tool.__qualname__ = name
    return tool


def _watched(name: str, function: Callable[..., Any], events: list[Any]) -> Callable[..., Any]:
    def tool(*args: Any, **kwargs: Any) -> Any:
        # What travels as JSON arrives as JSON: a tuple as a list.
        with_names = json.loads(json.dumps([args, kwargs], allow_nan=False))
        events.append(["call", name, with_names])
        return json.loads(json.dumps(function(*with_names[0], **with_names[1])))

    tool.__name__ = tool.__qualname__ = name
    return tool


def judged(source: str) -> dict[str, Any]:
    """Return what a program does here."""
    events: list[Any] = []
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    tree = ast.parse(source)
    made = _awaited if _is_async(tree) else _watched
    module.__dict__.update({name: made(name, f, events) for name, f in FUNCTIONS.items()})
    code = compile(tree, "<program>", "exec", dont_inherit=True, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    random.seed(0)
    ending = ["end"]
    try:
        with contextlib.redirect_stdout(_Out(events)):
            result = eval(code, module.__dict__)  # noqa: S307 - our own programs
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(result)
    except Exception as error:  # noqa: BLE001 - how it ended is the result
        ending = ["error", type(error).__name__, str(error)]
    return {"events": merged(events), "ending": ending}


def merged(events: list[Any]) -> list[Any]:
    """Join what was printed without a call between."""
    out: list[Any] = []
    for event in events:
        if event[0] == "out" and out and out[-1][0] == "out":
            out[-1] = ["out", out[-1][1] + event[1]]
        else:
            out.append(list(event))
    return out


def main() -> None:
    """Judge programs until there are no more."""
    warnings.simplefilter("ignore")
    results = sys.stdout
    for line in sys.stdin:
        signal.alarm(20)  # A program of ours that does not end is a mistake of the grammar.
        results.write(json.dumps(judged(json.loads(line))) + "\n")
        results.flush()


if __name__ == "__main__":
    main()

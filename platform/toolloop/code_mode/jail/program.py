"""Run one program: inside its own process, after all rights are gone. Imports the standard library only, and its neighbours."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import random
import signal
import sys
import warnings
from typing import Any, NoReturn

from toolloop.code_mode.jail import rules
from toolloop.code_mode.jail.channel import Channel
from toolloop.code_mode.jail.events import loop_of
from toolloop.code_mode.jail.surroundings import clocks_set, namespace_make
from toolloop.code_mode.jail.talk import NAME, Host

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def run(channel: Channel, order: dict[str, Any]) -> NoReturn:
    """Run the program of an order, tell the host how it ended, and end this process."""
    host = Host(channel, order)
    sys.stdout, sys.stderr = host.out["stdout"], host.out["stderr"]
    namespace = namespace_make(host)
    clocks_set(host)
    loop_of(host)
    random.seed(order["seed"])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, host.late)
    host.timer_set()
    sys.setrecursionlimit(order["depth"] + 7)  # The frames below the program's own.
    reserve = bytearray(4 * 1024 * 1024)
    value, error = _attempt(order["source"], namespace, reserve)
    host.timer_stop()
    sys.setrecursionlimit(order["depth"] + 500)
    if error is not None:
        _finish(host, ["error", *_described(error)])
    host.timer_set()  # Reading the value may run code of the program's own.
    plain, error = _attempt_value(host, value, reserve)
    host.timer_stop()
    if error is not None:
        _finish(host, ["error", *_described(error)])
    _finish(host, ["end", plain])


# Where memory ends, CPython 3.11 loops for ever in a frame that handles an exception beyond its 256th instruction: it needs an
# integer then, and only small ones exist already. So these two are short, and first of all give memory back.


def _attempt(source: str, namespace: dict[str, Any], reserve: bytearray) -> tuple[Any, Any]:
    try:
        return _execute(source, namespace), None
    except BaseException as error:  # noqa: BLE001 - whatever a program raises, its host is told
        reserve.clear()
        return None, error


def _attempt_value(host: Host, value: Any, reserve: bytearray) -> tuple[Any, Any]:
    try:
        return host.value_plain(value), None
    except BaseException as error:  # noqa: BLE001 - a class of the program's own may raise
        reserve.clear()
        return None, error


def _finish(host: Host, frame: list[Any]) -> NoReturn:
    """Send the last frame, with a mark for every half character, and end."""
    try:
        if "\\ud" in json.dumps(frame):
            raw = json.dumps(frame, ensure_ascii=False).encode(errors="replace")
            frame = json.loads(raw)
        host.flush()
        host.channel.send(*frame)
    finally:
        os._exit(0)


def _execute(source: str, namespace: dict[str, Any]) -> Any:
    tree = rules.rewritten(ast.parse(source, NAME))
    code = compile(tree, NAME, "exec", flags=_FLAGS, dont_inherit=True)
    result = eval(code, namespace)  # noqa: S307 - running programs is what this process is for
    if code.co_flags & 0x80:  # inspect.CO_COROUTINE
        asyncio.run(result)
    return namespace.get(rules.VALUE)


def _described(error: BaseException) -> tuple[str, str, int, bool]:
    """Return type, text and line of what ended the program, and whether it is the program's syntax."""
    own = [0]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == NAME:
            own.append(trace.tb_lineno)
        trace = trace.tb_next
    syntax = isinstance(error, SyntaxError) and len(own) == 1
    line = (error.lineno or 0) if isinstance(error, SyntaxError) and syntax else own[-1]
    try:
        text = error.msg if isinstance(error, SyntaxError) and syntax else str(error)
    except Exception as inner:  # noqa: BLE001 - a program's own __str__
        text = f"<its text cannot be read: {type(inner).__name__}>"
    return type(error).__name__, text[:8000], line, syntax

"""Parse a model's program: bounded, off the event loop where it is long, and refused with a problem, never an exception."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.result import Ending, Problem
from toolloop.code_mode.scan import Scan

_IN_THREAD_BYTES = 4096  # Longer programs are read off the event loop.
_Program = TypeVar("_Program")


async def program_prepare(
    source: str, host: ToolHost, limits: CodeLimits, read: Callable[[str, Any], _Program | Problem]
) -> _Program | Problem:
    """Read a program; nothing of it runs.

    Args:
        source: hostile text.
        host: whose tools the program may call.
        limits: how long a program may be.
        read: the backend's ``program_read``.

    Returns:
        The backend's program, or the problem when it cannot run.
    """
    if len(source) > limits.code_bytes or len(source.encode(errors="replace")) > limits.code_bytes:
        text = f"The program is longer than {limits.code_bytes} bytes."
        return Problem(Ending.SYNTAX_ERROR, text, 0, "Write a shorter program, or several.")
    if len(source) < _IN_THREAD_BYTES:
        return read(source, host.names)
    return await asyncio.to_thread(read, source, host.names)


def program_parse(
    source: str, tools: Any, make: Callable[[str, ast.Module, Scan], _Program | Problem]
) -> _Program | Problem:
    """Parse a program of bounded length.

    Args:
        source: hostile text; the parser ends in one of four exceptions on it.
        tools: names the program may call.
        make: checks the parsed program, and makes what the backend runs of it.

    Returns:
        What ``make`` returns, or the problem of a text that is no program.
    """
    try:
        source.encode()
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        tree = ast.parse(source)
        return make(source, tree, Scan(tree, tools))
    except SyntaxError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error.msg}", error.lineno or 0)
    except (RecursionError, MemoryError):
        return Problem(Ending.SYNTAX_ERROR, "SyntaxError: the program is nested too deeply")
    except ValueError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error}")

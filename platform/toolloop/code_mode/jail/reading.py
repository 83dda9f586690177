"""Read a program and check it; nothing of it runs."""

from __future__ import annotations

import ast
import asyncio
from typing import Any

from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.jail.check import check
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.result import Ending, Problem
from toolloop.code_mode.scan import Scan

_IN_THREAD_BYTES = 4096  # Longer programs are read off the event loop.


class Program:
    """A program that was read and found good to run.

    Args:
        source: its text.
        scan: what was found in it.
        loop_line: line of its loop, when it has exactly one; 0 otherwise.

    Attributes:
        is_async: whether it awaits, so that tools answer with awaitables.
    """

    def __init__(self, source: str, scan: Scan, loop_line: int) -> None:
        self.source = source
        self.is_async = scan.is_async
        self.loop_line = loop_line


async def program_prepare(source: str, host: ToolHost, limits: CodeLimits) -> Program | Problem:
    """Return a program, or the problem when it cannot run."""
    if len(source) > limits.code_bytes or len(source.encode(errors="replace")) > limits.code_bytes:
        text = f"The program is longer than {limits.code_bytes} bytes."
        return Problem(Ending.SYNTAX_ERROR, text, 0, "Write a shorter program, or several.")
    if len(source) < _IN_THREAD_BYTES:
        return program_read(source, host.names)
    return await asyncio.to_thread(program_read, source, host.names)


def program_read(source: str, tools: Any) -> Program | Problem:
    """Parse and check a program of bounded length.

    Args:
        source: hostile text; the parser ends in one of four exceptions on it.
        tools: names the program may call.
    """
    try:
        source.encode()
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        tree = ast.parse(source)
        scan = Scan(tree, tools)
        return check(tree, scan) or Program(source, scan, _only_loop(tree))
    except SyntaxError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error.msg}", error.lineno or 0)
    except (RecursionError, MemoryError):
        return Problem(Ending.SYNTAX_ERROR, "SyntaxError: the program is nested too deeply")
    except ValueError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error}")


def _only_loop(tree: ast.Module) -> int:
    loops = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return loops[0] if len(loops) == 1 else 0

"""What a sandbox must do, so that another one can take the place of pydantic-monty; and the program it is given."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.lint import lint
from toolloop.code_mode.lower import Lowered, lower
from toolloop.code_mode.result import CodeResult, Ending, Problem
from toolloop.code_mode.scan import Scan

_IN_THREAD_BYTES = 4096  # Longer programs are read off the event loop.


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """A program's result; ``state`` (JSON) is what ``resume`` needs when it was paused."""

    result: CodeResult
    state: dict[str, Any] | None = None


class SandboxBackend(Protocol):
    """Runs programs that may be hostile.

    Whatever a program does, ``run`` returns a result and leaves nothing running; it raises only
    ``asyncio.CancelledError``, what the host raised that is no answer, and ``ConfigurationError``.
    """

    name: str

    async def run(
        self, source: str, host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> ProgramResult:
        """Run a program to its end, or to a call that somebody must approve."""

    async def resume(
        self, state: Mapping[str, Any], host: ToolHost, limits: CodeLimits, on_output: Callable[[str], None]
    ) -> ProgramResult:
        """Go on with a paused program; ``host.decisions`` says what was decided."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was read, found runnable, and rewritten for the interpreter.

    Attributes:
        loop_line: line of its loop, when it has exactly one that is not inside another; 0 otherwise.
    """

    source: str
    lowered: Lowered
    is_async: bool
    loop_line: int = 0


async def program_prepare(source: str, host: ToolHost, limits: CodeLimits) -> Program | Problem:
    """Read a program; nothing of it runs. Returns the problem when it cannot run."""
    if len(source) > limits.code_bytes or len(source.encode(errors="replace")) > limits.code_bytes:
        text = f"The program is longer than {limits.code_bytes} bytes."
        return Problem(Ending.SYNTAX_ERROR, text, 0, "Write a shorter program, or several.")
    if len(source) < _IN_THREAD_BYTES:
        return program_read(source, host.names)
    return await asyncio.to_thread(program_read, source, host.names)


def program_read(source: str, tools: Any) -> Program | Problem:
    """Parse, check and rewrite a program of bounded length.

    Args:
        source: hostile text; the parser ends in one of four exceptions on it.
        tools: names the program may call.
    """
    try:
        source.encode()
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        tree = ast.parse(source)
        scan = Scan(tree, tools)
        problem = lint(tree, scan)
        if problem is not None:
            return problem
        loop = _only_loop(tree)
        return Program(source, lower(source, tree, scan), scan.is_async, loop)
    except SyntaxError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error.msg}", error.lineno or 0)
    except RecursionError:
        return Problem(Ending.SYNTAX_ERROR, "SyntaxError: the program is nested too deeply")
    except MemoryError:
        return Problem(Ending.SYNTAX_ERROR, "SyntaxError: the program is nested too deeply")
    except ValueError as error:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {error}")


def _only_loop(tree: ast.Module) -> int:
    found: list[int] = []
    waiting: list[ast.AST] = [tree]
    while waiting and len(found) < 2:
        node = waiting.pop()
        if isinstance(node, ast.For | ast.While):
            found.append(node.lineno)
        else:
            waiting += ast.iter_child_nodes(node)
    return found[0] if len(found) == 1 else 0

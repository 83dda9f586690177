"""What a sandbox must do, so that another one can take the place of pydantic-monty; and the program it is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.lint import lint
from toolloop.code_mode.lower import Lowered, lower
from toolloop.code_mode.parsing import program_parse
from toolloop.code_mode.result import CodeResult, Problem
from toolloop.code_mode.scan import Scan


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


def program_read(source: str, tools: Any) -> Program | Problem:
    """Parse, check and rewrite a program of bounded length; see ``parsing.program_parse``."""
    return program_parse(source, tools, _made)


def _made(source: str, tree: ast.Module, scan: Scan) -> Program | Problem:
    problem = lint(tree, scan)
    if problem is not None:
        return problem
    loop = _only_loop(tree)
    return Program(source, lower(source, tree, scan), scan.is_async, loop)


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

"""Read a program and check it; nothing of it runs."""

from __future__ import annotations

import ast
from typing import Any

from toolloop.code_mode.jail.check import check
from toolloop.code_mode.parsing import program_parse
from toolloop.code_mode.result import Problem
from toolloop.code_mode.scan import Scan


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


def program_read(source: str, tools: Any) -> Program | Problem:
    """Parse and check a program of bounded length; see ``parsing.program_parse``."""
    return program_parse(source, tools, _made)


def _made(source: str, tree: ast.Module, scan: Scan) -> Program | Problem:
    return check(tree, scan) or Program(source, scan, _only_loop(tree))


def _only_loop(tree: ast.Module) -> int:
    loops = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return loops[0] if len(loops) == 1 else 0

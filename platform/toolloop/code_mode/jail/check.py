"""Refuse, before anything runs, what a program cannot have here; say where, and what to write instead."""

from __future__ import annotations

import ast
import importlib
from types import ModuleType

from toolloop.code_mode.jail import rules
from toolloop.code_mode.result import Ending, Problem
from toolloop.code_mode.scan import Scan

_STREAMS = ("sys.stdout", "sys.stderr")
_INSTEAD = {
    "pandas": "Use lists of dicts, csv, statistics and collections. ",
    "numpy": "Use lists, math and statistics. ",
    "requests": "Use the tools. ",
    "logging": "Use print(). ",
    "traceback": "Print the exception itself. ",
    "concurrent": "Use parallel((tool, arg), ...). ",
    "threading": "Use parallel((tool, arg), ...). ",
}


def importable() -> list[str]:
    """Return the modules a program may import, sorted, as a model should see them."""
    hidden = {"__future__", "posixpath", "binascii", "urllib", "keyword", "colorsys"}
    return sorted(rules.MODULES - hidden)


def check(tree: ast.Module, scan: Scan) -> Problem | None:
    """Return the first reason not to run a program, in the order of its lines; None when there is none."""
    found = _Check(scan)
    found.visit(tree)
    for node, name in rules.inside(tree):
        found.refuse(node, name, "Use ordinary attributes and functions.")
    return min(found.problems, key=lambda problem: problem.line, default=None)


class _Check(ast.NodeVisitor):
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.problems: list[Problem] = []
        imported = {*scan.modules.values(), *(module for module, _ in scan.members.values())}
        self._has_paths = "pathlib" in imported
        self._has_loops = "asyncio" in imported
        self._inside_function = 0
        self._guarded = 0  # Inside a try that catches a failing import.

    def refuse(self, node: ast.AST, what: str, advice: str) -> None:
        line = getattr(node, "lineno", 0)
        text = f"{what} cannot be used here."
        self.problems.append(Problem(Ending.UNSUPPORTED_SYNTAX, text, line, advice))

    def visit_Try(self, node: ast.Try) -> None:
        catches = any(_catches_import(handler) for handler in node.handlers)
        self._guarded += catches
        for item in node.body:
            self.visit(item)
        self._guarded -= catches
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in rules.MODULES:
                self._import_refuse(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module not in rules.MODULES:
            self._import_refuse(node, "." * node.level + module)
            return
        for alias in node.names:
            if alias.name == "*":
                if module in rules.ONLY or module in rules.NOT:
                    self.refuse(node, f"'from {module} import *'", "Name what you need.")
            elif not _has(module, alias.name):
                self._import_refuse(node, f"{module}.{alias.name}")

    def _import_refuse(self, node: ast.stmt, name: str) -> None:
        if self._guarded:
            return
        instead = _INSTEAD.get(name.partition(".")[0], "")
        self.problems.append(
            Problem(
                Ending.UNSUPPORTED_IMPORT,
                f"{name} cannot be imported here.",
                node.lineno,
                f"{instead}Importable: {', '.join(importable())}. There are no files, no network and no processes.",
            )
        )

    def visit_Name(self, node: ast.Name) -> None:
        advice = rules.BUILTINS.get(node.id)
        if advice and isinstance(node.ctx, ast.Load) and node.id not in self.scan.bound:
            self.refuse(node, node.id, advice)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(part)
        self._inside_function += 1
        for item in node.body:
            self.visit(item)
        self._inside_function -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        shows_all = name in ("dir", "vars", "locals") and not node.args and name not in self.scan.bound
        if shows_all and not self._inside_function:
            self.refuse(node, f"{name}() of the whole program", "Keep the values in a dict.")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        module, name = self.scan.member(node)
        if module:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(node, f"a new {module}.{name}", "Give your own function another name.")
            elif module in rules.MODULES and not _has(module, name):
                self.refuse(node, f"{module}.{name}", f"{module} does not have it here.")
        elif self._has_paths and node.attr in rules.FILES and not self.scan.is_module(node):
            self.refuse(node, node.attr, "There are no files here; use the tools.")
        elif self._has_loops and node.attr in rules.OUTSIDE:
            self.refuse(node, node.attr, "There are no threads, processes and connections here.")
        elif node.attr not in rules.STREAM and ast.unparse(node.value) in _STREAMS:
            self.refuse(node, f"{ast.unparse(node.value)}.{node.attr}", "Print the text.")
        elif node.attr == "__dict__" and self._is_tool(node.value):
            self.refuse(node, "__dict__ of a tool", "Call the tool.")
        self.generic_visit(node)

    def _is_tool(self, node: ast.expr) -> bool:
        own = self.scan.bound
        return isinstance(node, ast.Name) and node.id in self.scan.waiting and node.id not in own


def _has(module: str, name: str) -> bool:
    """Tell whether a program may use a name of a module: it exists, and it is no way to something else."""
    if f"{module}.{name}" in rules.MODULES:
        return True
    only = rules.ONLY.get(module)
    if only is not None:
        return name in only
    if name.startswith("_") or name in rules.NOT.get(module, ()):
        return module == "__future__"
    try:
        value = getattr(importlib.import_module(module), name)
    except AttributeError:
        return False
    return not isinstance(value, ModuleType)


def _catches_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = ast.unparse(handler.type)
    return any(n in names for n in ("ImportError", "ModuleNotFoundError", "Exception"))

"""Refuse, before anything runs, what the interpreter cannot do or would do wrongly; say where and what to write instead."""

from __future__ import annotations

import ast

from toolloop.code_mode.names import (
    BROUGHT_MODULES,
    IGNORED_SPECIALS,
    KNOWN_SPECIAL_ATTRIBUTES,
    MISSING_BUILTINS,
    PATCHES,
    WAITING_SPECIALS,
    importable,
    is_importable,
)
from toolloop.code_mode.native import NATIVE_NAMES
from toolloop.code_mode.prelude import module_names
from toolloop.code_mode.result import Ending, Problem
from toolloop.code_mode.scan import Function, Scan

_INHERIT = {
    "exception": (
        "own exception classes",
        "Raise a built-in one with a clear text instead, e.g. raise ValueError('...').",
    ),
    "enum": ("Enum classes", "Use constants, or a dict from name to value."),
    "record": ("such record classes", "Use @dataclass, collections.namedtuple or a plain dict."),
    "other": (
        "class inheritance",
        "Write one class with all methods, or hold the other object in an attribute.",
    ),
}
_ASYNC_COMPREHENSION = "Collect the awaitables first and use await asyncio.gather(*awaitables)."
_INSTEAD = {
    "enum": "Use constants, or a dict from name to value. ",
    "pandas": "Use lists of dicts, csv, statistics and collections. ",
    "numpy": "Use lists, math and statistics. ",
    "requests": "Use the tools. ",
    "uuid": "Use random.getrandbits(128). ",
    "logging": "Use print(). ",
    "traceback": "Print the exception itself. ",
    "concurrent": "Use parallel((tool, arg), ...). ",
    "threading": "Use parallel((tool, arg), ...). ",
}
_ENDLESS = {"count", "cycle", "repeat"}


def lint(tree: ast.Module, scan: Scan) -> Problem | None:
    """Return the first reason not to run a program, in the order of its lines; None when there is none."""
    found = _Lint(scan)
    found.visit(tree)
    return min(found.problems, key=lambda problem: problem.line, default=None)


def _syntax(what: str, advice: str, line: int) -> Problem:
    return Problem(Ending.UNSUPPORTED_SYNTAX, f"{what} cannot be used here.", line, advice)


class _Lint(ast.NodeVisitor):
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.problems: list[Problem] = []
        self._guarded = 0  # Inside a try that catches a failing import.

    def refuse(self, node: ast.AST, what: str, advice: str) -> None:
        self.problems.append(_syntax(what, advice, getattr(node, "lineno", 0)))

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
            if not is_importable(alias.name):
                self._import_refuse(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self._import_refuse(node, "." * node.level + module)
        elif not is_importable(module):
            self._import_refuse(node, module)
        elif any(alias.name == "*" for alias in node.names):
            self.refuse(node, "'from ... import *'", "Name what you need: from module import a, b.")
        elif module in BROUGHT_MODULES or module == "urllib":
            known = {"parse"} if module == "urllib" else module_names(module)
            for alias in node.names:
                if alias.name not in known:
                    self._import_refuse(node, f"{module}.{alias.name}")
        elif module not in ("typing", "collections.abc"):
            for alias in node.names:
                if not _is_known(module, alias.name):
                    self._import_refuse(node, f"{module}.{alias.name}")

    def _import_refuse(self, node: ast.stmt, name: str) -> None:
        if not self._guarded:
            instead = _INSTEAD.get(name.partition(".")[0], "")
            self.problems.append(
                Problem(
                    Ending.UNSUPPORTED_IMPORT,
                    f"{name} cannot be imported here.",
                    node.lineno,
                    f"{instead}Importable: {', '.join(importable())}. There are no files, no network and no processes.",
                )
            )

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [base for base in node.bases if ast.unparse(base) != "object"]
        if bases or node.keywords:
            what, advice = _INHERIT[_base_kind([ast.unparse(base) for base in bases])]
            self.refuse(node, what, advice)
        for item in node.body:
            if isinstance(item, Function):
                self._method(item)
        for decorator in node.decorator_list:
            self._dataclass(decorator)
        self.generic_visit(node)

    def _dataclass(self, decorator: ast.expr) -> None:
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg in ("order", "slots", "kw_only", "unsafe_hash", "match_args"):
                    advice = "Leave the option out; sort with key=lambda x: ... instead."
                    self.refuse(decorator, f"@dataclass({keyword.arg}=...)", advice)

    def _method(self, item: Function) -> None:
        if item.decorator_list and item.name not in self.scan.properties:
            self.refuse(
                item.decorator_list[0],
                "a decorated method",
                "Write a plain method without decorator, and call it with ().",
            )
        if item.name in IGNORED_SPECIALS:
            self.refuse(item, item.name, f"It would be ignored. {IGNORED_SPECIALS[item.name]}")
        elif _is_special(item.name) and item.name not in WAITING_SPECIALS and self.scan.waits(item):
            self.refuse(
                item, f"a tool call inside {item.name}", "Call the tool in an ordinary method or function."
            )

    def visit_Yield(self, node: ast.Yield) -> None:
        self.refuse(node, "yield", "Build a list in a loop and return it.")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self.refuse(node, "yield from", "Build a list in a loop and return it.")

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.refuse(node, "async for", _ASYNC_COMPREHENSION)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self.refuse(node, "async with", "Call tools directly; at most a few run at once by themselves.")

    def visit_TryStar(self, node: ast.AST) -> None:
        self.refuse(node, "except*", "Use plain except.")

    def visit_TypeAlias(self, node: ast.AST) -> None:
        self.refuse(node, "a type statement", "Leave it out.")

    def visit_comprehension(self, node: ast.comprehension) -> None:
        if node.is_async:
            self.refuse(node.target, "an async comprehension", _ASYNC_COMPREHENSION)
        elif isinstance(node.iter, ast.Call):
            module, name = self.scan.member(node.iter.func)
            if (
                module == "itertools"
                and name in _ENDLESS
                and not (name == "repeat" and len(node.iter.args) > 1)
            ):
                self.refuse(
                    node.iter,
                    f"a comprehension over the endless itertools.{name}()",
                    "Use a while loop with break: generator expressions are computed whole here.",
                )
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self.refuse(target, "del of an attribute", "Set it to None instead.")
            elif isinstance(target, ast.Tuple | ast.List):
                self.refuse(target, "del of a tuple", "Write del a, b without parentheses.")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        own = node.id in self.scan.bound or node.id in self.scan.waiting
        own = own or (node.id == "property" and bool(self.scan.properties))
        if isinstance(node.ctx, ast.Load) and node.id in MISSING_BUILTINS and not own:
            self.refuse(node, f"{node.id}", f"It does not exist: {MISSING_BUILTINS[node.id]}.")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        module, name = self.scan.member(node)
        if module in BROUGHT_MODULES and name not in module_names(module):
            self.refuse(node, f"{module}.{name}", f"It has: {', '.join(sorted(module_names(module)))}.")
        elif module in NATIVE_NAMES and not _is_known(module, name):
            has = ", ".join(sorted(NATIVE_NAMES[module]))
            self.refuse(node, f"{module}.{name}", f"{module} has: {has}.")
        elif _is_special(node.attr) and node.attr not in KNOWN_SPECIAL_ATTRIBUTES:
            self.refuse(node, node.attr, "Use ordinary attributes and functions.")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        module, name = self.scan.member(node.func)
        plain = node.func.id if isinstance(node.func, ast.Name) else ""
        if plain == "defaultdict" or name == "defaultdict":
            if node.args and self.scan.waits(node.args[0]):
                self.refuse(
                    node, "a tool as the factory of a defaultdict", "Call the tool where the key is missing."
                )
        elif (module, name) == ("itertools", "groupby") and any(
            self.scan.waits(part) for part in (*node.args[1:], *_values(node))
        ):
            self.refuse(node, "a tool inside a key function", "Call the tool for each item first.")
        self.generic_visit(node)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_known(module: str, name: str) -> bool:
    known = NATIVE_NAMES.get(module)
    if known is None or name in known or (module, name) in PATCHES:
        return True
    return is_importable(f"{module}.{name}")


def _values(node: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in node.keywords]


def _base_kind(bases: list[str]) -> str:
    text = " ".join(bases)
    if "Enum" in text or "Flag" in text:
        return "enum"
    if any(name in text for name in ("NamedTuple", "TypedDict", "BaseModel")):
        return "record"
    if any(base.endswith(("Error", "Exception", "Warning")) for base in bases):
        return "exception"
    return "other"


def _catches_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = ast.unparse(handler.type)
    return any(n in names for n in ("ImportError", "ModuleNotFoundError", "Exception"))

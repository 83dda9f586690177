"""Find the properties of a program that can be called where they are read: the interpreter has methods, but no properties.

Rewriting ``cart.total`` into ``cart.total()`` is right only when nothing else in the program can have an attribute of that name,
and when nobody reaches it by a text. Whatever is in doubt stays refused.
"""

from __future__ import annotations

import ast
import re

from toolloop.code_mode.names import METHOD_NAMES, MORE_METHOD_NAMES

# Attributes of what the interpreter's own types and modules make.
_TAKEN = frozenset(
    """
        args day days default denominator elements errors fold hour imag lastgroup lastindex maxlen
        microsecond microseconds minute msg name names numerator parent parents parts pattern pos re real
        second seconds stem string suffix suffixes tzinfo value fieldnames line_num func keywords netloc
        scheme path query fragment hostname port username password params root lineno colno doc week lower
        upper step start stop
    """.split()
)
# Methods of those types that make no sense as values: where nothing of that name is called, none is meant.
_ONLY_CALLED = frozenset({"total", "count", "start", "end", "span", "elements"})
_BY_TEXT = frozenset(
    {
        "getattr",
        "setattr",
        "hasattr",
        "delattr",
        "attrgetter",
        "methodcaller",
        "namedtuple",
        "vars",
        "asdict",
        "eval",
        "exec",
    }
)


def properties_find(tree: ast.Module) -> frozenset[str]:
    """Return the names of all properties that are safe to call instead."""
    found = {
        item.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.FunctionDef) and _is_property(item)
    }
    if not found:
        return frozenset()
    found -= (_TAKEN | METHOD_NAMES | MORE_METHOD_NAMES) - _ONLY_CALLED
    inside = {id(item) for n in ast.walk(tree) if isinstance(n, ast.ClassDef) for item in n.body}
    by_text = False
    words: set[str] = set()
    formatted: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_own = id(node) in inside and _is_property(node)
            found -= set() if is_own else {node.name}
        elif isinstance(node, ast.Call):
            found -= {node.func.attr} if isinstance(node.func, ast.Attribute) else set()
        elif isinstance(node, ast.Attribute):
            found -= set() if isinstance(node.ctx, ast.Load) else {node.attr}
            by_text = by_text or node.attr in _BY_TEXT
        elif isinstance(node, ast.ClassDef):
            found -= {node.name, *_fields(node)}
        elif isinstance(node, ast.Name):
            by_text = by_text or node.id in _BY_TEXT
        elif isinstance(node, ast.alias):
            by_text = by_text or node.name in _BY_TEXT
        elif isinstance(node, ast.MatchClass):
            found -= set(node.kwd_attrs)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= set(re.findall(r"\w+", node.value))
            formatted |= set(re.findall(r"\{[^{}]*?\.(\w+)", node.value))
    return frozenset(found - formatted - (words if by_text else set()))


def _is_property(item: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return [ast.unparse(decorator) for decorator in item.decorator_list] == ["property"]


def _fields(node: ast.ClassDef) -> set[str]:
    """Return what a class body binds otherwise than by ``def``."""
    return {
        part.id
        for item in node.body
        if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for part in ast.walk(item)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }

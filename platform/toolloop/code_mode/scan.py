"""One look at a program before it runs: what it imports, binds and defines, and which functions wait for tools."""

from __future__ import annotations

import ast
from collections.abc import Collection

from toolloop.code_mode.names import PARALLEL
from toolloop.code_mode.properties import properties_find

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scan:
    """Facts about a program. Scopes are not told apart: a name counts as bound wherever it is bound.

    Args:
        tree: the program.
        tools: names of the tools it may call.

    Attributes:
        modules: alias -> module, for ``import``.
        members: name -> (module, attribute), for ``from ... import``.
        bound: every name the program binds itself.
        waiting: names whose call may wait for a tool: tools, and functions that call them.
        waiting_methods: method names for which the same holds.
        called: names that are called.
        is_async: whether the program awaits, so that tools answer with futures.
        errors_of_json: names of caught JSON errors.
        properties: names of properties that can as well be methods which are called wherever they are read.
    """

    def __init__(self, tree: ast.Module, tools: Collection[str]) -> None:
        self.modules: dict[str, str] = {}
        self.members: dict[str, tuple[str, str]] = {}
        self.bound: set[str] = set()
        self._rebound: set[str] = set()  # Bound otherwise than by an import.
        self.called: set[str] = set()
        self.is_async = False
        self.errors_of_json: set[str] = set()
        self._bodies: list[tuple[str, bool, ast.AST]] = []
        for node in ast.walk(tree):
            self._look(node)
        self._methods(tree)
        self.properties = properties_find(tree) if "property" not in self.bound else frozenset()
        self.waiting = {name for name in (*tools, PARALLEL) if name not in self.bound}
        self.waiting_methods: set[str] = set()
        self._spread()

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                self._rebind(node.id)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                self.called.add(node.func.id)
        elif isinstance(node, ast.arg):
            self._rebind(node.arg)
        elif isinstance(node, Function | ast.ClassDef):
            self._rebind(node.name)
            self.is_async = self.is_async or isinstance(node, ast.AsyncFunctionDef)
        elif isinstance(node, ast.Await):
            self.is_async = True
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.modules[name] = alias.name if alias.asname else name
                self.bound.add(name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.members[alias.asname or alias.name] = (node.module or "", alias.name)
                self.bound.add(alias.asname or alias.name)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._rebind(node.name)
            if node.type is not None and "JSONDecodeError" in ast.unparse(node.type):
                self.errors_of_json.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._bodies.append((target.id, False, node.value))
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self._rebind(node.name)

    def _rebind(self, name: str) -> None:
        self.bound.add(name)
        self._rebound.add(name)

    def module(self, name: str) -> str:
        """Return the module that a name stands for everywhere; "" where it may stand for something else."""
        if name in self._rebound or name in self.members:
            return ""
        return self.modules.get(name, "")

    def _methods(self, tree: ast.Module) -> None:
        inside: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, Function):
                        inside.add(item)
                        self._bodies.append((item.name, True, item))
                        if item.name == "__init__":
                            self._bodies.append((node.name, False, item))
        for node in ast.walk(tree):
            if isinstance(node, Function) and node not in inside:
                self._bodies.append((node.name, False, node))

    def _spread(self) -> None:
        """Find all functions that may wait, in time linear to the program: hostile ones are long chains."""
        users: dict[tuple[bool, str], list[tuple[bool, str]]] = {}
        for name, is_method, body in self._bodies:
            for part in ast.walk(body):
                if isinstance(part, ast.Name):
                    users.setdefault((False, part.id), []).append((is_method, name))
                elif isinstance(part, ast.Attribute):
                    users.setdefault((True, part.attr), []).append((is_method, name))
        fresh = [(False, name) for name in self.waiting]
        while fresh:
            for is_method, name in users.pop(fresh.pop(), ()):
                known = self.waiting_methods if is_method else self.waiting
                if name not in known:
                    known.add(name)
                    fresh.append((is_method, name))

    def waits(self, node: ast.AST) -> bool:
        """Tell whether running a piece of code may wait for a tool (or hands one to what may call it)."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.waiting:
                return True
            if isinstance(part, ast.Attribute) and part.attr in self.waiting_methods:
                return True
        return False

    def member(self, node: ast.expr) -> tuple[str, str]:
        """Return (module, attribute) for ``json.dumps`` or an imported ``dumps``; ("", "") for anything else."""
        if isinstance(node, ast.Name):
            return ("", "") if node.id in self._rebound else self.members.get(node.id, ("", ""))
        if not isinstance(node, ast.Attribute):
            return "", ""
        path = _dotted(node.value)
        if path in ("os.path", "urllib.parse"):
            return path, node.attr
        module = self.module(path)
        if not module and self.members.get(path) in (("urllib", "parse"), ("os", "path")):
            module = ".".join(self.members[path])
        return (module, node.attr) if module else ("", "")

    def is_module(self, node: ast.expr) -> bool:
        """Tell whether an expression names a module, so that its attributes are no bound methods."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (
            bool(self.module(node.id)) or (node.id in self.members and node.id not in self._rebound)
        )


def _dotted(node: ast.expr) -> str:
    """Return ``a`` or ``a.b``; "" for anything longer, which is no module."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""

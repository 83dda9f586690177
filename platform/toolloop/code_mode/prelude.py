"""Python source that is fed to the interpreter before a program: only what the program uses, without types and texts."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from toolloop.code_mode.names import BROUGHT_MODULES, PREFIX

_FOLDER = Path(__file__).parent / "sandboxed"


class _Bare(ast.NodeTransformer):
    """Leaves annotations and docstrings out: the interpreter need not read them."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        for arg in ast.walk(node.args):
            if isinstance(arg, ast.arg):
                arg.annotation = None
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)


@lru_cache(maxsize=32)
def _parsed(file: str) -> tuple[ast.stmt, ...]:
    tree = ast.parse((_FOLDER / f"{file}.py").read_text(encoding="utf-8"))
    kept = [
        item for item in tree.body[1:] if not (isinstance(item, ast.ImportFrom) and item.module == "typing")
    ]
    bare = _Bare().visit(ast.Module(kept, []))
    ast.fix_missing_locations(bare)
    return tuple(bare.body)


def _names(item: ast.stmt) -> list[str]:
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [item.name]
    if isinstance(item, ast.Assign):
        return [target.id for target in item.targets if isinstance(target, ast.Name)]
    if isinstance(item, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in item.names]
    return []


@lru_cache(maxsize=32)
def module_names(module: str) -> frozenset[str]:
    """Return the public names of a module that is brought along."""
    return frozenset(
        name
        for item in _parsed(BROUGHT_MODULES[module])
        if not isinstance(item, ast.Import | ast.ImportFrom)
        for name in _names(item)
        if not name.startswith("_")
    )


@lru_cache(maxsize=32)
def _module_source(module: str) -> str:
    """Return statements that make ``_gw_<module>``, an object with the module's public names."""
    name = module_variable(module)
    body = "\n".join(ast.unparse(item) for item in _parsed(BROUGHT_MODULES[module]))
    made = "\n".join(f"_m.{n} = {n}" for n in sorted(module_names(module)))
    inner = "\n".join(f"    {line}" for line in f"{body}\n_m = {PREFIX}Module()\n{made}".split("\n"))
    return f"def {name}_make():\n{inner}\n    return _m\n{name} = {name}_make()\n"


@lru_cache(maxsize=1)
def _core() -> dict[str, tuple[str, frozenset[str]]]:
    """Return each name of core_.py with its source and the other names it uses."""
    items = [(name, item) for item in _parsed("core_") for name in _names(item)]
    known = {name for name, _ in items}
    return {
        name: (
            ast.unparse(item),
            frozenset(
                part.id
                for part in ast.walk(item)
                if isinstance(part, ast.Name) and part.id in known and part.id != name
            ),
        )
        for name, item in items
    }


@lru_cache(maxsize=256)
def _core_source(names: tuple[str, ...]) -> str:
    core = _core()
    needed: dict[str, None] = {}

    def need(name: str) -> None:
        if name in needed:
            return
        for other in sorted(core[name][1]):
            need(other)
        needed[name] = None

    for name in names:
        need(name)
    lines = "\n".join(core[name][0] for name in needed).split("\n")
    inner = "\n".join(f"    {line}" for line in lines)
    targets = ", ".join(PREFIX + name for name in names)
    result = ", ".join(names)
    comma = "," if len(names) == 1 else ""
    return (
        f"def {PREFIX}core():\n{inner}\n    return ({result}{comma})\n({targets}{comma}) = {PREFIX}core()\n"
    )


def module_variable(module: str) -> str:
    """Return the variable that holds a module which is brought along."""
    return PREFIX + module.replace(".", "_")


def prelude_source(core: Iterable[str], modules: Iterable[str]) -> str:
    """Return the source that defines these names of ``core_.py`` and these modules; "" for none."""
    core, modules = tuple(sorted(core)), sorted(modules)
    parts = []
    if modules:
        parts.append(f"class {PREFIX}Module:\n    pass\n")
        parts += [_module_source(module) for module in modules]
        if "urllib.parse" in modules:
            holder = f"{PREFIX}urllib"
            parts.append(f"{holder} = {PREFIX}Module()\n{holder}.parse = {module_variable('urllib.parse')}\n")
    if core:
        parts.append(_core_source(core))
    return "".join(parts)

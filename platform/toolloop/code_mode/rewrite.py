"""Rewrite expressions and statements that the interpreter lacks; see ``lower.py``."""

from __future__ import annotations

import ast

from toolloop.code_mode.names import (
    BROUGHT_MODULES,
    BUILTIN_TYPES,
    CALL_PATCHES,
    METHOD_NAMES,
    MORE_METHOD_NAMES,
    NEAREST_EXCEPTIONS,
    PARALLEL,
    PATCHES,
    PREFIX,
)
from toolloop.code_mode.native import NATIVE_NAMES
from toolloop.code_mode.prelude import module_variable
from toolloop.code_mode.scan import Scan

_CALLBACKS = {"map": 0, "filter": 0, "sorted": -1, "min": -1, "max": -1}
_REPLACED_BUILTINS = {"hasattr": "hasattr_", "callable": "callable_", "issubclass": "issubclass_"}
_SHORT_CIRCUIT = {"any": "any_", "all": "all_", "next": "next_"}


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _forward(function: ast.expr) -> ast.Lambda:
    """Return ``lambda *_a, **_k: function(*_a, **_k)``: a bound method made a function."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[],
        vararg=ast.arg("_a"),
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=ast.arg("_k"),
        defaults=[],
    )
    call = ast.Call(function, [ast.Starred(_name("_a"), ast.Load())], [ast.keyword(None, _name("_k"))])
    return ast.Lambda(arguments, call)


def _one(argument: str, body: ast.expr) -> ast.Lambda:
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(argument)], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return ast.Lambda(arguments, body)


class Rewriter(ast.NodeTransformer):
    """Rewrites expressions; ``core`` and ``modules`` collect what the prelude must hold."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.core: set[str] = set()
        self.modules: set[str] = set()
        self._changed = False

    def lowered(self, expression: ast.expr) -> tuple[ast.expr, bool]:
        """Return an expression and whether it was rewritten."""
        self._changed = False
        place = (expression.lineno, expression.col_offset)
        ends = (expression.end_lineno, expression.end_col_offset)
        is_generator = isinstance(expression, ast.GeneratorExp) and not self.scan.waits(expression)
        new: ast.expr = self.visit(expression)
        if is_generator:
            new = self._iterated(new)  # It may be given to next() later: here it is a list.
        (expression.lineno, expression.col_offset) = place
        (expression.end_lineno, expression.end_col_offset) = ends
        ast.fix_missing_locations(new)
        return new, self._changed

    def _iterated(self, items: ast.expr) -> ast.expr:
        self._changed = True
        return ast.Call(_name("iter"), [items], [])

    def _use(self, core: str) -> ast.Name:
        self._changed = True
        self.core.add(core)
        return _name(PREFIX + core)

    # Statements

    def imported(self, node: ast.Import | ast.ImportFrom) -> str:
        """Return what replaces an import; "" to leave it alone."""
        parts: list[str] = []
        kept: list[str] = []
        for alias in node.names:
            bound = alias.asname or alias.name
            shown = alias.name + (f" as {alias.asname}" if alias.asname else "")
            if isinstance(node, ast.Import):
                new = self._module_import(alias)
            else:
                new = self._member_import(node.module or "", alias.name)
            if new:
                parts.append(f"{bound.partition('.')[0]} = {new}")
            else:
                kept.append(shown)
        if isinstance(node, ast.ImportFrom) and node.module == "collections.abc" and kept:
            parts.insert(0, f"from typing import {', '.join(kept)}")
            kept = []
        if not parts:
            return ""
        if kept:
            head = "import " if isinstance(node, ast.Import) else f"from {node.module} import "
            parts.insert(0, head + ", ".join(kept))
        return "; ".join(parts)

    def _module_import(self, alias: ast.alias) -> str:
        if alias.name in ("urllib", "urllib.parse"):
            self.modules.add("urllib.parse")
            return (
                module_variable(alias.name) if alias.asname or alias.name == "urllib" else f"{PREFIX}urllib"
            )
        if alias.name in BROUGHT_MODULES:
            self.modules.add(alias.name)
            return module_variable(alias.name)
        return ""

    def _member_import(self, module: str, name: str) -> str:
        if module == "urllib":
            self.modules.add("urllib.parse")
            return module_variable("urllib.parse")
        if module in BROUGHT_MODULES:
            self.modules.add(module)
            return f"{module_variable(module)}.{name}"
        if patch := PATCHES.get((module, name)):
            self.core.add(patch)
            return PREFIX + patch
        if module in ("typing", "collections.abc") and name not in NATIVE_NAMES["typing"]:
            return "object"  # Good for annotations, and there is no other use for it.
        return ""

    def deleted(self, target: ast.expr) -> str:
        """Return what replaces ``del target``."""
        if isinstance(target, ast.Name):
            return f"{target.id} = None"
        if not isinstance(target, ast.Subscript):
            raise TypeError(f"lint let del of {type(target).__name__} pass")
        holder, _ = self.lowered(target.value)
        key = target.slice
        if isinstance(key, ast.Slice):
            self.core.add("delete_slice_")
            bounds = [
                "None" if part is None else ast.unparse(self.lowered(part)[0])
                for part in (key.lower, key.upper, key.step)
            ]
            return f"{PREFIX}delete_slice_({ast.unparse(holder)}, {', '.join(bounds)})"
        self.core.add("delete_")
        return f"{PREFIX}delete_({ast.unparse(holder)}, {ast.unparse(self.lowered(target.slice)[0])})"

    def sorted_in_place(self, node: ast.Expr) -> str:
        """Return what replaces ``xs.sort(key=<waits for a tool>)``; "" for any other statement."""
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return ""
        if call.func.attr != "sort" or not any(self.scan.waits(k.value) for k in call.keywords):
            return ""
        self.core.add("sort_")
        options = [ast.keyword(k.arg, self.lowered(k.value)[0]) for k in call.keywords]
        new = ast.Call(_name(f"{PREFIX}sort_"), [self.lowered(call.func.value)[0], *call.args], options)
        return ast.unparse(new)

    def method_kept(self, node: ast.Assign) -> ast.expr | None:
        """Return what replaces the value of ``add = out.append`` when ``add`` is called later."""
        value = node.value
        if not isinstance(value, ast.Attribute) or self.scan.is_module(value):
            return None
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if not any(name in self.scan.called for name in names):
            return None
        return self._function_value(value)

    # Expressions

    def _function_value(self, node: ast.expr) -> ast.expr | None:
        """Return a function for ``d.get`` or ``str.lower`` in a place where a function is expected."""
        if not isinstance(node, ast.Attribute) or self.scan.is_module(node):
            return None
        if node.attr not in METHOD_NAMES and node.attr not in MORE_METHOD_NAMES:
            return None
        patched = isinstance(node.value, ast.Name) and (node.value.id, node.attr) in PATCHES
        if patched:
            return None
        self._changed = True
        is_type = isinstance(node.value, ast.Name) and node.value.id in BUILTIN_TYPES - self.scan.bound
        if is_type:
            method = ast.Attribute(_name("_s"), node.attr, ast.Load())
            call = ast.Call(method, [ast.Starred(_name("_a"), ast.Load())], [])
            unbound = _one("_s", call)
            unbound.args.vararg = ast.arg("_a")
            return unbound
        inner = self.visit(node.value)
        return _forward(ast.Attribute(inner, node.attr, ast.Load()))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        module, name = self.scan.member(node)
        if isinstance(node.value, ast.Name) and node.value.id == "str" and "str" not in self.scan.bound:
            module, name = "str", node.attr
        if patch := PATCHES.get((module, name)):
            return self._use(patch)
        if isinstance(node.ctx, ast.Load):
            if node.attr in self.scan.properties and not self.scan.is_module(node):
                self._changed = True
                self.generic_visit(node)
                return ast.Call(node, [], [])
            if node.attr == "__name__":
                return ast.Call(self._use("name_"), [self.visit(node.value)], [])
            caught = isinstance(node.value, ast.Name) and node.value.id in self.scan.errors_of_json
            if caught and node.attr in ("msg", "pos", "lineno", "colno"):
                return ast.Call(self._use("failure_"), [node.value, ast.Constant(node.attr)], [])
            if node.attr in METHOD_NAMES and not self.scan.is_module(node):
                function = self._function_value(node)
                if function is not None:
                    return function
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in NEAREST_EXCEPTIONS and node.id not in self.scan.bound:
            self._changed = True
            return _name(NEAREST_EXCEPTIONS[node.id])
        replaced = _REPLACED_BUILTINS.get(node.id)
        if replaced and isinstance(node.ctx, ast.Load) and node.id not in self.scan.bound:
            return self._use(replaced)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        special = self._special_call(node)
        if special is not None:
            return special
        self._callbacks(node)
        if isinstance(node.func, ast.Attribute):
            # The called attribute itself is no bound method used as a value.
            patched = self._called(node.func)
            if patched is None:
                node.func.value = self.visit(node.func.value)
            node.func = patched or node.func
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _called(self, function: ast.Attribute) -> ast.expr | None:
        """Return what replaces a called attribute as a whole, None for one that stays."""
        module, name = self.scan.member(function)
        if isinstance(function.value, ast.Name) and function.value.id == "str":
            module, name = "str", function.attr
        patch = PATCHES.get((module, name))
        return self._use(patch) if patch else None

    def _special_call(self, node: ast.Call) -> ast.expr | None:
        module, name = self.scan.member(node.func)
        patch = CALL_PATCHES.get((module, name))
        if patch and self._needs_patch(name, node):
            return self._again(self._use(patch), node)
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func)
        if not isinstance(node.func, ast.Name) or node.func.id in self.scan.bound:
            return None
        name = node.func.id
        if name == "print" and any(k.arg == "file" and _own_file(k.value) for k in node.keywords):
            return self._again(self._use("print_"), node)
        if name == PARALLEL:
            return self._parallel(node)
        if name in _CALLBACKS and self._waiting_callback(name, node):
            return self._again(self._use(f"{name}_"), node)
        if name in _SHORT_CIRCUIT and node.args and isinstance(node.args[0], ast.GeneratorExp):
            if self.scan.waits(node.args[0]):
                return self._short_circuit(name, node, node.args[0])
            if name == "next":
                items, *rest = (self.visit(arg) for arg in node.args)
                return ast.Call(node.func, [self._iterated(items), *rest], node.keywords)
        return None

    def _again(self, function: ast.expr, node: ast.Call) -> ast.Call:
        """Return the same call of another function."""
        self._callbacks(node)
        args = [self.visit(arg) for arg in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return ast.Call(function, args, keywords)

    def _needs_patch(self, name: str, node: ast.Call) -> bool:
        given = {keyword.arg for keyword in node.keywords}
        if name == "dumps":
            return bool(given & {"default", "cls"})
        if name == "gather":
            return "return_exceptions" in given
        if name == "reduce":
            return bool(node.args) and self.scan.waits(node.args[0])
        repl = node.args[1] if len(node.args) > 1 else None
        return (repl is not None and not isinstance(repl, ast.Constant | ast.JoinedStr)) or "repl" in given

    def _method_call(self, node: ast.Call, function: ast.Attribute) -> ast.expr | None:
        if function.attr == "write" and ast.unparse(function.value) == "sys.stdout":
            return self._again(self._use("write_"), node)
        if function.attr == "translate" and len(node.args) == 1:
            new = self._again(self._use("translate_"), node)
            return ast.Call(new.func, [self.visit(function.value), *new.args], [])
        if self.scan.is_module(function):
            return None
        if function.attr == "isocalendar" and not node.args:
            return ast.Call(self._use("isocalendar_"), [self.visit(function.value)], [])
        if function.attr in ("sub", "subn") and node.args:
            if function.attr == "sub" and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
                return None
            new = self._again(self._use(f"pattern_{function.attr}_"), node)
            return ast.Call(new.func, [self.visit(function.value), *new.args], new.keywords)
        return None

    def _waiting_callback(self, name: str, node: ast.Call) -> bool:
        keys = [k.value for k in node.keywords if k.arg == "key"]
        first = node.args[:1] if _CALLBACKS[name] == 0 else []
        return any(self.scan.waits(part) for part in (*keys, *first))

    def _callbacks(self, node: ast.Call) -> None:
        """Turn bound methods into functions where a function is expected."""
        for keyword in node.keywords:
            if keyword.arg in ("key", "default", "default_factory"):
                keyword.value = self._function_value(keyword.value) or keyword.value
        plain = node.func.id if isinstance(node.func, ast.Name) else ""
        if plain in ("map", "filter", "defaultdict") and node.args:
            node.args[0] = self._function_value(node.args[0]) or node.args[0]
        module, _ = self.scan.member(node.func)
        if module in ("functools", "itertools") and node.args:
            node.args = [
                (self._function_value(arg) or arg) if isinstance(arg, ast.Attribute) else arg
                for arg in node.args
            ]

    def _parallel(self, node: ast.Call) -> ast.expr | None:
        """Turn ``parallel(lambda: tool(x))`` into what can leave the interpreter: names and arguments."""
        if not any(isinstance(arg, ast.Lambda) for arg in node.args):
            return None
        args: list[ast.expr] = []
        for arg in node.args:
            body = arg.body if isinstance(arg, ast.Lambda) else None
            plain = isinstance(body, ast.Call) and isinstance(body.func, ast.Name)
            if not (isinstance(body, ast.Call) and plain):
                args.append(self.visit(arg))
                continue
            given: list[ast.expr] = [self.visit(part) for part in body.args]
            named = ast.Dict(
                [None if k.arg is None else ast.Constant(k.arg) for k in body.keywords],
                [self.visit(k.value) for k in body.keywords],
            )
            parts: list[ast.expr] = [body.func, ast.List(given, ast.Load()), named]
            keys: list[ast.expr | None] = [ast.Constant(n) for n in ("tool", "args", "kwargs")]
            args.append(ast.Dict(keys, parts))
        self._changed = True
        return ast.Call(node.func, args, node.keywords)

    def _short_circuit(self, name: str, node: ast.Call, generator: ast.GeneratorExp) -> ast.expr | None:
        """Keep ``any(tool(x) for x in xs)`` from calling more tools than Python would."""
        waits = self.scan.waits(generator.elt) or any(
            self.scan.waits(test) for part in generator.generators for test in part.ifs
        )
        first = generator.generators[0]
        if not waits or len(generator.generators) != 1 or not isinstance(first.target, ast.Name):
            return None
        target = first.target.id
        tests = [self.visit(test) for test in first.ifs]
        wanted: ast.expr = ast.Constant(True)
        if tests:
            wanted = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        function = self._use(_SHORT_CIRCUIT[name])
        rest = [self.visit(arg) for arg in node.args[1:]]
        made = _one(target, self.visit(generator.elt))
        return ast.Call(function, [self.visit(first.iter), _one(target, wanted), made, *rest], node.keywords)


def _own_file(node: ast.expr) -> bool:
    return ast.unparse(node) not in ("sys.stderr", "sys.stdout", "stderr", "stdout", "None")

"""Rewrite what the interpreter lacks into what it has, where the meaning stays the same.

Lines stay where they are: a rewritten statement or expression takes as many lines as the original one, everything else is
passed on character by character. So the line numbers of errors are those of the program as it was written.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from toolloop.code_mode.edits import Edits
from toolloop.code_mode.prelude import prelude_source
from toolloop.code_mode.rewrite import Rewriter
from toolloop.code_mode.scan import Function, Scan


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program as the interpreter gets it: ``prelude`` is fed first, then ``code``."""

    code: str
    prelude: str


def lower(source: str, tree: ast.Module, scan: Scan) -> Lowered:
    """Lower a program that lint has let pass.

    Args:
        source: the program; lines of it are kept.
        tree: its syntax tree, which is changed.
        scan: facts about it.
    """
    lowering = Rewriter(scan)
    edits = Edits(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            _statement(node, lowering, edits)
    code = edits.apply()
    return Lowered(code, prelude_source(lowering.core, lowering.modules))


def _statement(node: ast.stmt, lowering: Rewriter, edits: Edits) -> None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        text = lowering.imported(node)
        if text:
            edits.statement(node, text)
        return
    if isinstance(node, ast.Delete):
        edits.statement(node, "; ".join(lowering.deleted(target) for target in node.targets))
        return
    if isinstance(node, ast.Expr) and (text := lowering.sorted_in_place(node)):
        edits.statement(node, text)
        return
    if isinstance(node, Function) and node.name in lowering.scan.properties:
        edits.decorator_drop(node.decorator_list[0])  # Who reads it calls it now.
    if isinstance(node, ast.ClassDef) and len(node.bases) == 1:
        edits.base_drop(node)  # Only ``object`` gets past lint.
    if isinstance(node, ast.Assign) and (wrapped := lowering.method_kept(node)) is not None:
        edits.expression(node.value, ast.unparse(wrapped))
        return
    for expression in _expressions(node):
        new, changed = lowering.lowered(expression)
        if changed:
            edits.expression(expression, ast.unparse(new))


def _expressions(node: ast.AST) -> list[ast.expr]:
    """Return the outermost expressions of one statement, those of statements inside it excluded."""
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            if isinstance(getattr(child, "ctx", None), ast.Store) and isinstance(child, ast.Name):
                continue
            found.append(child)
        elif not isinstance(child, ast.stmt):
            found += _expressions(child)
    return found

"""Doc comments and docstrings, freed of their marks."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DOCSTRING = 20_000
_LINE_MARK = re.compile(r"^[ \t]*(?:///?!?|//!|#+!?)[ \t]?")
_STAR = re.compile(r"^[ \t]*\*[ \t]?(?!/)")
_BLOCK = re.compile(r"\A/\*[*!]*(.*?)\**\*/\Z", re.DOTALL)
# Java, JavaScript and TypeScript set doc comments apart by their second star; elsewhere what stands above counts.
_STARRED_ONLY = frozenset({"java", "javascript", "typescript", "tsx"})


def python_docstring(node: Node) -> str:
    """Return the docstring of a module, class or function node as ``ast.get_docstring`` does, "" without one."""
    body = node if node.type == "module" else node.child_by_field_name("body")
    if body is None:
        return ""
    first = next((c for c in body.named_children if c.type != "comment"), None)
    if first is None or first.type != "expression_statement" or first.named_child_count != 1:
        return ""
    value = first.named_children[0]
    while value.type == "parenthesized_expression" and value.named_child_count == 1:
        value = value.named_children[0]
    if value.type not in ("string", "concatenated_string") or value.text is None:
        return ""
    try:
        said = ast.literal_eval(f"({value.text.decode(errors='replace')})")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""  # an f-string, or nothing that Python reads as a string
    return inspect.cleandoc(said)[:MAX_DOCSTRING] if isinstance(said, str) else ""


def doc_comment(comments: list[str], language: str) -> str:
    """Join the comments above a definition to one text, "" when none of them documents it."""
    if language in _STARRED_ONLY:
        comments = [comment for comment in comments[-1:] if comment.startswith("/**")]
    if language == "rust":
        comments = [c for c in comments if c.startswith(("///", "/**"))]
    return comment_text(comments)


def comment_text(comments: list[str]) -> str:
    """Free comments of their marks and of the indentation they share."""
    lines: list[str] = []
    for comment in comments:
        block = _BLOCK.match(comment.strip())
        if block is not None:
            lines += [_STAR.sub("", line, count=1) for line in block.group(1).split("\n")]
        else:
            lines += [_LINE_MARK.sub("", line, count=1) for line in comment.split("\n")]
    return inspect.cleandoc("\n".join(lines)).strip()[:MAX_DOCSTRING]

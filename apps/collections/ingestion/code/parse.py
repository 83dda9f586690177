"""Parse a source file with tree-sitter into its ``CodeStructure``.

The tree is searched by one query in C; Python sees only the nodes that matter, about one in twenty. Nothing here
recurses, so deep nesting costs time, never the stack; what runs away is ended from outside (see ``isolation``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from apps.collections.ingestion.code.describe import MAX_NAME, Described, describe, node_text
from apps.collections.ingestion.code.docs import comment_text, doc_comment, python_docstring
from apps.collections.ingestion.code.imports import imported
from apps.collections.ingestion.code.leading import Leading
from apps.collections.ingestion.code.offsets import Offsets
from apps.collections.ingestion.code.programming_languages import LANGUAGES, grammar_of
from apps.collections.ingestion.code.queries import QUERIES
from apps.collections.ingestion.code.types import (
    CLASS_KINDS,
    Call,
    CodeImport,
    CodeStructure,
    Symbol,
    SymbolKind,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Query

MAX_SIGNATURE = 400
_INDENT = 400  # bytes of indentation looked at
_WRAP, _DEF, _VARIABLE, _INNER = 0, 1, 2, 3
_LONG_CALLEE = 160
_LAST_NAME = re.compile(r"([\w$]+)\W*\Z")
_SIMPLE_CALLEE = re.compile(r"[\w$.:>#?!-]+\Z")
_GENERIC = re.compile(r"::<.*|<.*", re.DOTALL)
_TAIL = re.compile(r"[ \t]*[;,]?")

_Item = tuple[int, int, int, str, "Node"]  # start, -end, rank, capture, node


def structure_of(text: str, language: str) -> CodeStructure:
    """Parse a file.

    Args:
        text: the file's text with newlines as ``\\n``.
        language: one of ``LANGUAGES``.

    Returns:
        Its structure; where the text is not of this language, or broken, whatever could be recognised.
    """
    from tree_sitter import Parser, QueryCursor

    data = text.encode("utf-8", errors="replace")
    tree = Parser(grammar_of(language)).parse(data)
    captures = QueryCursor(_query(language)).captures(tree.root_node)
    return _Builder(text, data, language, captures).build(tree.root_node)


@lru_cache(maxsize=len(LANGUAGES))
def _query(language: str) -> Query:
    from tree_sitter import Query

    return Query(grammar_of(language), QUERIES[language])


class _Scope:
    """What stands open while the sorted nodes are walked: a symbol, or a wrapper that waits for its definition."""

    __slots__ = ("end", "start", "symbol", "wrapper")

    def __init__(self, start: int, end: int, symbol: int, wrapper: Node | None = None) -> None:
        self.start, self.end, self.symbol, self.wrapper = start, end, symbol, wrapper


class _Builder:
    """Walks the captured nodes in order and keeps the stack of what is open."""

    def __init__(self, text: str, data: bytes, language: str, captures: dict[str, list[Node]]) -> None:
        self._text, self._data, self._language = text, data, language
        self._separator = LANGUAGES[language].separator
        self._captures = captures
        self._offsets = Offsets(text, data)
        self._leading = Leading(
            data, captures.get("note", []), captures.get("mark", []), is_rust=language == "rust"
        )
        self._symbols: list[Symbol] = []
        self._imports: list[CodeImport] = []
        self._calls: list[Call] = []
        self._seen: set[tuple[int, str]] = set()

    def build(self, root: Node) -> CodeStructure:
        """Walk and return the finished structure."""
        stack = [_Scope(0, len(self._data) + 1, -1)]
        for start, negative_end, rank, capture, node in self._items():
            while stack[-1].end <= start:
                stack.pop()
            owner = stack[-1].symbol
            if rank == _WRAP:
                stack.append(_Scope(start, -negative_end, owner, node))
            elif rank == _INNER:
                self._note(capture, node, owner)
            elif (described := self._described(node, capture, stack)) is not None:
                self._add(node, described, stack)
        package = self._captures.get("package", [])
        return CodeStructure(
            language=self._language,
            symbols=tuple(self._symbols),
            imports=tuple(self._imports),
            calls=tuple(self._calls),
            cuts=tuple(self._cuts()),
            docstring=self._module_docstring(root),
            package=node_text(package[0])[:MAX_NAME] if package else "",
            has_errors=root.has_error,
        )

    def _items(self) -> list[_Item]:
        items: list[_Item] = []
        for capture, nodes in self._captures.items():
            if capture.startswith("def."):
                rank = _VARIABLE if capture == "def.variable" else _DEF
            elif capture == "wrap":
                rank = _WRAP
            elif capture in ("call", "invoke", "macro", "import"):
                rank = _INNER
            else:
                continue
            items += [(n.start_byte, -n.end_byte, rank, capture, n) for n in nodes]
        items.sort(key=lambda item: item[:3])
        return items

    def _described(self, node: Node, capture: str, stack: list[_Scope]) -> Described | None:
        top = stack[-1]
        kind = SymbolKind(capture.removeprefix("def."))
        if kind == SymbolKind.VARIABLE and top.wrapper is None and top.symbol >= 0:
            return None  # the same node is a function already
        described = describe(node, kind, self._language)
        return described if described is not None and described.name else None

    def _add(self, node: Node, described: Described, stack: list[_Scope]) -> None:
        parent = stack[-1].symbol
        start, end = node.start_byte, node.end_byte
        decorators = list(described.decorators)
        inner = node
        for scope in reversed(stack):
            wrapper = scope.wrapper
            if wrapper is None or all(child.id != inner.id for child in wrapper.children):
                break
            # The first definition inside takes its wrapper along; the next one stands for itself.
            start = scope.start
            if not self._data[node.end_byte : scope.end].strip(b" \t\n;,)"):
                end = max(end, scope.end)
            decorators = _decorators(wrapper) + decorators
            scope.wrapper, inner = None, wrapper
        lead = self._leading.before(start)
        start = lead.start
        char_start, char_end = self._offsets.char(start), self._offsets.char(end)
        tail = _TAIL.match(self._text, char_end)
        char_end = tail.end() if tail is not None else char_end
        kind, qualified = self._qualified(described, parent)
        header_end = described.body if described.body is not None else node.end_byte
        docstring = (
            python_docstring(node)
            if self._language == "python" and kind != SymbolKind.VARIABLE
            else doc_comment(lead.comments, self._language)
        )
        self._symbols.append(
            Symbol(
                name=described.name,
                qualified_name=qualified,
                kind=kind,
                char_start=char_start,
                char_end=char_end,
                line_start=self._offsets.line(char_start),
                line_end=self._offsets.line(max(char_start, char_end - 1)),
                signature=self._signature(node.start_byte, header_end),
                docstring=docstring,
                decorators=(*lead.marks, *decorators),
                bases=described.bases,
                parent=parent,
            )
        )
        stack.append(_Scope(node.start_byte, node.end_byte, len(self._symbols) - 1))

    def _qualified(self, described: Described, parent: int) -> tuple[SymbolKind, str]:
        kind = described.kind
        parts = [described.name]
        if described.scope:
            parts.insert(0, described.scope)
        if parent >= 0:
            above = self._symbols[parent]
            parts.insert(0, above.qualified_name)
            if kind == SymbolKind.FUNCTION and above.kind in CLASS_KINDS:
                kind = SymbolKind.METHOD
        if kind == SymbolKind.FUNCTION and described.scope:
            kind = SymbolKind.METHOD
        return kind, self._separator.join(parts)

    def _signature(self, start: int, end: int) -> str:
        head = self._data[start : min(end, start + 4 * MAX_SIGNATURE)].decode(errors="ignore")
        head = " ".join(head.split())
        return head.removesuffix("{").rstrip().removesuffix("=>").rstrip(" :=")[:MAX_SIGNATURE]

    def _note(self, capture: str, node: Node, owner: int) -> None:
        line = node.start_point[0] + 1
        if capture == "import":
            for module, name, alias in imported(node, self._language):
                self._imports.append(CodeImport(module, name, alias, line, owner))
            return
        callee = self._callee(capture, node)
        if callee and (owner, callee) not in self._seen:
            self._seen.add((owner, callee))
            self._calls.append(Call(callee, line, owner))

    def _callee(self, capture: str, node: Node) -> str:
        """Write a callee as the source does; what is not a plain path keeps its last name behind a ``?``."""
        start, end = node.start_byte, node.end_byte
        if capture == "invoke":
            name = node.child_by_field_name("name")
            end = name.end_byte if name is not None else end
        # The ends of long chains only: taken whole, a chain of n calls would cost n squared.
        raw = self._data[max(start, end - _LONG_CALLEE) : end].decode(errors="ignore")
        raw = "".join(raw.split())
        if raw.startswith("super()."):
            raw = "super." + raw.removeprefix("super().")
        plain = _GENERIC.sub("", raw) if self._language in ("rust", "java", "cpp") else raw
        if end - start <= _LONG_CALLEE and _SIMPLE_CALLEE.match(plain):
            callee = plain.replace("?.", ".").replace("->", ".")
        elif (last := _LAST_NAME.search(raw)) is not None and not raw.endswith((")", "]", "}")):
            callee = f"?.{last.group(1)}"
        else:
            return ""
        if callee[:1].isdigit() or not any(ch.isalpha() or ch in "_$" for ch in callee):
            return ""
        return f"{callee}!" if capture == "macro" else callee

    def _module_docstring(self, root: Node) -> str:
        if self._language == "python":
            return python_docstring(root)
        return comment_text(self._leading.opening())

    def _cuts(self) -> Iterator[tuple[int, int]]:
        """Yield where statements, or the comments above them, begin their line, with their nesting."""
        spans = sorted((n.start_byte, n.end_byte) for n in self._captures.get("stmt", []))
        ends: list[int] = []
        last = -1
        for start, end in spans:
            while ends and ends[-1] <= start:
                ends.pop()
            near = self._data[max(0, start - _INDENT) : start]
            begin = start - len(near) + near.rfind(b"\n") + 1
            if (
                begin > last
                and not self._data[begin:start].strip()
                and self._leading.before(start).start == start
            ):
                yield self._offsets.char(begin), len(ends)
                last = begin
            ends.append(end)


def _decorators(wrapper: Node) -> list[str]:
    return [node_text(c)[:MAX_NAME] for c in wrapper.children if c.type == "decorator"]

"""What a definition node says of itself: name, bases, decorators, where its body begins; per language where they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.collections.ingestion.code.types import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME = 200
_MAX_DEPTH = 40  # of declarators around a C name; real ones have three
_TYPE_ARGUMENTS = re.compile(r"[<\[({].*", re.DOTALL)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Described:
    """A definition as its node tells it; ``body`` is the byte offset where the header ends, None without a body."""

    name: str
    kind: SymbolKind
    body: int | None = None
    bases: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    scope: str = ""


def describe(node: Node, kind: SymbolKind, language: str) -> Described | None:
    """Describe a definition, None when it has no name of its own (an anonymous struct, a local type)."""
    return _DESCRIBERS[language](node, kind)


def node_text(node: Node | None) -> str:
    """Decode a node's text on one line, without blanks at its ends."""
    if node is None or node.text is None:
        return ""
    return _SPACES.sub(" ", node.text.decode(errors="replace")).strip()


def _name(node: Node | None) -> str:
    return node_text(node)[:MAX_NAME]


def _body(node: Node) -> int | None:
    body = node.child_by_field_name("body")
    return body.start_byte if body is not None else None


def _bare(text: str) -> str:
    return _TYPE_ARGUMENTS.sub("", text).strip()[:MAX_NAME]


def _bases(nodes: Iterator[Node]) -> tuple[str, ...]:
    return tuple(base for base in (_bare(node_text(node)) for node in nodes) if base)


def _python(node: Node, kind: SymbolKind) -> Described | None:
    if kind == SymbolKind.VARIABLE:
        left = node.named_children[0].child_by_field_name("left")
        if left is None or left.type != "identifier":
            return None
        return Described(_name(left), kind)
    bases: tuple[str, ...] = ()
    if (supers := node.child_by_field_name("superclasses")) is not None:
        bases = _bases(
            child
            for child in supers.named_children
            if child.type not in ("keyword_argument", "comment", "list_splat", "dictionary_splat")
        )
    return Described(_name(node.child_by_field_name("name")), kind, _body(node), bases)


def _javascript(node: Node, kind: SymbolKind) -> Described | None:
    decorators = tuple(node_text(c)[:MAX_NAME] for c in node.children if c.type == "decorator")
    holder = (
        node.child_by_field_name("value") or node.child_by_field_name("right")
        if node.type
        in (
            "variable_declarator",
            "assignment_expression",
            "pair",
            "field_definition",
            "public_field_definition",
        )
        else node
    )
    named = next(
        (
            found
            for field in ("name", "left", "key", "property")
            if (found := node.child_by_field_name(field)) is not None
        ),
        None,
    )
    if named is not None and named.type in ("object_pattern", "array_pattern"):
        return None
    name = _name(named).strip("'\"`") if named is not None else "default"
    for prefix in ("module.exports.", "exports."):
        name = name.removeprefix(prefix)
    scope, _, last = name.replace(".prototype.", ".").rpartition(".")
    if last == "exports":
        scope, last = "", "default"
    bases = _bases(_heritage(holder)) if holder is not None else ()
    body = _body(holder) if holder is not None else None
    if scope in ("this", "self"):
        scope = ""
    return Described(last, kind, body, bases, decorators, scope)


def _heritage(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "class_heritage":
            clauses = [c for c in child.named_children if c.type in ("extends_clause", "implements_clause")]
            if not clauses:
                yield from child.named_children
            for clause in clauses:
                yield from (c for c in clause.named_children if c.type != "type_arguments")
        elif child.type == "extends_type_clause":
            yield from child.named_children


def _go(node: Node, kind: SymbolKind) -> Described | None:
    name = _name(node.child_by_field_name("name"))
    if node.type in ("type_spec", "type_alias"):
        inner = node.child_by_field_name("type")
        shape = inner.type if inner is not None else ""
        kind = {"struct_type": SymbolKind.STRUCT, "interface_type": SymbolKind.INTERFACE}.get(
            shape, SymbolKind.TYPE
        )
        bases = _bases(_embedded(inner)) if inner is not None else ()
        fields = inner.named_children[0] if inner is not None and inner.named_children else None
        return Described(name, kind, fields.start_byte if fields else None, bases)
    scope = ""
    if (receiver := node.child_by_field_name("receiver")) is not None:
        words = _bare(node_text(receiver).strip("()")).split()
        scope = words[-1].lstrip("*") if words else ""
    return Described(name, kind, _body(node), scope=scope)


def _embedded(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "field_declaration_list":
            for field in child.named_children:
                kind = field.child_by_field_name("type")
                if field.child_by_field_name("name") is None and kind is not None:
                    yield kind
        elif child.type == "type_elem" and child.named_child_count == 1:
            yield from child.named_children


def _rust(node: Node, kind: SymbolKind) -> Described | None:
    if kind == SymbolKind.IMPL:
        name = _bare(node_text(node.child_by_field_name("type")).lstrip("&"))
        trait = node.child_by_field_name("trait")
        of_trait = (_bare(node_text(trait)),) if trait is not None else ()
        return Described(name, kind, _body(node), of_trait)
    bases: tuple[str, ...] = ()
    if (bounds := node.child_by_field_name("bounds")) is not None:
        bases = _bases(c for c in bounds.named_children if c.type != "lifetime")
    return Described(_name(node.child_by_field_name("name")), kind, _body(node), bases)


def _java(node: Node, kind: SymbolKind) -> Described | None:
    decorators: list[str] = []
    bases: list[str] = []
    for child in node.named_children:
        if child.type == "modifiers":
            decorators += [node_text(c)[:MAX_NAME] for c in child.named_children if "annotation" in c.type]
        elif child.type in ("superclass", "super_interfaces", "extends_interfaces"):
            listed = [
                grand
                for c in child.named_children
                for grand in (c.named_children if c.type == "type_list" else [c])
            ]
            bases += _bases(iter(listed))
    name = _name(node.child_by_field_name("name"))
    return Described(name, kind, _body(node), tuple(bases), tuple(decorators))


def _c(node: Node, kind: SymbolKind) -> Described | None:
    if node.type in ("preproc_def", "preproc_function_def", "namespace_definition", "alias_declaration"):
        return Described(_name(node.child_by_field_name("name")), kind, _body(node))
    if node.type == "type_definition":
        named = _declared(node.child_by_field_name("declarator"))
        return Described(_name(named), kind) if named is not None else None
    if node.type in ("function_definition", "declaration"):
        declarator = node.child_by_field_name("declarator")
        if node.type == "declaration" and declarator is not None:
            declarator = declarator.child_by_field_name("declarator")
        named = _declared(declarator)
        if named is None:
            return None
        scope, _, last = _name(named).rpartition("::")
        scope = "::".join(_bare(part) for part in scope.split("::")) if scope else ""
        return Described(last.strip(), kind, _body(node), scope=scope)
    bases: list[str] = []
    for child in node.named_children:
        if child.type == "base_class_clause":
            bases += _bases(
                c
                for c in child.named_children
                if c.type in ("type_identifier", "template_type", "qualified_identifier")
            )
    return Described(_name(node.child_by_field_name("name")), kind, _body(node), tuple(bases))


def _declared(node: Node | None) -> Node | None:
    """Find the name inside a C declarator (pointers, references, arrays and parameter lists stand around it)."""
    for _ in range(_MAX_DEPTH):
        if node is None or node.type.endswith("identifier") or node.type == "destructor_name":
            return node
        if node.type in ("operator_name", "operator_cast"):
            return node
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in node.named_children if "declarator" in c.type), None)
        node = inner
    return None


_DESCRIBERS: dict[str, Callable[[Node, SymbolKind], Described | None]] = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "cpp": _c,
}

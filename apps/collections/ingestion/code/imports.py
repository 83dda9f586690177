"""Imports of a source file, language by language, in one form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from apps.collections.ingestion.code.describe import MAX_NAME, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

Imported = tuple[str, str, str]  # module, name, alias; see ``CodeImport``
_MAX_DEPTH = 60  # of nested use lists


def imported(node: Node, language: str) -> Iterator[Imported]:
    """Yield what one import statement brings in."""
    for module, name, alias in _READERS[language](node):
        yield module[:MAX_NAME], name[:MAX_NAME], alias[:MAX_NAME]


def _python(node: Node) -> Iterator[Imported]:
    if node.type == "future_import_statement":
        return
    source = node.child_by_field_name("module_name")
    module = node_text(source).replace(" ", "")
    if any(child.type == "wildcard_import" for child in node.named_children):
        yield module, "*", ""
        return
    for child in node.children_by_field_name("name"):
        name = node_text(child.child_by_field_name("name")) or node_text(child)
        alias = node_text(child.child_by_field_name("alias"))
        name = name.replace(" ", "")
        if source is None:
            # ``import a.b`` binds ``a``; calls then say ``a.b.f``.
            yield name, "", alias or name
        else:
            yield module, name, alias or name


def _unquoted(node: Node | None) -> str:
    return node_text(node).strip("'\"`")


def _javascript(node: Node) -> Iterator[Imported]:
    if node.type == "variable_declarator":
        yield from _required(node)
        return
    module = _unquoted(node.child_by_field_name("source"))
    found = False
    for child in node.named_children:
        if child.type == "import_require_clause":
            module = _unquoted(child.child_by_field_name("source"))
            yield module, "", node_text(child.named_children[0])
            found = True
        elif child.type in ("import_clause", "export_clause"):
            is_export = child.type == "export_clause"
            for module_name, name, alias in _clause(module, child):
                found = True
                yield module_name, name, "" if is_export else alias
    if not found and module:
        yield module, "*" if node.type == "export_statement" else "", ""


def _clause(module: str, node: Node) -> Iterator[Imported]:
    for child in node.named_children:
        if child.type == "identifier":
            yield module, "default", node_text(child)
        elif child.type == "namespace_import":
            yield module, "", node_text(child.named_children[0]) if child.named_children else ""
        elif child.type == "named_imports":
            yield from _clause(module, child)
        elif child.type in ("import_specifier", "export_specifier"):
            name = node_text(child.child_by_field_name("name"))
            yield module, name, node_text(child.child_by_field_name("alias")) or name


def _required(node: Node) -> Iterator[Imported]:
    value = node.child_by_field_name("value")
    arguments = value.child_by_field_name("arguments") if value is not None else None
    if arguments is None or not arguments.named_children:
        return
    module = _unquoted(arguments.named_children[0])
    named = node.child_by_field_name("name")
    if named is None or named.type != "object_pattern":
        yield module, "", node_text(named)
        return
    for child in named.named_children:
        if child.type == "shorthand_property_identifier_pattern":
            yield module, node_text(child), node_text(child)
        elif child.type == "pair_pattern":
            name = node_text(child.child_by_field_name("key"))
            yield module, name, node_text(child.child_by_field_name("value"))


def _go(node: Node) -> Iterator[Imported]:
    module = _unquoted(node.child_by_field_name("path"))
    alias = node_text(node.child_by_field_name("name"))
    if alias == ".":
        yield module, "*", ""
    else:
        yield module, "", "" if alias == "_" else alias or module.rpartition("/")[2]


def _rust(node: Node) -> Iterator[Imported]:
    if node.type == "mod_item":
        name = node_text(node.child_by_field_name("name"))
        yield f"self::{name}", "", name
    elif node.type == "extern_crate_declaration":
        name = node_text(node.child_by_field_name("name"))
        yield name, "", node_text(node.child_by_field_name("alias")) or name
    elif (argument := node.child_by_field_name("argument")) is not None:
        yield from _rust_use(argument, "", "", 0)


def _rust_use(node: Node, prefix: str, alias: str, depth: int) -> Iterator[Imported]:
    def joined(tail: str) -> str:
        return f"{prefix}::{tail}" if prefix and tail else prefix or tail

    if depth > _MAX_DEPTH:
        return
    if node.type == "use_as_clause":
        path = node.child_by_field_name("path")
        if path is not None:
            alias = node_text(node.child_by_field_name("alias"))
            yield from _rust_use(path, prefix, alias, depth + 1)
    elif node.type == "scoped_use_list":
        inner = joined(node_text(node.child_by_field_name("path")))
        if (listed := node.child_by_field_name("list")) is not None:
            yield from _rust_use(listed, inner, "", depth + 1)
    elif node.type == "use_list":
        for child in node.named_children:
            yield from _rust_use(child, prefix, "", depth + 1)
    elif node.type == "use_wildcard":
        yield joined(node_text(node).removesuffix("*").removesuffix("::")), "*", ""
    elif node.type == "self":
        yield prefix, "", alias or prefix.rpartition("::")[2]
    else:
        module, _, name = joined(node_text(node)).rpartition("::")
        yield (module, name, alias or name) if module else (name, "", alias or name)


def _java(node: Node) -> Iterator[Imported]:
    path = node_text(node.named_children[0]) if node.named_children else ""
    if any(child.type == "asterisk" for child in node.named_children):
        yield path, "*", ""
        return
    module, _, name = path.rpartition(".")
    yield module, name, name


def _c(node: Node) -> Iterator[Imported]:
    path = node_text(node.child_by_field_name("path")).strip('<>"')
    if path:
        yield path, "", ""


_READERS: dict[str, Callable[[Node], Iterator[Imported]]] = {
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

"""The code graph of one file: what it defines, imports, calls and inherits, as written. Resolution is another module's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.collections.ingestion.code.modules import (
    full_name,
    import_key,
    joined_import,
    last_part,
    module_name,
)
from apps.collections.ingestion.code.types import CALLABLE_KINDS, CodeStructure, SymbolKind


class EdgeKind(StrEnum):
    """What leads from one definition to another."""

    DEFINES = "defines"
    IMPORTS = "imports"
    CALLS = "calls"
    INHERITS = "inherits"


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One edge, as its file says it.

    Attributes:
        path: the file.
        line: from 1.
        kind: of ``EdgeKind``.
        source: qualified name inside the file, "" for the file itself.
        written: the target as the source text has it (``self.run``); of an import ``module`` or ``module:name``.
        name: the last part of the target, by which its definition is looked up.
        symbol: index of the source in the file's symbols, -1 for the file itself.
    """

    path: str
    line: int
    kind: EdgeKind
    source: str
    written: str
    name: str
    symbol: int = -1


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file of a collection with its structure."""

    path: str
    structure: CodeStructure

    @property
    def language(self) -> str:
        """Name the language."""
        return self.structure.language

    @property
    def module(self) -> str:
        """Name the module as imports do."""
        return module_name(self.path, self.structure.language, self.structure.package)

    def full_name(self, qualified: str) -> str:
        """Name a symbol of this file as the collection knows it; "" gives the module."""
        return full_name(self.module, qualified, self.structure.language)


def file_edges(path: str, structure: CodeStructure) -> list[Edge]:
    """List the edges of a file in the order of their lines.

    ``defines`` leads from the enclosing definition to each symbol (impl blocks and namespaces open scopes, they define
    nothing); an import gives one edge to its module and one to each name taken from it.
    """
    symbols = structure.symbols

    def named(index: int) -> str:
        return symbols[index].qualified_name if index >= 0 else ""

    # What an import renames is looked up by the name that it has where it is defined.
    renamed = {
        i.alias: i.name or import_key(i.module, structure.language)
        for i in structure.imports
        if i.alias and i.name not in ("*", "default")
    }
    edges: set[Edge] = set()
    for index, symbol in enumerate(symbols):
        if symbol.kind not in (SymbolKind.IMPL, SymbolKind.MODULE):
            edges.add(
                Edge(
                    path,
                    symbol.line_start,
                    EdgeKind.DEFINES,
                    named(symbol.parent),
                    symbol.qualified_name,
                    symbol.name,
                    symbol.parent,
                )
            )
        if symbol.kind in CALLABLE_KINDS:
            continue
        for base in symbol.bases:
            edges.add(
                Edge(
                    path,
                    symbol.line_start,
                    EdgeKind.INHERITS,
                    symbol.qualified_name,
                    base,
                    renamed.get(base) or last_part(base),
                    index,
                )
            )
    for item in structure.imports:
        targets = [(item.module, import_key(item.module, structure.language))]
        if item.name not in ("", "*"):
            name = item.alias if item.name == "default" else item.name
            targets.append((joined_import(item.module, name or item.name), name))
        for written, name in targets:
            if name:
                edges.add(
                    Edge(path, item.line, EdgeKind.IMPORTS, named(item.symbol), written, name, item.symbol)
                )
    for call in structure.calls:
        if name := renamed.get(call.callee.removesuffix("!")) or last_part(call.callee):
            edges.add(
                Edge(path, call.line, EdgeKind.CALLS, named(call.symbol), call.callee, name, call.symbol)
            )
    return sorted(edges)

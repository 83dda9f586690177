"""What is known of a source file: symbols, imports, calls and where it may be cut. Plain values with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Any

STRUCTURE_VERSION = 1


class SymbolKind(StrEnum):
    """What a definition is; the first group holds code, the second holds members."""

    FUNCTION = "function"
    METHOD = "method"
    MACRO = "macro"
    CLASS = "class"
    INTERFACE = "interface"
    STRUCT = "struct"
    ENUM = "enum"
    TYPE = "type"
    IMPL = "impl"
    MODULE = "module"
    VARIABLE = "variable"


CALLABLE_KINDS = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.MACRO})
CLASS_KINDS = frozenset(
    {
        SymbolKind.CLASS,
        SymbolKind.INTERFACE,
        SymbolKind.STRUCT,
        SymbolKind.ENUM,
        SymbolKind.TYPE,
        SymbolKind.IMPL,
    }
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One definition.

    Attributes:
        name: as written, ``bar``.
        qualified_name: inside its file, ``Foo.bar`` (``Foo::bar`` in Rust and C++).
        kind: one of ``SymbolKind``.
        char_start: first character, doc comment and decorators included.
        char_end: just past the last character.
        line_start: from 1, of ``char_start``.
        line_end: from 1, inclusive.
        signature: the header on one line, without body.
        docstring: docstring or doc comment, without its marks.
        decorators: decorators, annotations or attributes, as written.
        bases: what it extends or implements, as written without type arguments.
        parent: index of the enclosing symbol in ``CodeStructure.symbols``, -1 at the top.
    """

    name: str
    qualified_name: str
    kind: SymbolKind
    char_start: int
    char_end: int
    line_start: int
    line_end: int
    signature: str = ""
    docstring: str = ""
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    parent: int = -1


@dataclass(frozen=True, slots=True)
class CodeImport:
    """One imported name.

    Attributes:
        module: as written: ``a.b``, ``..x``, ``./util``, ``java.util``, ``stdio.h``.
        name: what is taken from it; "" for the module itself, ``*`` for all of it.
        alias: the name it is bound to in this file, "" if to none.
        line: from 1.
        symbol: index of the symbol that it stands in, -1 at the top.
    """

    module: str
    name: str
    alias: str
    line: int
    symbol: int = -1


@dataclass(frozen=True, slots=True)
class Call:
    """The first call of a callee inside a symbol.

    Attributes:
        callee: as written without arguments: ``self.run``, ``np.array``, ``ns::make``.
        line: from 1.
        symbol: index of the innermost symbol around it, -1 at the top.
    """

    callee: str
    line: int
    symbol: int = -1


@dataclass(frozen=True, slots=True)
class CodeStructure:
    """A parsed source file; all offsets count characters of its text.

    Attributes:
        language: name of a ``Language``.
        symbols: in the order of their first characters; a parent stands before its members.
        imports: in order.
        calls: in order, each callee once per symbol.
        cuts: (offset, depth) where a statement, member or item begins its line, ascending.
        docstring: of the module.
        package: what a Java or Go file says it belongs to.
        has_errors: the grammar did not understand some of it.
    """

    language: str
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[CodeImport, ...] = ()
    calls: tuple[Call, ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    docstring: str = ""
    package: str = ""
    has_errors: bool = False

    def names(self) -> tuple[str, ...]:
        """List the names that the file defines at its top."""
        return tuple(dict.fromkeys(s.name for s in self.symbols if s.parent == -1 and s.name))


def structure_to_json(structure: CodeStructure) -> dict[str, Any]:
    """Pack a structure for the wire and for a page's layout."""
    return {
        "version": STRUCTURE_VERSION,
        "language": structure.language,
        "symbols": [astuple(symbol) for symbol in structure.symbols],
        "imports": [astuple(item) for item in structure.imports],
        "calls": [astuple(call) for call in structure.calls],
        "cuts": structure.cuts,
        "docstring": structure.docstring,
        "package": structure.package,
        "has_errors": structure.has_errors,
    }


def structure_from_json(data: Mapping[str, Any]) -> CodeStructure:
    """Unpack a structure.

    Raises:
        ValueError: it was packed by another version; parse the file again.
    """
    if data.get("version") != STRUCTURE_VERSION:
        raise ValueError(f"The code structure has version {data.get('version')}; reparse the file.")
    return CodeStructure(
        language=str(data["language"]),
        symbols=tuple(_symbol(item) for item in data["symbols"]),
        imports=tuple(CodeImport(*item) for item in data["imports"]),
        calls=tuple(Call(*item) for item in data["calls"]),
        cuts=tuple((offset, depth) for offset, depth in data["cuts"]),
        docstring=str(data["docstring"]),
        package=str(data["package"]),
        has_errors=bool(data["has_errors"]),
    )


def _symbol(item: Any) -> Symbol:
    name, qualified, kind, start, end, first, last, signature, doc, decorators, bases, parent = item
    return Symbol(
        name=name,
        qualified_name=qualified,
        kind=SymbolKind(kind),
        char_start=start,
        char_end=end,
        line_start=first,
        line_end=last,
        signature=signature,
        docstring=doc,
        decorators=tuple(decorators),
        bases=tuple(bases),
        parent=parent,
    )

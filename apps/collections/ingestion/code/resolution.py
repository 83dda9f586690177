"""Find what the edges of a code graph point to.

The answer for an edge depends on two things only: the edge's own file, and all definitions in the collection that carry the
edge's last name. So a changed file concerns its own edges and those whose name it provides or provided, no others; and a
store can resolve with an index on names, without holding a collection in memory.

Rules, in order: what the scope and the file define; what imports bind; the package (Go, Java) or folder; for C, C++ and
Rust a name that only one definition has. A call on a receiver of unknown type is matched by name alone and marked
ambiguous, as is everything with several candidates.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from apps.collections.ingestion.code.edges import CodeFile, Edge, EdgeKind
from apps.collections.ingestion.code.modules import (
    import_rank,
    joined_module,
    last_part,
    module_key,
    split_import,
)
from apps.collections.ingestion.code.programming_languages import LANGUAGES, family_of
from apps.collections.ingestion.code.types import CLASS_KINDS, CodeImport, SymbolKind

_OWN = frozenset({"self", "this", "cls", "Self", "super"})
_UNKNOWN = "?"
_BY_PACKAGE = frozenset({"go", "java"})  # a name is seen from all files of its package
_BY_LINKER = frozenset({"c", "rust"})  # a name that only one definition has is that definition
_SEES_MEMBERS = frozenset({"java", "c"})  # a method names its class's other members without a receiver
_PARTS = re.compile(r"\.|::")

Lookup = Callable[[str], Sequence["Definition"]]


@dataclass(frozen=True, slots=True, order=True)
class Definition:
    """A place that an edge may point to; ``qualified`` is "" for a whole file."""

    path: str
    qualified: str
    module: str
    family: str
    kind: str
    full: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What an edge points to: nothing in this collection (None), one definition, or several that fit.

    ``is_ambiguous`` with a target says that it fits by name alone.
    """

    target: Definition | None = None
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedEdge:
    """An edge with what it points to."""

    edge: Edge
    resolution: Resolution


_NOTHING = Resolution()
_SEVERAL = Resolution(None, is_ambiguous=True)


def definitions_of(file: CodeFile) -> dict[str, list[Definition]]:
    """List by name what a file provides."""
    family, module = family_of(file.language), file.module
    found: dict[str, list[Definition]] = defaultdict(list)
    for symbol in file.structure.symbols:
        if symbol.kind != SymbolKind.IMPL:
            full = file.full_name(symbol.qualified_name)
            found[symbol.name].append(
                Definition(file.path, symbol.qualified_name, module, family, str(symbol.kind), full)
            )
    if key := module_key(file.path, file.language, file.structure.package):
        found[key].append(Definition(file.path, "", module, family, "file", module))
    return found


def file_resolve(file: CodeFile, edges: Iterable[Edge], lookup: Lookup) -> list[ResolvedEdge]:
    """Resolve edges of one file.

    Args:
        file: where they stand.
        edges: some or all of ``file_edges(file)``.
        lookup: gives the definitions of a name; asked only for the edges' own names.
    """
    resolver = _Resolver(file, lookup)
    return [ResolvedEdge(edge, resolver.resolve(edge)) for edge in edges]


class _Resolver:
    """Answers for the edges of one file."""

    def __init__(self, file: CodeFile, lookup: Lookup) -> None:
        self._file, self._lookup = file, lookup
        self._family = family_of(file.language)
        self._separator = LANGUAGES[file.language].separator
        self._known: dict[str, list[Definition]] = {}
        self._bound: dict[str, list[CodeImport]] = defaultdict(list)
        self._stars: list[CodeImport] = []
        self._base_names: dict[str, frozenset[str]] = {}
        for item in file.structure.imports:
            if item.name == "*":
                self._stars.append(item)
            elif item.alias:
                self._bound[item.alias].append(item)

    def resolve(self, edge: Edge) -> Resolution:
        """Resolve one edge."""
        if edge.kind == EdgeKind.DEFINES:
            return self._pick([d for d in self._own(edge.name) if d.qualified == edge.written])
        if edge.kind == EdgeKind.IMPORTS:
            return self._imported(edge)
        if edge.kind == EdgeKind.INHERITS:
            found = self._reference(edge, CLASS_KINDS)
            # A class never inherits from itself: a base of its own name is another file's.
            is_self = found.target is not None and (
                (found.target.path, found.target.qualified) == (edge.path, edge.source)
            )
            return _NOTHING if is_self else found
        return self._reference(edge, None)

    def _candidates(self, name: str) -> list[Definition]:
        if name not in self._known:
            self._known[name] = [d for d in self._lookup(name) if d.family == self._family]
        return self._known[name]

    def _own(self, name: str) -> list[Definition]:
        return [d for d in self._candidates(name) if d.path == self._file.path]

    def _imported(self, edge: Edge) -> Resolution:
        module, name = split_import(edge.written)
        if not name:
            files = [d for d in self._candidates(edge.name) if not d.qualified]
            return self._pick(files, module, is_package=self._family in _BY_PACKAGE)
        return self._first([self._member(module, name, edge.name, None)])

    def _member(
        self, module: str, qualified: str, name: str, kinds: frozenset[SymbolKind] | None
    ) -> Resolution | None:
        """Find a name in a module that an import statement names: a symbol of it, or a module below it."""
        candidates = [d for d in self._candidates(name) if _is_kind(d, kinds)]
        symbols = [d for d in candidates if d.qualified == qualified]
        if (found := self._pick(symbols, module)) != _NOTHING:
            return found
        head, _, rest = qualified.partition(self._separator)
        below = joined_module(module, head, self._family)
        found = self._pick([d for d in candidates if d.qualified == rest], below)
        return found if found != _NOTHING else None

    def _reference(self, edge: Edge, kinds: frozenset[SymbolKind] | None) -> Resolution:
        parts = [part for part in _PARTS.split(edge.written.removesuffix("!")) if part]
        if not parts or parts == ["super"]:
            return _NOTHING
        if parts[0] in _OWN and len(parts) == 2:
            return self._own_member(edge)
        if parts[0] == _UNKNOWN or parts[0] in _OWN:
            return self._by_name(edge.name)
        return self._bare(edge, kinds) if len(parts) == 1 else self._dotted(edge, parts, kinds)

    def _bare(self, edge: Edge, kinds: frozenset[SymbolKind] | None) -> Resolution:
        """Resolve a name without receiver: scopes, imports, package, and by name where a linker would."""
        candidates = [d for d in self._candidates(edge.name) if d.qualified and _is_kind(d, kinds)]
        own = {d.qualified: d for d in candidates if d.path == self._file.path}
        for scope in self._scopes(edge.symbol):
            qualified = f"{scope}{self._separator}{edge.name}" if scope else edge.name
            if qualified in own:
                return Resolution(own[qualified])
        if bound := self._bound.get(_plain(edge.written)):
            return self._first(
                self._member(item.module, edge.name if item.name else "", edge.name, kinds) for item in bound
            )
        if self._stars:
            found = self._first(
                self._member(item.module, edge.name, edge.name, kinds) for item in self._stars
            )
            if found != _NOTHING:
                return found
        if self._family in _BY_PACKAGE:
            near = [d for d in candidates if d.module == self._file.module]
            if near := [d for d in near if d.qualified == edge.name]:
                return self._pick(near)
            is_call = self._family == "java" and kinds is None
            return self._own_member(edge) if is_call else _NOTHING
        return self._pick(candidates) if self._family in _BY_LINKER else _NOTHING

    def _dotted(self, edge: Edge, parts: list[str], kinds: frozenset[SymbolKind] | None) -> Resolution:
        """Resolve ``a.b.c``: through what ``a`` or ``a.b`` is bound to, or as a qualified name near by."""
        for size in range(len(parts) - 1, 0, -1):
            if bound := self._bound.get(self._joined(parts[:size])):
                rest = parts[size:]
                return self._first(self._through(item, rest, edge, kinds) for item in bound)
        written = self._joined(parts)
        candidates = [d for d in self._candidates(edge.name) if d.qualified and _is_kind(d, kinds)]
        own = {d.qualified: d for d in candidates if d.path == self._file.path}
        for scope in self._scopes(edge.symbol):
            qualified = self._joined([scope, *parts]) if scope else written
            if qualified in own:
                return Resolution(own[qualified])
        ends = f"{self._separator}{written}"
        fits = [d for d in candidates if d.qualified == written or d.full.endswith(ends)]
        if self._family in _BY_PACKAGE:
            fits = [d for d in fits if d.module == self._file.module]
        if fits and (self._family in _BY_PACKAGE or self._family in _BY_LINKER):
            return self._pick(fits)
        return self._by_name(edge.name) if kinds is None else _NOTHING

    def _through(
        self, item: CodeImport, rest: list[str], edge: Edge, kinds: frozenset[SymbolKind] | None
    ) -> Resolution | None:
        module = item.module
        found = None
        if item.name and item.name != "default":
            found = self._member(module, self._joined([item.name, *rest]), edge.name, kinds)
            module = joined_module(module, item.name, self._family)
        if found is None:
            found = self._member(module, self._joined(rest), edge.name, kinds)
        if found is None and len(rest) > 1:
            for part in rest[:-1]:
                module = joined_module(module, part, self._family)
            found = self._member(module, rest[-1], edge.name, kinds)
        return found

    def _own_member(self, edge: Edge) -> Resolution:
        """Resolve ``self.name``: in the class around the call, then in its bases, then by name."""
        owner = self._class_of(edge)
        methods = [d for d in self._candidates(edge.name) if d.qualified and _is_kind(d, None)]
        qualified = self._joined([owner, edge.name]) if owner else edge.name
        for d in methods:
            if owner and d.path == self._file.path and d.qualified == qualified:
                return Resolution(d)
        if owner and self._family in (*_BY_PACKAGE, *_BY_LINKER):
            near = [d for d in methods if d.qualified == qualified]
            near = [d for d in near if d.module == self._file.module or self._family == "c"]
            if near:
                return self._pick(near)
        of_bases = [d for d in methods if _owner(d, self._separator) in self._bases(owner)]
        return self._pick(of_bases) if of_bases else self._by_name(edge.name)

    def _class_of(self, edge: Edge) -> str:
        symbols = self._file.structure.symbols
        index = edge.symbol
        while index >= 0:
            symbol = symbols[index]
            if symbol.kind in CLASS_KINDS:
                return symbol.qualified_name
            if symbol.kind == SymbolKind.METHOD and self._separator in symbol.qualified_name:
                return symbol.qualified_name.rpartition(self._separator)[0]
            index = symbol.parent
        return ""

    def _bases(self, owner: str) -> frozenset[str]:
        if owner not in self._base_names:
            self._base_names[owner] = frozenset(
                last_part(base)
                for symbol in self._file.structure.symbols
                if owner and symbol.qualified_name == owner
                for base in symbol.bases
            )
        return self._base_names[owner]

    def _by_name(self, name: str) -> Resolution:
        """Match a method by its name alone: nothing is known of the receiver, so that is always a guess."""
        methods = [d for d in self._candidates(name) if d.kind == SymbolKind.METHOD]
        if not methods:
            return _NOTHING
        return Resolution(methods[0], is_ambiguous=True) if len(methods) == 1 else _SEVERAL

    def _scopes(self, symbol: int) -> list[str]:
        """List the scopes whose names are seen from a symbol, innermost first, the file's last."""
        symbols = self._file.structure.symbols
        scopes: list[str] = []
        while symbol >= 0:
            here = symbols[symbol]
            if here.kind not in CLASS_KINDS or self._family in _SEES_MEMBERS:
                scopes.append(here.qualified_name)
            symbol = here.parent
        return [*scopes, ""]

    def _joined(self, parts: list[str]) -> str:
        return self._separator.join(parts)

    def _first(self, found: Iterable[Resolution | None]) -> Resolution:
        return next((resolution for resolution in found if resolution is not None), _NOTHING)

    def _pick(
        self, candidates: list[Definition], module: str = "", *, is_package: bool = False
    ) -> Resolution:
        """Choose the one that fits an import best, or the one nearest in the tree; several that fit alike stay open."""
        if module:
            ranked = [(import_rank(self._file, module, d.path, d.module), d) for d in candidates]
            best = max((rank for rank, _ in ranked), default=0)
            candidates = [d for rank, d in ranked if rank == best and best > 0]
        if not candidates:
            return _NOTHING
        if is_package and len({d.module for d in candidates}) == 1:
            return Resolution(candidates[0])
        if len(candidates) > 1:
            shared = [_shared_folders(self._file.path, d.path) for d in candidates]
            candidates = [d for d, n in zip(candidates, shared, strict=True) if n == max(shared)]
        return Resolution(candidates[0]) if len(candidates) == 1 else _SEVERAL


def _is_kind(definition: Definition, kinds: frozenset[SymbolKind] | None) -> bool:
    return kinds is None or definition.kind in kinds


def _owner(definition: Definition, separator: str) -> str:
    return definition.qualified.rpartition(separator)[0].rpartition(separator)[2]


def _plain(written: str) -> str:
    return written.removesuffix("!")


def _shared_folders(path: str, other: str) -> int:
    mine, theirs = path.split("/"), other.split("/")
    if mine == theirs:
        return len(mine) + 1
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))

"""Cut a source file into chunks by function, class and file, each an exact slice of its text.

- A function is one chunk; a long one is cut where statements begin, and each further part carries its signature.
- A class that fits is one chunk with its methods. A longer one gives its header with the fields, the list of its members'
  signatures, and a chunk for each member.
- What stands outside (module docstring, imports, constants, top-level code) becomes ``file`` chunks; a small piece of it
  goes with the definition after it, which is nearly always what it belongs to.

Functions are never put together with their neighbours: a definition is found by its name, and an edge of the code graph
ends at one. Chunks do not overlap, and every character that is not blank is in exactly one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.collections.ingestion.code.modules import full_name, module_name
from apps.collections.ingestion.code.types import (
    CALLABLE_KINDS,
    CLASS_KINDS,
    CodeStructure,
    Symbol,
    SymbolKind,
)
from apps.collections.ingestion.types import ChunkDraft, ChunkKind

DEFAULT_SIZE = 1200
_SMALL_SHARE = 6  # a leftover below this part of the size goes with its neighbour
_CRUMB = 48  # a brace or a keyword alone goes with its neighbour, even past the size
_MAX_LISTED = 60
_MAX_PREFIX = 400


@dataclass(slots=True)
class _Piece:
    """A slice on its way to become a chunk; ``symbol`` is the definition that it is (a part of)."""

    start: int
    end: int
    kind: ChunkKind
    symbol: int = -1
    part: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def code_chunks(
    text: str, structure: CodeStructure, *, path: str, size: int = DEFAULT_SIZE
) -> list[ChunkDraft]:
    """Cut a source file.

    Args:
        text: the file's text, as it was parsed.
        structure: what ``structure_of`` made of it.
        path: the file's place in its tree, ``src/app/util.py``; qualified names begin with its module.
        size: wanted size of a chunk in characters; at most a closing brace goes beyond it.

    Returns:
        Chunks in reading order with ``qualified_name``, ``signature``, ``docstring``, ``line_start``, ``line_end``,
        ``decorators``, ``imports``, ``calls``, ``parent_name``, ``parent`` (offsets of the definition around it),
        ``symbols`` (all names defined inside) and, where it helps search, ``code_prefix`` in their metadata.

    Raises:
        ValueError: a size below 1.
    """
    if size < 1:
        raise ValueError(f"Chunk size is {size}; it must be at least 1 character.")
    pieces = _joined(text, list(_Cutter(text, structure, size).pieces()), size)
    return _Describer(text, structure, path).drafts(pieces)


class _Cutter:
    """Walks the definitions from the outermost inwards and yields contiguous pieces."""

    def __init__(self, text: str, structure: CodeStructure, size: int) -> None:
        self._text, self._size = text, size
        self._symbols = structure.symbols
        self._offsets = [offset for offset, _ in structure.cuts]
        self._depths = [depth for _, depth in structure.cuts]
        self._members: dict[int, list[int]] = defaultdict(list)
        for index, symbol in enumerate(structure.symbols):
            self._members[symbol.parent].append(index)

    def pieces(self) -> Iterator[_Piece]:
        """Yield pieces that together are the whole text."""
        # A stack instead of recursion: how deep definitions nest is the file's choice.
        stack = [self._within(-1, 0, len(self._text), "file")]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, _Piece):
                yield item
            else:
                stack.append(item)

    def _within(
        self, owner: int, start: int, end: int, kind: ChunkKind
    ) -> Iterator[_Piece | Iterator[_Piece | Any]]:
        """Yield the members of a scope, and what stands between them as pieces of the scope itself."""
        position, part = start, 0
        for index in self._members[owner]:
            symbol = self._symbols[index]
            low, high = max(symbol.char_start, position), min(symbol.char_end, end)
            if low >= high or symbol.kind == SymbolKind.VARIABLE:
                continue
            for piece in self._split(position, low, kind, owner, part):
                part += 1
                yield piece
            yield from self._symbol(index, low, high)
            position = high
        yield from self._split(position, end, kind, owner, part)

    def _symbol(self, index: int, start: int, end: int) -> Iterator[_Piece | Iterator[Any]]:
        symbol = self._symbols[index]
        if symbol.kind == SymbolKind.MODULE:
            yield self._within(index, start, end, "file")
        elif symbol.kind in CALLABLE_KINDS:
            yield from self._split(start, end, "function", index, 0)
        elif end - start <= self._size or not self._members[index]:
            yield from self._split(start, end, "class", index, 0)
        else:
            yield self._within(index, start, end, "class")

    def _split(self, start: int, end: int, kind: ChunkKind, symbol: int, part: int) -> Iterator[_Piece]:
        if not self._text[start:end].strip():
            return
        while end - start > self._size:
            cut = self._cut(start, start + self._size)
            yield _Piece(start, cut, kind, symbol, part)
            start, part = cut, part + 1
        yield _Piece(start, end, kind, symbol, part)

    def _cut(self, start: int, limit: int) -> int:
        """Find the best end: the outermost statement that begins in the later part, a line, anywhere."""
        low = start + max(1, (limit - start) * 2 // 5)
        first, last = bisect_left(self._offsets, low), bisect_right(self._offsets, limit)
        if first < last:
            return self._offsets[min(range(first, last), key=lambda i: (self._depths[i], -i))]
        line = self._text.rfind("\n", start + 1, limit)
        if line != -1:
            return line + 1
        blank = self._text.rfind(" ", low, limit)
        return blank + 1 if blank != -1 else limit


def _joined(text: str, pieces: list[_Piece], size: int) -> list[_Piece]:
    """Put crumbs and small leftovers together with a neighbour, and cut off the blanks around each piece."""
    small = size // _SMALL_SHARE
    result: list[_Piece] = []
    for piece in pieces:
        before = result[-1] if result else None
        if before is not None and _goes_after(text, before, piece, size):
            before.end = piece.end
        elif before is not None and _goes_before(before, piece, size, small):
            piece.start = before.start
            result[-1] = piece
        else:
            result.append(piece)
    for piece in result:
        while piece.start < piece.end and text[piece.end - 1].isspace():
            piece.end -= 1
        while piece.start < piece.end and text[piece.start] in "\r\n":
            piece.start += 1
    return [piece for piece in result if text[piece.start : piece.end].strip()]


def _goes_after(text: str, before: _Piece, piece: _Piece, size: int) -> bool:
    said = text[piece.start : piece.end].strip()
    is_crumb = len(said) <= _CRUMB and not any(ch.isalnum() for ch in said)
    length = piece.end - before.start
    same = before.symbol == piece.symbol and before.kind == piece.kind == "file"
    return (is_crumb and length <= size + _CRUMB) or (same and length <= size)


def _goes_before(before: _Piece, piece: _Piece, size: int, small: int) -> bool:
    """Tell whether a small leftover opens the chunk after it; the header of a class never does."""
    is_leftover = before.kind == "file" or (before.kind == "class" and before.part > 0)
    return (
        is_leftover
        and piece.part == 0
        and before.end - before.start < small
        and piece.end - before.start <= size
    )


class _Describer:
    """Says of each piece what it is."""

    def __init__(self, text: str, structure: CodeStructure, path: str) -> None:
        self._text, self._structure, self._path = text, structure, path
        self._module = module_name(path, structure.language, structure.package)
        self._newlines: list[int] = [i for i, ch in enumerate(text) if ch == "\n"]
        self._starts = [symbol.char_start for symbol in structure.symbols]
        self._calls: dict[int, list[str]] = defaultdict(list)
        for call in structure.calls:
            self._calls[call.symbol].append(call.callee)
        self._lines = [(item.line, _import_text(item.module, item.name)) for item in structure.imports]
        self._members: dict[int, list[Symbol]] = defaultdict(list)
        for symbol in structure.symbols:
            self._members[symbol.parent].append(symbol)

    def drafts(self, pieces: list[_Piece]) -> list[ChunkDraft]:
        """Turn pieces into drafts."""
        listed = {piece.symbol for piece in pieces if piece.part > 0}
        is_first_file = True
        drafts: list[ChunkDraft] = []
        for index, piece in enumerate(pieces):
            metadata = self._metadata(piece, is_split=piece.symbol in listed)
            if piece.kind == "file" and is_first_file:
                metadata |= self._overview()
                is_first_file = False
            drafts.append(
                ChunkDraft(
                    index=index,
                    text=self._text[piece.start : piece.end],
                    char_start=piece.start,
                    char_end=piece.end,
                    page_start=1,
                    page_end=1,
                    headings=tuple(h for h in (self._path, self._scope(piece)) if h),
                    kind=piece.kind,
                    metadata=metadata,
                )
            )
        return drafts

    def _scope(self, piece: _Piece) -> str:
        return self._structure.symbols[piece.symbol].qualified_name if piece.symbol >= 0 else ""

    def _line(self, char: int) -> int:
        return bisect_left(self._newlines, char) + 1

    def _metadata(self, piece: _Piece, *, is_split: bool) -> dict[str, Any]:
        symbols = self._structure.symbols
        first, last = self._line(piece.start), self._line(piece.end - 1)
        low = bisect_left(self._starts, piece.start)
        inside = range(low, bisect_left(self._starts, piece.end))
        data: dict[str, Any] = {
            "language": self._structure.language,
            "line_start": first,
            "line_end": last,
            "symbols": [symbols[i].qualified_name for i in inside][:_MAX_LISTED],
            "imports": list(dict.fromkeys(said for line, said in self._lines if first <= line <= last))[
                :_MAX_LISTED
            ],
        }
        owners = {piece.symbol, *inside}
        data["calls"] = list(
            dict.fromkeys(callee for owner in sorted(owners) for callee in self._calls[owner])
        )[:_MAX_LISTED]
        data["qualified_name"] = full_name(self._module, self._scope(piece), self._structure.language)
        if piece.symbol >= 0:
            data |= self._symbol_data(piece, symbols[piece.symbol], is_split)
        return {key: value for key, value in data.items() if value not in ("", [])}

    def _symbol_data(self, piece: _Piece, symbol: Symbol, is_split: bool) -> dict[str, Any]:
        parent = self._structure.symbols[symbol.parent] if symbol.parent >= 0 else None
        scope = symbol.qualified_name.rpartition("." if "." in symbol.qualified_name else "::")[0]
        data: dict[str, Any] = {
            "symbol_kind": str(symbol.kind),
            "signature": symbol.signature,
            "docstring": symbol.docstring,
            "decorators": list(symbol.decorators),
            "bases": list(symbol.bases),
            "parent_name": full_name(
                self._module, parent.qualified_name if parent is not None else scope, self._structure.language
            ),
        }
        if piece.part > 0:
            data["part"] = piece.part
            data["code_prefix"] = symbol.signature[:_MAX_PREFIX]
        elif symbol.kind in CLASS_KINDS:
            members = [
                member.signature for member in self._members[piece.symbol] if member.char_start >= piece.end
            ][:_MAX_LISTED]
            if members:
                data["members"] = members
                data["code_prefix"] = "\n".join(members)[:_MAX_PREFIX]
        around = symbol if is_split else parent
        if around is not None and around.kind != SymbolKind.MODULE:
            data["parent"] = [around.char_start, around.char_end]
        return data

    def _overview(self) -> dict[str, Any]:
        names = list(self._structure.names())
        data = {
            "docstring": self._structure.docstring,
            "imports": list(dict.fromkeys(said for _, said in self._lines))[:_MAX_LISTED],
            "names": names[:_MAX_LISTED],
            "code_prefix": ("defines " + ", ".join(names))[:_MAX_PREFIX] if names else "",
        }
        return {key: value for key, value in data.items() if value}


def _import_text(module: str, name: str) -> str:
    return f"{module}: {name}" if name else module

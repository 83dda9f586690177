"""The code graph of a collection in the database: written with each document, asked about definitions and their users.

A document's edges are resolved against the live definitions of the names they carry, two queries however many edges there
are. Edges elsewhere that carry a name which this document provides are marked stale in one statement, and
``code_graph_settle`` resolves them document by document: a thousand files that come together are settled once, not a
thousand times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction
from django.db.models import Q

from apps.collections.ingestion.code.edges import CodeFile, EdgeKind, file_edges
from apps.collections.ingestion.code.modules import module_key
from apps.collections.ingestion.code.programming_languages import BY_MEDIA_TYPE, family_of
from apps.collections.ingestion.code.resolution import Definition, ResolvedEdge, definitions_of, file_resolve
from apps.collections.ingestion.code.types import Symbol, structure_from_json
from apps.collections.models import Chunk, CodeEdge, Collection, Document, Page
from apps.collections.storage.bulk import rows_copy

_MAX_NAME = 500
_FILE = "file"
SETTLE_DOCUMENTS = 200


def code_graph_write(document: Document) -> int:
    """Replace a document's edges, resolve them, and mark those elsewhere that its names concern.

    Call it in the transaction that ends the index stage, under the collection's lock, after its chunks are written; for
    a document that is no source file it only removes what is there. Then call ``code_graph_settle`` (once for many documents).

    Returns:
        How many edges the document has now.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("code_graph_write() belongs into a transaction")
    names = _names_of(document)
    count = _rewrite(document)
    _mark_stale(document, names | _names_of(document))
    return count


def code_graph_forget(document: Document) -> None:
    """Mark what points into a document as stale; call it before it is deleted, or retired without a successor."""
    _mark_stale(document, _names_of(document))


def code_graph_settle(collection_id: int, *, limit: int = SETTLE_DOCUMENTS) -> bool:
    """Resolve stale edges again, each document in a transaction of its own.

    Args:
        collection_id: of a collection of the tenant in scope.
        limit: documents looked at; a queue's job does not run for ever.

    Returns:
        True when nothing stale is left.
    """
    stale = CodeEdge.objects.filter(collection_id=collection_id, is_stale=True)
    todo = list(stale.order_by("document_id").values_list("document_id", flat=True).distinct()[: limit + 1])
    for pk in todo[:limit]:
        with transaction.atomic():
            # Settling takes turns with documents that go live (they hold this lock): neither misses what the other
            # writes, and two that touch the same edges cannot wait for each other.
            if not _collection_locked(collection_id):
                return True
            document = Document.objects.select_for_update(no_key=True).filter(pk=pk).first()
            if document is not None:
                _rewrite(document)
    return len(todo) <= limit


def _collection_locked(collection_id: int) -> bool:
    rows = Collection.objects.select_for_update(no_key=True).filter(pk=collection_id)
    return rows.exists()


def _rewrite(document: Document) -> int:
    CodeEdge.objects.filter(document=document).delete()
    file = _file_of(document)
    if file is None:
        return 0
    chunks = _ChunkFinder(document)
    if chunks.is_empty:
        return 0
    edges = file_edges(file.path, file.structure)
    known = _Definitions(document, {edge.name for edge in edges})
    known.add_own(file, chunks)
    resolved = file_resolve(file, edges, known.named)
    symbols = {(s.qualified_name, s.line_start): s for s in file.structure.symbols}
    rows = [_row(document, file, item, chunks, known, symbols) for item in resolved]
    rows.append(_module_row(document, file, chunks))
    return rows_copy(CodeEdge._meta.db_table, _COLUMNS, rows)


_COLUMNS = {
    "tenant_id": "int8",
    "collection_id": "int8",
    "document_id": "int8",
    "chunk_id": "int8",
    "kind": "text",
    "source_name": "text",
    "target_name": "text",
    "name": "text",
    "written": "text",
    "target_id": "int8",
    "is_ambiguous": "bool",
    "line": "int4",
}


def _row(
    document: Document,
    file: CodeFile,
    item: ResolvedEdge,
    chunks: _ChunkFinder,
    known: _Definitions,
    symbols: Mapping[tuple[str, int], Symbol],
) -> tuple[object, ...]:
    edge, target = item.edge, item.resolution.target
    written, target_name = edge.written, target.full if target is not None else edge.written
    target_chunk = known.chunk(target) if target is not None else None
    line = edge.line
    if edge.kind == EdgeKind.DEFINES:
        symbol = symbols[edge.written, edge.line]
        written = _definition_text(symbol.kind, edge.written)
        target_name = file.full_name(edge.written)
        target_chunk = chunks.at_char(symbol.char_start)
    return (
        document.tenant_id,
        document.collection_id,
        document.pk,
        chunks.at_line(line),
        str(edge.kind),
        file.full_name(edge.source)[:_MAX_NAME],
        target_name[:_MAX_NAME],
        edge.name[:200],
        written[:_MAX_NAME],
        target_chunk,
        item.resolution.is_ambiguous,
        line,
    )


def _module_row(document: Document, file: CodeFile, chunks: _ChunkFinder) -> tuple[object, ...]:
    """Make the row by which imports find the file itself."""
    key = module_key(file.path, file.language, file.structure.package)
    return (
        document.tenant_id,
        document.collection_id,
        document.pk,
        chunks.at_line(1),
        str(EdgeKind.DEFINES),
        "",
        file.module[:_MAX_NAME],
        key[:200],
        _definition_text(_FILE, ""),
        chunks.at_line(1),
        False,
        1,
    )


def _definition_text(kind: str, qualified: str) -> str:
    """Write a definition's kind and name in its file, from which ``Definition`` is made again."""
    return f"{kind} {qualified}"


def _file_of(document: Document) -> CodeFile | None:
    if document.media_type not in BY_MEDIA_TYPE:
        return None
    layouts = Page.objects.filter(document=document).values_list("layout__code", flat=True)[:2]
    found = list(layouts)
    if len(found) != 1 or not found[0]:
        return None  # read as plain text
    return CodeFile(document.path, structure_from_json(found[0]))


class _ChunkFinder:
    """Finds the chunk of a document that holds a line or a character."""

    def __init__(self, document: Document) -> None:
        rows = list(
            Chunk.objects.filter(document=document)
            .order_by("index")
            .values_list("pk", "char_start", "line_start")
        )
        self._pks = [pk for pk, _, _ in rows]
        self._chars = [start for _, start, _ in rows]
        self._lines = [line or 1 for _, _, line in rows]
        self.is_empty = not rows

    def at_char(self, offset: int) -> int:
        """Return the chunk that holds a character, or the one before the gap it stands in."""
        return self._pks[max(0, bisect_right(self._chars, offset) - 1)]

    def at_line(self, line: int) -> int:
        """Return the last chunk that has begun on a line."""
        return self._pks[max(0, bisect_right(self._lines, line) - 1)]


class _Definitions:
    """Live definitions of some names in a collection, and the chunks that hold them."""

    def __init__(self, document: Document, names: set[str]) -> None:
        self._by_name: dict[str, set[Definition]] = defaultdict(set)
        self._chunks: dict[tuple[str, str], int | None] = {}
        rows = (
            CodeEdge.objects.filter(
                live_documents("document__"),
                collection_id=document.collection_id,
                kind=EdgeKind.DEFINES,
                name__in=names,
            )
            .exclude(document__path=document.path)
            .order_by("document_id", "line", "pk")
            .values_list(
                "name", "written", "target_name", "target_id", "document__path", "document__media_type"
            )
        )
        for name, written, full, chunk, path, media_type in rows:
            kind, _, qualified = written.partition(" ")
            module = full.removesuffix(qualified).rstrip(".:") if qualified else full
            family = family_of(BY_MEDIA_TYPE[media_type].name)
            if family == "c":
                module = path
            self._add(name, Definition(path, qualified, module, family, kind, full), chunk)

    def add_own(self, file: CodeFile, chunks: _ChunkFinder) -> None:
        """Add what the file itself defines, which has no rows yet."""
        starts: dict[str, int] = {}
        for symbol in file.structure.symbols:
            starts.setdefault(symbol.qualified_name, symbol.char_start)
        for name, definitions in definitions_of(file).items():
            for definition in definitions:
                chunk = chunks.at_char(starts.get(definition.qualified, 0))
                self._add(name, definition, chunk)

    def _add(self, name: str, definition: Definition, chunk: int | None) -> None:
        self._by_name[name].add(definition)
        self._chunks.setdefault((definition.path, definition.qualified), chunk)

    def named(self, name: str) -> Sequence[Definition]:
        """Give the definitions of a name in a fixed order."""
        return sorted(self._by_name.get(name, ()))

    def chunk(self, definition: Definition) -> int | None:
        """Return the chunk that holds a definition."""
        return self._chunks.get((definition.path, definition.qualified))


def _names_of(document: Document) -> set[str]:
    """List the names that the stored versions of a document's file provide."""
    return set(
        CodeEdge.objects.filter(
            collection_id=document.collection_id, document__path=document.path, kind=EdgeKind.DEFINES
        ).values_list("name", flat=True)
    )


def _mark_stale(document: Document, names: Iterable[str]) -> None:
    (
        CodeEdge.objects.filter(
            live_documents("document__"), collection_id=document.collection_id, name__in=list(names)
        )
        .exclude(kind=EdgeKind.DEFINES)
        .exclude(document__path=document.path)
        .update(is_stale=True)
    )


def live_documents(prefix: str = "") -> Q:
    """Select the versions that are searched now."""
    return Q(**{f"{prefix}live_from__isnull": False, f"{prefix}live_to__isnull": True})

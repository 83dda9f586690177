"""Questions to the code graph: who calls, imports, extends, defines; each from what the actor may see, in few queries.

A name is a full one (``app.models.User.save``), the end of one (``User.save``, ``save``) or what an edge to something outside
the collection says (``os.getcwd``). A definition in a document that the actor may not see is not there: edges to it show
what their own source says and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.collections.graph.rows import live_documents
from apps.collections.ingestion.code.edges import EdgeKind
from apps.collections.ingestion.code.modules import joined_import, last_part
from apps.collections.models import Chunk, CodeEdge, Collection, Document
from tenancy.actors import Actor

MAX_DEPTH = 3
MAX_EDGES = 500
MAX_DEFINITIONS = 200


@dataclass(frozen=True, slots=True)
class CodeDefinition:
    """Where something is defined; ``kind`` is a ``SymbolKind`` or ``file``."""

    name: str
    kind: str
    chunk_id: int | None
    document_id: int
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class CodeLink:
    """An edge as an actor may see it.

    Attributes:
        kind: of ``EdgeKind``.
        source: full name of where it starts.
        target: full name of what it points to; as written where that is unknown, outside or not to be seen.
        chunk_id: the chunk that it starts in.
        target_chunk_id: the chunk of the definition, None where ``target`` is as written.
        document_id: of the source.
        path: of the source.
        line: of the source.
        is_ambiguous: matched by name alone, or several definitions fit.
    """

    kind: str
    source: str
    target: str
    chunk_id: int
    target_chunk_id: int | None
    document_id: int
    path: str
    line: int
    is_ambiguous: bool


def definition_of(
    *, actor: Actor, collection: Collection, name: str, limit: int = 50
) -> list[CodeDefinition]:
    """Find the definitions of a name, in one query; an exact full name comes before ends of names."""
    if not (last := last_part(name)):
        return []
    rows = _definitions(actor, collection).filter(name=last)
    found = [d for d in _listed(rows, MAX_DEFINITIONS) if _names(d.name, name)]
    return sorted(found, key=lambda d: (d.name != name, d.name, d.path))[:limit]


def callers_of(*, actor: Actor, collection: Collection, name: str, limit: int = 100) -> list[CodeLink]:
    """List the calls of a function, method or class, in two queries."""
    return _links_to(actor, collection, name, EdgeKind.CALLS, limit)


def importers_of(*, actor: Actor, collection: Collection, name: str, limit: int = 100) -> list[CodeLink]:
    """List the imports of a module or of a name in it, in two queries."""
    return _links_to(actor, collection, name, EdgeKind.IMPORTS, limit)


def subclasses_of(*, actor: Actor, collection: Collection, name: str, limit: int = 100) -> list[CodeLink]:
    """List what extends or implements a class, interface or trait directly, in two queries."""
    return _links_to(actor, collection, name, EdgeKind.INHERITS, limit)


def callees_of(*, actor: Actor, collection: Collection, name: str, limit: int = 100) -> list[CodeLink]:
    """List what a function, a class or (by its module name) a file's top level calls, in two queries."""
    found = definition_of(actor=actor, collection=collection, name=name)
    if not found:
        return []
    rows = _edges(actor, collection).filter(kind=EdgeKind.CALLS, source_name__in={d.name for d in found})
    return _links(rows, limit)


def _links_to(actor: Actor, collection: Collection, name: str, kind: EdgeKind, limit: int) -> list[CodeLink]:
    last = last_part(name)
    if not last:
        return []
    found = definition_of(actor=actor, collection=collection, name=name, limit=MAX_DEFINITIONS)
    written = Q(name=last, is_target_visible=False) & _written_as(name)
    rows = _edges(actor, collection).filter(kind=kind)
    if found:
        to = Q(target_name__in={d.name for d in found}, is_target_visible=True)
        # Several fit and no one was chosen: whoever asks for one of them wants to see that call too.
        rows = rows.filter(to | Q(name=last, is_ambiguous=True, target__isnull=True) | written)
    else:
        rows = rows.filter(written)
    return _links(rows, limit)


def _written_as(name: str) -> Q:
    same = Q(written=name) | Q(written__endswith=f".{name}") | Q(written__endswith=f"::{name}")
    last = last_part(name)
    return same | Q(written=joined_import(name.removesuffix(last).rstrip(".:/"), last))


def _edges(actor: Actor, collection: Collection) -> QuerySet[CodeEdge]:
    actor.require("collection.read")
    visible = Document.objects.visible_to(actor).filter(pk=OuterRef("target__document_id"))
    rows: QuerySet[CodeEdge] = (
        CodeEdge.objects.visible_to(actor)
        .filter(live_documents("document__"), collection=collection)
        .annotate(is_target_visible=Exists(visible))
    )
    return rows


def _definitions(actor: Actor, collection: Collection) -> QuerySet[CodeEdge]:
    return _edges(actor, collection).filter(kind=EdgeKind.DEFINES)


def _listed(rows: QuerySet[CodeEdge], limit: int) -> list[CodeDefinition]:
    listed = rows.values_list("target_name", "written", "target_id", "document_id", "document__path", "line")
    return [
        CodeDefinition(name, written.partition(" ")[0], chunk, document, path, line or 1)
        for name, written, chunk, document, path, line in listed[:limit]
    ]


def _links(rows: QuerySet[CodeEdge], limit: int) -> list[CodeLink]:
    ordered = rows.order_by("is_ambiguous", "document__path", "line", "pk")
    fields = (
        "kind",
        "source_name",
        "target_name",
        "written",
        "chunk_id",
        "target_id",
        "document_id",
        "document__path",
        "line",
        "is_ambiguous",
        "is_target_visible",
    )
    return [_link(row) for row in ordered.values(*fields)[: min(limit, MAX_EDGES)]]


def _link(row: dict[str, Any]) -> CodeLink:
    is_shown = row["target_id"] is not None and row["is_target_visible"]
    return CodeLink(
        kind=row["kind"],
        source=row["source_name"],
        target=row["target_name"] if is_shown else row["written"],
        chunk_id=row["chunk_id"],
        target_chunk_id=row["target_id"] if is_shown else None,
        document_id=row["document_id"],
        path=row["document__path"],
        line=row["line"] or 1,
        is_ambiguous=row["is_ambiguous"],
    )


def _names(full: str, name: str) -> bool:
    """Tell whether a name is a full one or the end of it, cut where its parts meet."""
    return full == name or any(full.endswith(f"{mark}{name}") for mark in (".", "::", "/"))


def edges_of_chunk(*, actor: Actor, chunk: Chunk, limit: int = 100) -> tuple[list[CodeLink], list[CodeLink]]:
    """List the edges that start in a chunk of code, and those that point to it, in two queries."""
    rows = _edges(actor, chunk.collection)
    outgoing = rows.filter(chunk=chunk).exclude(target=chunk)
    incoming = rows.filter(target=chunk).exclude(chunk=chunk)
    return _links(outgoing, limit), _links(incoming, limit)

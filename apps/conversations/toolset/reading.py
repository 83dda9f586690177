"""Tools that read on from a passage, and that tell which documents there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from apps.collections.chunks.links import chunk_links
from apps.collections.display.selectors import chunk_get
from apps.collections.models import Chunk, Document
from apps.conversations.attachments.selectors import ATTACHED
from apps.conversations.toolset.results import (
    SCOPE,
    Scope,
    attached_now,
    chunk_number,
    collections_named,
    is_attached,
    result_row,
    results_output,
    rights_now,
)
from basics.errors import DomainError
from tenancy.actors import Actor
from toolloop.tools import ToolContext, ToolError, ToolOutput, tool

DOCUMENTS_PER_PAGE = 50
LINKS_TOLD = 20


@tool
async def get_chunk(context: ToolContext, chunk_id: str) -> ToolOutput:
    """Read a passage with the one before and the one after it, when it breaks off or needs its surroundings.

    Args:
        chunk_id: the passage's id, such as "c123".
    """
    scope: Scope = context.data[SCOPE]
    output: ToolOutput = await scope.in_db(_chunk, scope, chunk_id)
    return output


@tool
async def get_linked_chunk(
    context: ToolContext, chunk_id: str, relation: str = "", place: int = 0
) -> ToolOutput:
    """Follow a link from a passage to a related one, and see what other links the passage has.

    Passages are linked by order (next, previous), by section (parent, child, same_section) and by what they talk about
    (shares_terms, or relations that a model has named).

    Args:
        chunk_id: the passage's id, such as "c123".
        relation: follow a link of this relation; leave it out for the strongest that leads beyond the neighbours.
        place: 0 for the strongest such link, 1 for the next, and so on.
    """
    scope: Scope = context.data[SCOPE]
    output: ToolOutput = await scope.in_db(_linked, scope, chunk_id, relation.strip(), place)
    return output


@tool
async def list_documents(
    context: ToolContext,
    collections: list[str] | None = None,
    name_contains: str = "",
    document_type: str = "",
    page: int = 1,
) -> ToolOutput:
    """List which documents there are, with type, tags, date and size; 50 a page. It says nothing of what they say.

    Args:
        collections: names of the collections; leave it out for all.
        name_contains: part of a file name or path.
        document_type: documents of this type alone.
        page: 1 for the first fifty.
    """
    scope: Scope = context.data[SCOPE]
    output: ToolOutput = await scope.in_db(
        _documents, scope, collections or [], name_contains, document_type, page
    )
    return output


READER_TOOLS = (get_chunk, get_linked_chunk, list_documents)


def _found(scope: Scope, chunk_id: str) -> tuple[Actor, Any, str]:
    number = chunk_number(chunk_id)
    try:
        actor, allowed = rights_now(scope)
        found = chunk_get(actor=actor, pk=number)
    except DomainError as error:
        raise ToolError(error.message) from error
    names = {c.pk: c.name for c in allowed}
    if found.chunk.document_id in {row.document_id for row in attached_now(scope, actor)}:
        return actor, found, ATTACHED
    if found.chunk.collection_id not in names:
        raise ToolError(f"c{number} is in no collection that this conversation searches.")
    if not scope.holds(found.chunk.document_id):
        raise ToolError(f"c{number} is in none of the documents that this question is about.")
    return actor, found, names[found.chunk.collection_id]


def _chunk(scope: Scope, chunk_id: str) -> ToolOutput:
    _, found, collection = _found(scope, chunk_id)
    chunk: Chunk = found.chunk
    around = [c for c in (found.previous, chunk, found.next) if c is not None]
    shown = [c for c in around if c.pk == chunk.pk or not c.is_disabled]
    name, version = chunk.document.name, chunk.document.version
    results = [result_row(c, c.pk, name, version, collection) for c in shown]
    page = f", page {chunk.page_start}" if chunk.page_start else ""
    points = {c.pk: {"key_points": c.key_points} for c in shown if c.key_points}
    return results_output(scope, results, "", f"{name}{page}", chunk_id, extra=points)


def _linked(scope: Scope, chunk_id: str, relation: str, place: int) -> ToolOutput:
    actor, found, collection = _found(scope, chunk_id)
    chunk: Chunk = found.chunk
    links = [link for link in chunk_links(actor=actor, chunk=chunk) if not link.chunk.is_disabled]
    if relation:
        fitting = [link for link in links if link.relation == relation]
    else:
        fitting = [link for link in links if link.relation not in ("next", "previous")] or links
    there = ", ".join(dict.fromkeys(link.relation for link in links)) or "none"
    if not 0 <= place < len(fitting):
        raise ToolError(f"c{chunk.pk} has no such link. Relations it has: {there}.")
    link = fitting[place]
    told = {
        "relation": link.relation,
        "common_topic": link.common_topic,
        "made_by": link.made_by,
        "key_points": link.chunk.key_points,
        "other_links": [
            {"id": f"c{o.chunk.pk}", "relation": o.relation, "common_topic": o.common_topic}
            for o in links
            if o is not link
        ][:LINKS_TOLD],
    }
    row = result_row(link.chunk, link.chunk.pk, chunk.document.name, chunk.document.version, collection)
    summary = f"{chunk.document.name}: {link.relation} of c{chunk.pk}"
    return results_output(scope, [row], "", summary, chunk_id, extra={link.chunk.pk: told})


def _documents(
    scope: Scope, names: Sequence[str], name_contains: str, document_type: str, page: int
) -> ToolOutput:
    try:
        actor, allowed = rights_now(scope)
    except DomainError as error:
        raise ToolError(error.message) from error
    chosen = collections_named(allowed, names)
    given = attached_now(scope, actor) if is_attached(names) else []
    attached = [row.document_id for row in given if row.document_id is not None]
    rows = Document.objects.visible_to(actor).current()
    ours = Q(collection__in=chosen)
    if scope.documents is not None:
        ours &= Q(pk__in=scope.documents)
    rows = rows.filter(ours | Q(pk__in=attached))
    if name_contains.replace("\x00", ""):
        rows = rows.filter(path__icontains=name_contains.replace("\x00", ""))
    if document_type.replace("\x00", ""):
        rows = rows.filter(document_type=document_type.replace("\x00", ""))
    total = rows.count()
    first = (max(1, min(page, 10_000)) - 1) * DOCUMENTS_PER_PAGE
    by_id = {c.pk: c.name for c in chosen}
    listed = rows.order_by("collection_id", "path", "pk")[first : first + DOCUMENTS_PER_PAGE]
    told = [
        {
            "path": d.path if d.collection_id in by_id else d.name,
            "title": d.title,
            "collection": by_id.get(d.collection_id, ATTACHED),
            "type": d.document_type,
            "tags": d.tags,
            "dated": d.dated.isoformat() if d.dated else None,
            "status": d.status,
            "pages": d.page_count,
            "passages": d.chunk_count,
        }
        for d in listed
    ]
    left = total - first - len(told)
    note = f"{left} more: ask for the next page." if left > 0 else ""
    content = json.dumps({"documents": told, "total": total, "note": note}, ensure_ascii=False)
    summary = f"{total} document{'' if total == 1 else 's'}"
    return ToolOutput(content, {"query": name_contains, "summary": summary, "results": []})

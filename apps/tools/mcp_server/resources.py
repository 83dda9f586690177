"""Collections, documents, passages, searches and runs as MCP resources; each read starts from what the caller may see."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from mcp.shared.uri_template import UriTemplate
from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from apps.collections.display import selectors
from apps.collections.models import Collection, Document, DocumentStatus, Page
from apps.collections.search import SearchHit, search_run
from apps.tools.mcp_server.caller import Caller
from apps.tools.mcp_server.cursors import PAGE, cursor_read, cursor_unknown, cursor_write
from apps.tools.mcp_server.outcomes import outcome_get
from basics.errors import Invalid, Missing

MAX_TEXT = 200_000
"""Characters of a document that are given at once; a longer one is read by its pages."""
HITS = 10
_LAST_PAGE = 2**31 - 1
JSON, TEXT = "application/json", "text/plain"
_COLLECTION, _DOCUMENT = "collection", "document"


def resource_page(caller: Caller, cursor: str) -> ListResourcesResult:
    """Return collections, then documents that are ready, in the order they were made; nothing without the right to read.

    Raises:
        Invalid: the cursor is unknown.
    """
    kind, after = _position(cursor)
    if not caller.actor.can("collection.read"):
        return ListResourcesResult(resources=[])
    found: list[tuple[str, int, Resource]] = []
    if kind == _COLLECTION:
        rows = Collection.objects.visible_to(caller.actor).filter(pk__gt=after).order_by("pk")
        found = [(_COLLECTION, c.pk, _collection_entry(c)) for c in rows[: PAGE + 1]]
        after = 0
    if len(found) <= PAGE:
        ready: QuerySet[Document] = Document.objects.visible_to(caller.actor).current()
        ready = ready.filter(status=DocumentStatus.READY, pk__gt=after, collection__owner=None).order_by("pk")
        rest = ready.select_related("collection")[: PAGE + 1 - len(found)]
        found += [(_DOCUMENT, d.pk, _document_entry(d)) for d in rest]
    shown = found[:PAGE]
    last = f"{shown[-1][0]}:{shown[-1][1]}" if len(found) > PAGE else ""
    return ListResourcesResult(
        resources=[entry for _, _, entry in shown], next_cursor=cursor_write(last) if last else None
    )


def templates() -> ListResourceTemplatesResult:
    """Return the forms of all addresses."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name=name, title=title, uri_template=str(template), description=text, mime_type=kind
            )
            for name, title, template, text, kind, _ in _KINDS
        ]
    )


def resource_read(caller: Caller, uri: str) -> ReadResourceResult:
    """Return what stands at an address.

    Raises:
        Missing: nothing does for the caller.
        Denied: the key lacks the right to read it.
        Invalid: the query of a search is no good.
    """
    for _, _, template, _, kind, read in _KINDS:
        values = template.match(uri)
        if values is not None:
            given = {name: str(value) for name, value in values.items()}
            text = read(caller, given)
            return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])
    raise Missing("resource")


def hit_facts(hit: SearchHit) -> dict[str, Any]:
    """Return a passage as a search gives it, with the addresses to cite it by and to read on."""
    return {
        "uri": f"groundwork://chunks/{hit.chunk_id}",
        "document": hit.document_name,
        "document_uri": f"groundwork://documents/{hit.document_id}",
        "headings": hit.headings,
        "pages": [hit.page_start, hit.page_end],
        "text": hit.text,
    }


def _position(cursor: str) -> tuple[str, int]:
    if not cursor:
        return _COLLECTION, 0
    kind, _, after = cursor_read(cursor).partition(":")
    if kind not in (_COLLECTION, _DOCUMENT):
        raise cursor_unknown()
    return kind, _number(after, cursor_unknown())


def _number(text: str, refusal: Exception) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise refusal
    return int(text)


def _pk(values: Mapping[str, str], noun: str, name: str = "id") -> int:
    return _number(values.get(name, ""), Missing(noun))


def _collection_entry(row: Collection) -> Resource:
    return Resource(
        uri=f"groundwork://collections/{row.pk}",
        name=row.name,
        description=row.description or None,
        mime_type=JSON,
    )


def _document_entry(row: Document) -> Resource:
    return Resource(
        uri=f"groundwork://documents/{row.pk}",
        name=row.name,
        title=row.path,
        description=f"Document of {row.collection.name}",
        mime_type=TEXT,
    )


def _collection(caller: Caller, values: Mapping[str, str]) -> str:
    row: Any = selectors.collection_counted(actor=caller.actor, pk=_pk(values, "collection"))
    return _json(
        {
            "name": row.name,
            "description": row.description,
            "documents": row.document_count,
            "pages": row.page_total,
            "passages": row.chunk_count,
            "search": f"groundwork://collections/{row.pk}/search{{?query}}",
        }
    )


def _document(caller: Caller, values: Mapping[str, str]) -> str:
    document = selectors.document_get(actor=caller.actor, pk=_pk(values, "document"))
    if document.status != DocumentStatus.READY:
        raise Missing("document")
    pages: QuerySet[Page] = Page.objects.visible_to(caller.actor).filter(document=document)
    text = ""
    for page in pages.order_by("number").iterator(chunk_size=20):
        if text and len(text) + len(page.text) > MAX_TEXT:
            address = f"groundwork://documents/{document.pk}/pages/{page.number}"
            return f"{text}\n\n[The document goes on: read {address} and the pages after it.]"
        text += _cut(page.text)
    return text


def _page(caller: Caller, values: Mapping[str, str]) -> str:
    document = selectors.document_get(actor=caller.actor, pk=_pk(values, "document"))
    number = min(_pk(values, "page", "number"), _LAST_PAGE)
    page = selectors.page_get(actor=caller.actor, document=document, number=number)
    if page is None or document.status != DocumentStatus.READY:
        raise Missing("page")
    return _cut(page.text)


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n\n[This page was cut after {MAX_TEXT:,} characters: search for the rest.]"


def _chunk(caller: Caller, values: Mapping[str, str]) -> str:
    chunk = selectors.chunk_get(actor=caller.actor, pk=_pk(values, "passage")).chunk
    return _json(
        {
            "document": chunk.document.name,
            "document_uri": f"groundwork://documents/{chunk.document_id}",
            "collection": chunk.collection.name,
            "headings": chunk.headings,
            "pages": [chunk.page_start, chunk.page_end],
            "text": chunk.text,
        }
    )


def _search(caller: Caller, values: Mapping[str, str]) -> str:
    query = values.get("query", "").strip()
    if not query:
        raise Invalid("query_invalid", "Say what to look for: add ?query= to the address.")
    collections = None
    if "id" in values:
        pks = [_pk(values, "collection")]
        collections = selectors.collections_named(actor=caller.actor, pks=pks)
    found = search_run(tenant=caller.tenant, actor=caller.actor, collections=collections, query=query, k=HITS)
    return _json({"query": query, "passages": [hit_facts(hit) for hit in found.hits], "note": found.note})


def _run(caller: Caller, values: Mapping[str, str]) -> str:
    found = outcome_get(actor=caller.actor, pk=_pk(values, "run"))
    return _json({**found.facts(), "text": found.text()})


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


_Read = Callable[[Caller, Mapping[str, str]], str]


def _kind(
    name: str, title: str, uri: str, text: str, mime_type: str, read: _Read
) -> tuple[str, str, UriTemplate, str, str, _Read]:
    return name, title, UriTemplate.parse(uri), text, mime_type, read


_KINDS = (
    _kind(
        "search",
        "Search everything",
        "groundwork://search{?query}",
        "The passages of all collections that answer a question best.",
        JSON,
        _search,
    ),
    _kind(
        "collection",
        "Collection",
        "groundwork://collections/{id}",
        "What a collection holds.",
        JSON,
        _collection,
    ),
    _kind(
        "collection_search",
        "Search a collection",
        "groundwork://collections/{id}/search{?query}",
        "The passages of one collection that answer a question best.",
        JSON,
        _search,
    ),
    _kind(
        "document",
        "Document",
        "groundwork://documents/{id}",
        f"A document's text; of a long one its first {MAX_TEXT:,} characters.",
        TEXT,
        _document,
    ),
    _kind(
        "page",
        "Page",
        "groundwork://documents/{id}/pages/{number}",
        "The text of one page of a document.",
        TEXT,
        _page,
    ),
    _kind("passage", "Passage", "groundwork://chunks/{id}", "A passage, as searches give it.", JSON, _chunk),
    _kind(
        "run",
        "Calls that waited",
        "groundwork://runs/{id}",
        "What became of calls that wait for approval.",
        JSON,
        _run,
    ),
)

"""Pages of chunks: leafing through them with filters and figures, and one chunk with its links and history."""

from __future__ import annotations

import difflib
import re
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from apps.collections.chunks import history as chunks_history
from apps.collections.chunks import links as chunk_links
from apps.collections.chunks import services
from apps.collections.chunks.selectors import ChunkFilter, chunk_rows
from apps.collections.chunks.statistics import chunk_statistics
from apps.collections.display import selectors
from apps.collections.display.page_parts import chosen, chunk_dress, section
from apps.collections.graph.selectors import edges_of_chunk
from apps.collections.models import Chunk, ChunkKind, ChunkRevision
from basics.errors import DomainError, Missing
from web.requests import TenantRequest, allowed, may_lag

CHUNKS_PER_PAGE = 25
_CODE = (ChunkKind.FUNCTION, ChunkKind.CLASS, ChunkKind.FILE)
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
STATES = [
    ("edited", gettext_lazy("Edited")),
    ("disabled", gettext_lazy("Excluded from search")),
    ("linked", gettext_lazy("With links")),
]


@require_GET
@allowed("collection.read")
@may_lag
def chunks(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Leaf through a collection's chunks."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    document = None
    if request.GET.get("document", "").isdecimal():
        document = selectors.document_get(
            actor=request.actor, pk=int(request.GET["document"]), collection_pk=pk
        )
    shown = chosen(request, "text", "header", "kind", "state")
    where = ChunkFilter(
        document_id=document.pk if document else None,
        text=shown["text"],
        header=shown["header"],
        header_match="contains",
        kinds=(shown["kind"],) if shown["kind"] in ChunkKind.values else (),
        is_edited=True if shown["state"] == "edited" else None,
        is_disabled=True if shown["state"] == "disabled" else None,
        relation="any" if shown["state"] == "linked" else "",
    )
    rows = chunk_rows(actor=request.actor, collection=collection, where=where)
    page = Paginator(rows, CHUNKS_PER_PAGE).get_page(request.GET.get("page"))
    parameters = {"document": document.pk if document else "", **shown}
    context = section(request, collection, "chunks") | {
        "chunks": [chunk_dress(chunk) for chunk in page.object_list],
        "page_obj": page,
        "document": document,
        "query": urlencode({k: v for k, v in parameters.items() if v}),
        **shown,
        "is_filtered": any(shown.values()),
        "kinds": ChunkKind.choices,
        "states": STATES,
        "figures": chunk_statistics(actor=request.actor, collection=collection, document=document),
    }
    return render(request, "collections/chunks.html", context)


@require_GET
@allowed("collection.read")
def chunk(request: TenantRequest, tenant_slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Show one chunk: what it says, its links, its place in the code graph, and what people have changed in it."""
    return _page(request, _detail(request, pk, chunk_pk))


def _detail(request: TenantRequest, pk: int, chunk_pk: int) -> selectors.ChunkDetail:
    detail = selectors.chunk_get(actor=request.actor, pk=chunk_pk)
    if detail.chunk.collection_id != pk:
        raise Missing("chunk")
    return detail


def _page(
    request: TenantRequest, detail: selectors.ChunkDetail, *, text: str | None = None, status: int = 200
) -> HttpResponse:
    one = chunk_dress(detail.chunk)
    collection = selectors.collection_get(actor=request.actor, pk=one.collection_id)
    history = list(chunks_history.chunk_revisions(actor=request.actor, chunk=one)[:50])
    edges = edges_of_chunk(actor=request.actor, chunk=one) if one.kind in _CODE else ([], [])
    context = section(request, collection, "chunks") | {
        "chunk": one,
        "text": one.text if text is None else text,
        "previous_chunk": detail.previous,
        "next_chunk": detail.next,
        "links": chunk_links.chunk_links(actor=request.actor, chunk=one, limit=60),
        "edges_out": edges[0],
        "edges_in": edges[1],
        "is_code": one.kind in _CODE,
        "history": [_change(revision) for revision in history],
        "may_change": request.actor.can("document.write") and one.document.live_to is None,
        "text_most": services.MAX_CHUNK_CHARS,
    }
    return render(request, "collections/chunk.html", context, status=status)


def _change(revision: ChunkRevision) -> dict[str, Any]:
    before, after = revision.before, revision.after
    words: list[str] = []
    if before["text"] != after["text"]:
        words.append(_("Text changed"))
    if before["is_disabled"] != after["is_disabled"]:
        words.append(_("Excluded from search") if after["is_disabled"] else _("Included in search again"))
    return {"revision": revision, "what": ", ".join(words), "parts": word_diff(before["text"], after["text"])}


def word_diff(before: str, after: str) -> list[dict[str, str]]:
    """Return what stayed, went and came between two texts, word by word; nothing when they are the same."""
    if before == after:
        return []
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts: list[dict[str, str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append({"kind": "same", "text": "".join(old[a:b])})
            continue
        if b > a:
            parts.append({"kind": "del", "text": "".join(old[a:b])})
        if d > c:
            parts.append({"kind": "ins", "text": "".join(new[c:d])})
    return parts


@require_POST
@allowed("document.write")
def chunk_edit(request: TenantRequest, tenant_slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Give a chunk another text; what was refused stays in the form."""
    detail = _detail(request, pk, chunk_pk)
    text = request.POST.get("text", "")
    try:
        row = services.chunk_edit(
            tenant=request.tenant,
            actor=request.actor,
            chunk=detail.chunk,
            text=text,
            note=request.POST.get("note", ""),
        )
    except DomainError as error:
        messages.error(request, _("Nothing was changed: %(message)s") % {"message": error.message})
        return _page(request, detail, text=text, status=error.status if error.status < 500 else 422)
    messages.success(request, _("Saved. Search now uses the passage's new text."))
    return _back(tenant_slug, row)


@require_POST
@allowed("document.write")
def chunk_disable(request: TenantRequest, tenant_slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Leave a chunk out of search, or take it in again."""
    detail = _detail(request, pk, chunk_pk)
    is_disabled = request.POST.get("is_disabled") == "true"
    row = services.chunk_disable(
        tenant=request.tenant,
        actor=request.actor,
        chunk=detail.chunk,
        is_disabled=is_disabled,
        note=request.POST.get("note", ""),
    )
    messages.success(
        request,
        _("This passage is now excluded from search.")
        if is_disabled
        else _("This passage is included in search again."),
    )
    return _back(tenant_slug, row)


@require_POST
@allowed("document.write")
def chunk_restore(
    request: TenantRequest, tenant_slug: str, pk: int, chunk_pk: int, revision_pk: int
) -> HttpResponse:
    """Put a chunk back to what it was before a change."""
    detail = _detail(request, pk, chunk_pk)
    revision = chunks_history.chunk_revision_get(actor=request.actor, pk=revision_pk)
    if revision.chunk_id != detail.chunk.pk:
        raise Missing("change")
    try:
        services.chunk_restore(tenant=request.tenant, actor=request.actor, revision=revision)
    except DomainError as error:
        messages.error(request, _("Nothing was changed: %(message)s") % {"message": error.message})
    else:
        messages.success(request, _("The change was undone."))
    return _back(tenant_slug, detail.chunk)


def _back(tenant_slug: str, row: Chunk) -> HttpResponse:
    return redirect("collections:chunk", tenant_slug, row.collection_id, row.pk)

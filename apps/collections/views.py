"""Pages of collections. They hold no rules: selectors read, services write."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from django.conf import settings as conf
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import reswap

from apps.collections import selectors, services
from apps.collections.forms import CollectionForm
from apps.collections.lexical import tokenise
from apps.collections.models import Collection, Document, DocumentStatus
from apps.collections.search import SearchHit, search_run
from apps.collections.uploads import posted_file
from basics.errors import Conflict, Invalid
from web.requests import TenantRequest, allowed

UPLOAD_FORMATS = "PDF, Word, HTML, Markdown, CSV and text"
DOCUMENTS_PER_PAGE = 50
CHUNKS_PER_PAGE = 25


@require_GET
@allowed("collection.read")
def collections(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the workspace's collections."""
    rows = list(selectors.collection_list(actor=request.actor))
    return render(
        request,
        "collections/list.html",
        {"collections": rows, "can_write": request.actor.can("collection.write")},
    )


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make a collection."""
    form = CollectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.collection_create(
                tenant=request.tenant, actor=request.actor, **form.cleaned_data
            )
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            return redirect("collections:detail", tenant_slug, row.pk)
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/create.html", {"form": form}, status=status)


@require_GET
@allowed("collection.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a collection's documents, live."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    q, status = request.GET.get("q", "").strip()[:200], request.GET.get("status", "")
    q = q.replace("\x00", "")
    rows = selectors.document_list(actor=request.actor, collection=collection, q=q, status=status)
    page = Paginator(rows, DOCUMENTS_PER_PAGE).get_page(request.GET.get("page"))
    documents = list(page.object_list)
    context = section(request, collection, "documents") | {
        "documents": documents,
        "page_obj": page,
        "query": urlencode({k: v for k, v in (("q", q), ("status", status)) if v}),
        "q": q,
        "status": status,
        "status_choices": DocumentStatus.choices,
        "upload_formats": UPLOAD_FORMATS,
        "upload_max_mb": conf.MAX_UPLOAD_BYTES // 1_000_000,
        "stream_after": max((stamp(d) for d in documents), default=0),
    }
    return render(request, "collections/detail.html", context)


def stamp(document: Document) -> int:
    """Return when a document last changed, in microseconds: the position of its frame in the stream."""
    return round(document.updated_at.timestamp() * 1_000_000)


def section(request: TenantRequest, collection: Any, tab: str) -> dict[str, Any]:
    """Return what every page of one collection shows around its own part."""
    return {
        "collection": collection,
        "collections": list(selectors.collection_list(actor=request.actor)),
        "tab": tab,
        "can_write": request.actor.can("document.write"),
        "embedding_label": str(collection.space),
        "page_total": collection.page_total,
    }


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def settings(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show and change a collection's settings."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    form = (
        CollectionForm(request.POST) if request.method == "POST" else CollectionForm.of(collection)
    )
    if request.method == "POST" and form.is_valid():
        try:
            services.collection_update(
                tenant=request.tenant,
                actor=request.actor,
                collection=collection,
                **form.cleaned_data,
            )
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            messages.success(request, "Settings saved.")
            return redirect("collections:settings", tenant_slug, pk)
    context = section(request, collection, "settings") | {
        "form": form,
        "can_delete": request.actor.can("collection.delete"),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/settings.html", context, status=status)


@require_POST
@allowed("collection.delete")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a collection whose name was typed to confirm."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    if request.POST.get("confirm", "").strip() != collection.name:
        messages.error(request, "Nothing was deleted: the name you typed is another one.")
        return redirect("collections:settings", tenant_slug, pk)
    services.collection_delete(tenant=request.tenant, actor=request.actor, collection=collection)
    messages.success(request, f"“{collection.name}” and its documents are deleted.")
    return redirect("collections:list", tenant_slug)


@require_POST
@allowed("document.write")
def upload(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Take one file; answer with its row (201), or with the row of the document that has these bytes (200)."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    uploaded = services.document_upload(
        tenant=request.tenant, actor=request.actor, collection=collection, **posted_file(request)
    )
    return _row(request, collection, uploaded.document, status=201 if uploaded.created else 200)


def _row(
    request: TenantRequest, collection: Collection, document: Document, status: int = 200
) -> HttpResponse:
    context = {"collection": collection, "document": document, "can_write": True}
    return render(request, "collections/_document_row.html", context, status=status)


@require_POST
@allowed("document.write")
def document_retry(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Ingest a failed document again."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    row = services.document_retry(tenant=request.tenant, actor=request.actor, document=document)
    return _row(request, document.collection, row)


@require_POST
@allowed("document.write")
def document_cancel(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Stop a document's ingestion."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    row = services.document_cancel(tenant=request.tenant, actor=request.actor, document=document)
    return _row(request, document.collection, row)


@require_POST
@allowed("document.write")
def document_delete(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Delete a document; the answer lets htmx drop its row."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    services.document_delete(tenant=request.tenant, actor=request.actor, document=document)
    if request.headers.get("HX-Request"):
        return reswap(HttpResponse(), "delete")
    return redirect("collections:detail", tenant_slug, pk)


@require_GET
@allowed("collection.read")
def chunks(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Leaf through a collection's chunks."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    document = None
    if request.GET.get("document", "").isdecimal():
        document = selectors.document_get(
            actor=request.actor, pk=int(request.GET["document"]), collection_pk=pk
        )
    rows = selectors.chunk_list(actor=request.actor, collection=collection, document=document)
    page = Paginator(rows, CHUNKS_PER_PAGE).get_page(request.GET.get("page"))
    context = section(request, collection, "chunks") | {
        "chunks": page.object_list,
        "page_obj": page,
        "document": document,
        "query": urlencode({"document": document.pk}) if document else "",
    }
    return render(request, "collections/chunks.html", context)


@require_GET
@allowed("search.run")
def search(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what a question finds, with the rank of each leg."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    q = " ".join(request.GET.get("q", "").replace("\x00", " ").split())
    context: dict[str, Any] = {"collection": collection, "q": q, "results": []}
    if q:
        found = search_run(
            tenant=request.tenant, actor=request.actor, collections=[collection], query=q
        )
        context |= {
            "results": [_result(hit, q) for hit in found.hits],
            "elapsed_ms": found.elapsed_ms,
            "note": found.note,
        }
    if request.headers.get("HX-Request"):
        return render(request, "collections/_search_results.html", context)
    return render(
        request, "collections/search.html", section(request, collection, "search") | context
    )


def _result(hit: SearchHit, q: str) -> dict[str, Any]:
    chunk = SimpleNamespace(
        pk=hit.chunk_id,
        page_start=hit.page_start,
        headings=hit.headings,
        document=SimpleNamespace(pk=hit.document_id, name=hit.document_name),
    )
    return {
        "chunk": chunk,
        "segments": segments_of(hit.text, q),
        "score": hit.score,
        "vector_rank": hit.vector_rank,
        "lexical_rank": hit.lexical_rank,
        "is_exact": hit.is_exact,
    }


_WORD = re.compile(r"\S+")


def segments_of(text: str, q: str) -> list[dict[str, Any]]:
    """Cut a text into parts that hold words of a question (by their stems) and parts that do not."""
    wanted = set(tokenise(q))
    segments: list[dict[str, Any]] = []
    position = 0
    for match in _WORD.finditer(text):
        if wanted.isdisjoint(tokenise(match.group())):
            continue
        if match.start() > position:
            segments.append({"text": text[position : match.start()], "is_match": False})
        segments.append({"text": match.group(), "is_match": True})
        position = match.end()
    segments.append({"text": text[position:], "is_match": False})
    return segments

"""Pages of collections. They hold no rules: selectors read, services write."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import reswap

from apps.collections.collection import samples, services
from apps.collections.collection.forms import CollectionForm
from apps.collections.collection.upkeep_views import swap_context
from apps.collections.display import selectors
from apps.collections.display.page_parts import chosen, section
from apps.collections.display.waiting import waiting_note
from apps.collections.documents import services as documents_services
from apps.collections.documents.uploads import posted_file, upload_limits
from apps.collections.imports import services as imports_services
from apps.collections.ingestion.sources.archives import is_archive
from apps.collections.models import Collection, Document, DocumentSource, DocumentStatus
from apps.collections.search import selectors as search_selectors
from basics.errors import Conflict, Invalid
from erasure.models import Erasure
from web.requests import TenantRequest, allowed, may_lag
from web.views.erasure import content_erasure_page

DOCUMENTS_PER_PAGE = 50
ORDERS = [
    ("newest", gettext_lazy("Newest first")),
    ("oldest", gettext_lazy("Oldest first")),
    ("path", gettext_lazy("By path")),
    ("size", gettext_lazy("Largest first")),
    ("chunks", gettext_lazy("Most passages")),
]


@require_GET
@allowed("collection.read")
@may_lag
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
    """Make a collection and go to it; a script that then uploads files gets its addresses (201)."""
    form = CollectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.collection_create(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            if request.headers.get("HX-Request"):
                return render(request, "collections/_created.html", {"collection": row}, status=201)
            return redirect("collections:detail", tenant_slug, row.pk)
    context = {"form": form, "can_upload": request.actor.can("document.write"), **upload_limits()}
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/create.html", context, status=status)


@require_POST
@allowed("collection.write")
def sample(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Add the sample collection and go to it."""
    try:
        row = samples.sample_add(tenant=request.tenant, actor=request.actor)
    except (Invalid, Conflict) as error:
        messages.error(request, error.message)
        return redirect("collections:list", tenant_slug)
    return redirect("collections:detail", tenant_slug, row.pk)


@require_GET
@allowed("collection.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a collection's documents, live."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    shown = chosen(request, "q", "status", "document_type", "tag", "order")
    rows = selectors.document_list(actor=request.actor, collection=collection, **shown)
    page = Paginator(rows, DOCUMENTS_PER_PAGE).get_page(request.GET.get("page"))
    documents = list(page.object_list)
    waiting_note(documents)
    facets = selectors.document_facets(actor=request.actor, collection=collection)
    context = section(request, collection, "documents")
    context |= {
        "documents": documents,
        "example": selectors.collection_example(collection=collection) if context["can_manage"] else None,
        "page_obj": page,
        "query": urlencode({k: v for k, v in shown.items() if v}),
        "is_filtered": any(v for k, v in shown.items() if k != "order"),
        **shown,
        "status_choices": DocumentStatus.choices,
        "types": facets.types,
        "tags": facets.tags,
        "orders": ORDERS,
        **upload_limits(),
        "stream_after": max((stamp(d) for d in documents), default=0),
    }
    return render(request, "collections/detail.html", context)


def stamp(document: Document) -> int:
    """Return when a document last changed, in microseconds: the position of its frame in the stream."""
    return round(document.updated_at.timestamp() * 1_000_000)


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def settings(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show and change a collection's settings."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    form = CollectionForm(request.POST) if request.method == "POST" else CollectionForm.of(collection)
    if request.method == "POST" and form.is_valid():
        try:
            services.collection_update(
                tenant=request.tenant, actor=request.actor, collection=collection, **form.cleaned_data
            )
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            messages.success(request, _("Settings saved."))
            return redirect("collections:settings", tenant_slug, pk)
    context = swap_context(request, collection) | section(request, collection, "settings")
    context |= {
        "form": form,
        "can_delete": request.actor.can("collection.delete"),
        "snapshots": list(search_selectors.snapshot_list(actor=request.actor, collection=collection)[:50]),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/settings.html", context, status=status)


@require_POST
@allowed("collection.delete")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a collection whose name was typed to confirm."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    if request.POST.get("confirm", "").strip() != collection.name:
        messages.error(request, _("Nothing was deleted: the name you typed doesn't match."))
        return redirect("collections:settings", tenant_slug, pk)
    services.collection_delete(tenant=request.tenant, actor=request.actor, collection=collection)
    messages.success(request, _("“%(name)s” and its documents are deleted.") % {"name": collection.name})
    return redirect("collections:list", tenant_slug)


@require_POST
@allowed("document.write")
def upload(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Take one file; answer with its row (201), or with the row of the document that has these bytes (200).

    An archive is imported; the answer (202) leads to the import.
    """
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    posted = posted_file(request)
    if is_archive(posted["name"]):
        row = imports_services.import_start(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            source=DocumentSource.ARCHIVE,
            options=imports_services.ImportOptions(),
            **posted,
        )
        shown = {"collection": collection, "row": row}
        return render(request, "collections/_archive_taken.html", shown, status=202)
    uploaded = documents_services.document_upload(
        tenant=request.tenant, actor=request.actor, collection=collection, **posted
    )
    return _row(request, collection, uploaded.document, status=201 if uploaded.created else 200)


def _row(
    request: TenantRequest, collection: Collection, document: Document, status: int = 200
) -> HttpResponse:
    waiting_note([document])
    context = {"collection": collection, "document": document, "can_write": True}
    return render(request, "collections/_document_row.html", context, status=status)


@require_POST
@allowed("document.write")
def document_retry(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Ingest a failed document again."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    row = documents_services.document_retry(tenant=request.tenant, actor=request.actor, document=document)
    return _row(request, document.collection, row)


@require_POST
@allowed("document.write")
def document_cancel(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Stop a document's ingestion."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    row = documents_services.document_cancel(tenant=request.tenant, actor=request.actor, document=document)
    return _row(request, document.collection, row)


@require_POST
@allowed("document.write")
def document_delete(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Delete a document; the answer lets htmx drop its row."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    documents_services.document_delete(tenant=request.tenant, actor=request.actor, document=document)
    if request.headers.get("HX-Request"):
        return reswap(HttpResponse(), "delete")
    return redirect("collections:detail", tenant_slug, pk)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("document.write")
def document_erase(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Show what erasing a document does; POST asks for it."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    return content_erasure_page(
        request,
        kind=Erasure.Kind.DOCUMENT,
        subject=document,
        back=reverse("collections:detail", args=[tenant_slug, pk]),
        goes=_(
            "its quotes in past answers, the sentences that mention it, and dataset rows and evaluation answers made "
            "from it"
        ),
    )

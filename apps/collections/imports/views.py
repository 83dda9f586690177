"""Pages of imports. They hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.display import selectors
from apps.collections.display.page_parts import section
from apps.collections.imports import selectors as import_selectors
from apps.collections.imports import services
from apps.collections.imports.forms import ImportForm
from apps.collections.imports.limits import paths_allowed
from apps.collections.imports.reasons import problems_named
from apps.collections.models import Collection, Import
from basics.errors import Conflict, Invalid
from web.requests import TenantRequest, allowed

PER_PAGE = 25


@require_http_methods(["GET", "POST"])
@allowed("document.write")
def imports(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """List a collection's imports, and start one."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.import_start(
                tenant=request.tenant,
                actor=request.actor,
                collection=collection,
                source=form.cleaned_data["source"],
                options=form.options(),
                **form.file_given(),
            )
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            return redirect("collections:import", tenant_slug, pk, row.pk)
    rows = import_selectors.import_list(actor=request.actor, collection=collection)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = section(request, collection, "documents") | {
        "form": form,
        "imports": list(page.object_list),
        "page_obj": page,
        "query": "",
        "server_paths": [str(path) for path in paths_allowed(request.tenant.slug)],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/imports.html", context, status=status)


@require_GET
@allowed("document.write")
def detail(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponse:
    """Show how far an import is, and what it left out; the fragment asks for itself while it runs."""
    row = import_selectors.import_get(actor=request.actor, pk=import_pk, collection_pk=pk)
    if request.headers.get("HX-Request"):
        return _state(request, row.collection, row)
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    context = section(request, collection, "documents") | _shown(row)
    return render(request, "collections/import.html", context)


@require_POST
@allowed("document.write")
def cancel(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponse:
    """Stop an import."""
    row = import_selectors.import_get(actor=request.actor, pk=import_pk, collection_pk=pk)
    row = services.import_cancel(tenant=request.tenant, actor=request.actor, row=row)
    return _state(request, row.collection, row)


@require_POST
@allowed("document.write")
def retry(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponse:
    """Do an import again."""
    row = import_selectors.import_get(actor=request.actor, pk=import_pk, collection_pk=pk)
    row = services.import_retry(tenant=request.tenant, actor=request.actor, row=row)
    return _state(request, row.collection, row)


def _state(request: TenantRequest, collection: Collection, row: Import) -> HttpResponse:
    return render(request, "collections/_import.html", {"collection": collection} | _shown(row))


def _shown(row: Import) -> dict[str, Any]:
    return {"row": row, "problems": list(problems_named(row))}

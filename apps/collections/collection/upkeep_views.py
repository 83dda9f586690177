"""Pages that keep a collection well: its check, its embedding model, its named moments, rules for document types and scans."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.collection import selectors as kept_rows
from apps.collections.collection import swaps as collection_swaps
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.display import selectors
from apps.collections.display.page_parts import clean, section
from apps.collections.documents import selectors as documents_selectors
from apps.collections.documents import type_rules as documents_type_rules
from apps.collections.documents import versions
from apps.collections.index import code_patterns as index_code_patterns
from apps.collections.index.codes import code_patterns_get
from apps.collections.index.embedding import embedder_choices
from apps.collections.ingestion.code_kinds import code_kinds_parse
from apps.collections.ingestion.codes import SHIPPED, CodesInvalid
from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.ingestion.ocr.tesseract import tesseract_languages
from apps.collections.pipeline.ocr_settings import recognition_set, recognition_state
from apps.collections.search import cases
from apps.collections.search import selectors as search_selectors
from basics.errors import DomainError, Missing
from web.requests import TenantRequest, allowed

SWAP_STEPS = {
    "switch": collection_swaps.swap_switch,
    "undo": collection_swaps.swap_undo,
    "drop": collection_swaps.swap_drop,
    "cancel": collection_swaps.swap_cancel,
    "retry": collection_swaps.swap_retry,
}

_SAMPLE = 4000  # characters of a text that patterns are tried on
_NO_PATTERNS = {"version": 1, "kinds": []}


@require_http_methods(["GET", "POST"])
@allowed("collection.delete")
def check(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Check a collection (``?run=1``), or put right what can be (POST)."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    found = None
    if request.method == "POST" or request.GET.get("run"):
        found = ingestion_check(
            tenant=request.tenant, actor=request.actor, collection=collection, repair=request.method == "POST"
        )
        found = kept_rows.check_shown(actor=request.actor, collection=collection, check=found)
    context = section(request, collection, "check") | {"check": found}
    return render(request, "collections/check.html", context)


@require_POST
@allowed("document.write")
def collection_reindex(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Read every document of a collection again."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    count = versions.collection_reindex(tenant=request.tenant, actor=request.actor, collection=collection)
    messages.success(
        request,
        ngettext("%(count)s document to be read again.", "%(count)s documents to be read again.", count)
        % {"count": count},
    )
    return redirect("collections:detail", tenant_slug, pk)


@require_POST
@allowed("collection.write")
def swap_start(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Begin the move to another embedding model."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    try:
        collection_swaps.swap_start(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            embedder=clean(request.POST.get("embedder", "")),
        )
    except DomainError as error:
        messages.error(request, _("Nothing was started: %(message)s") % {"message": error.message})
    else:
        messages.success(request, _("The new vectors are being built. Search continues with the old ones."))
    return redirect("collections:settings", tenant_slug, pk)


@require_POST
@allowed("collection.write")
def swap_step(request: TenantRequest, tenant_slug: str, pk: int, swap_pk: int) -> HttpResponse:
    """Switch, undo, drop, cancel or retry."""
    swap = kept_rows.swap_get(actor=request.actor, pk=swap_pk)
    step = SWAP_STEPS.get(request.POST.get("step", ""))
    if swap.collection_id != pk or step is None:
        raise Missing("swap")
    try:
        step(tenant=request.tenant, actor=request.actor, swap=swap)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("collections:settings", tenant_slug, pk)


@require_GET
@allowed("collection.write")
def swap_state(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Return the panel of the embedding model as it is now, for the page that watches it."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    return render(request, "collections/_swap.html", swap_context(request, collection))


def swap_context(request: TenantRequest, collection: Any) -> dict[str, Any]:
    """Return what the panel of the embedding model shows."""
    swaps = list(kept_rows.swap_list(actor=request.actor, collection=collection)[:5])
    return {
        "collection": collection,
        "swap": swaps[0] if swaps else None,
        "earlier": swaps[1:],
        "embedders": embedder_choices(),
    }


@require_POST
@allowed("collection.write")
def snapshot_create(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Give this moment a name."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    try:
        cases.snapshot_create(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            name=clean(request.POST.get("name", "")),
        )
    except DomainError as error:
        told = [" ".join(texts) for texts in (error.data.get("fields") or {}).values()]
        messages.error(request, " ".join([error.message, *told]))
    else:
        messages.success(request, _("Moment saved. The search test can now search as of it."))
    return redirect("collections:settings", tenant_slug, pk)


@require_POST
@allowed("collection.write")
def snapshot_delete(request: TenantRequest, tenant_slug: str, pk: int, snapshot_pk: int) -> HttpResponse:
    """Forget the name of a moment."""
    snapshot = search_selectors.snapshot_get(actor=request.actor, pk=snapshot_pk)
    cases.snapshot_delete(tenant=request.tenant, actor=request.actor, snapshot=snapshot)
    return redirect("collections:settings", tenant_slug, pk)


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def type_rules(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show and replace the workspace's rules for document types; ``?example=1`` fills in those for trade."""
    status, problem = 200, ""
    if request.method == "POST":
        text = request.POST.get("rules", "")
        try:
            rules = json.loads(text) if text.strip() else None
            documents_type_rules.type_rules_set(tenant=request.tenant, actor=request.actor, rules=rules)
        except (ValueError, RecursionError) as error:
            status, problem = 422, _("This isn't JSON: %(error)s") % {"error": error}
        except DomainError as error:
            status, problem = 422, error.message
        else:
            messages.success(request, _("Saved. Existing documents get their types in the background."))
            return redirect("collections:type-rules", tenant_slug)
    else:
        example = request.GET.get("example")
        rules = (
            trade_compliance_data() if example else documents_selectors.type_rules_get(actor=request.actor)
        )
        text = "" if rules is None else json.dumps(rules, indent=1, ensure_ascii=False)
    context = {"text": text, "problem": problem, "is_example": bool(request.GET.get("example"))}
    return render(request, "collections/type_rules.html", context, status=status)


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def code_patterns(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show, try on a text and replace the workspace's patterns of codes."""
    status, problem = 200, ""
    row = code_patterns_get(actor=request.actor)
    text = "" if row is None else json.dumps(row.patterns, indent=1, ensure_ascii=False)
    sample, found = request.POST.get("text", "")[:_SAMPLE], None
    if request.method == "POST":
        text = request.POST.get("patterns", "")
        try:
            patterns = json.loads(text) if text.strip() else None
            if "try" in request.POST:
                found = code_kinds_parse(patterns or _NO_PATTERNS).find(sample)
            else:
                index_code_patterns.code_patterns_set(
                    tenant=request.tenant, actor=request.actor, patterns=patterns
                )
                messages.success(request, _("Saved. Existing passages are re-indexed in the background."))
                return redirect("collections:code-patterns", tenant_slug)
        except (ValueError, RecursionError) as error:
            status, problem = 422, _("This isn't JSON: %(error)s") % {"error": error}
        except CodesInvalid as error:
            status, problem = 422, error.message
    context = {
        "text": text,
        "problem": problem,
        "sample": sample,
        "found": found,
        "shipped": [kind.name for kind in SHIPPED],
        "late": [] if row is None else row.late,
    }
    return render(request, "collections/code_patterns.html", context, status=status)


@require_http_methods(["GET", "POST"])
@allowed("collection.delete")
def recognition(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show and change how scans are read in the workspace, and what that has cost this month."""
    problems: dict[str, list[str]] = {}
    if request.method == "POST":
        text = request.POST.get("cpu_seconds", "").strip()
        if text and not (text.isascii() and text.isdigit() and len(text) < 12):
            problems["cpu_seconds"] = [_("Enter a whole number, or leave it empty.")]
        else:
            try:
                recognition_set(
                    tenant=request.tenant,
                    actor=request.actor,
                    is_on=request.POST.get("is_on") == "on",
                    languages=clean(request.POST.get("languages", "")),
                    cpu_seconds=int(text) if text else None,
                )
            except DomainError as error:
                problems = error.data.get("fields") or {"languages": [error.message]}
            else:
                messages.success(request, _("Saved. It applies to pages read from now on."))
                return redirect("collections:recognition", tenant_slug)
    state = recognition_state(request.tenant.pk)
    context = {
        "state": state,
        "percent": min(100, round(100 * state.used / state.budget)) if state.budget else 100,
        "installed": sorted(tesseract_languages()),
        "problems": {name: " ".join(texts) for name, texts in problems.items()},
    }
    return render(request, "collections/recognition.html", context, status=422 if problems else 200)

"""The search test bench: a question with filters and settings, what it finds, how it came to that, and saved questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from apps.collections.display import selectors
from apps.collections.display.page_parts import chunk_dress, clean, section, segments_of
from apps.collections.models import Collection
from apps.collections.search import FIELDS, LEGS, OPERATORS, SearchHit, SearchResult, search_run
from apps.collections.search import cases as search_cases
from apps.collections.search import selectors as search_selectors
from basics.errors import DomainError, Invalid
from web.requests import TenantRequest, allowed, may_lag

FILTER_ROWS = 3
LEG_NAMES = {
    "vector": gettext_lazy("Meaning"),
    "lexical": gettext_lazy("Words"),
    "exact": gettext_lazy("Exact codes"),
}
OUTCOMES = {
    "returned": gettext_lazy("Returned"),
    "beyond_k": gettext_lazy("Beyond k"),
    "reranked_below_k": gettext_lazy("Reranked below k"),
}
_NUMBERS = ("document_id", "page")
_LISTS = ("in", "nin", "all")


@require_GET
@allowed("search.run")
@may_lag
def search(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what a question finds, with the rank of each leg, what was dropped and what was passed over."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    q = " ".join(request.GET.get("q", "").replace("\x00", " ").split())
    context: dict[str, Any] = {"collection": collection, "q": q, "results": []}
    status = 200
    if q:
        try:
            context |= _answered(request, collection, q)
        except DomainError as error:
            context["refused"] = error.message
            status = error.status
    if request.headers.get("HX-Request"):
        return render(request, "collections/_search_results.html", context, status=status)
    context |= section(request, collection, "search") | _bench(request, collection)
    return render(request, "collections/search.html", context, status=status)


def _answered(request: TenantRequest, collection: Collection, q: str) -> dict[str, Any]:
    found = search_run(
        tenant=request.tenant,
        actor=request.actor,
        collections=[collection],
        query=q,
        k=_number(request.GET, "k", 10),
        expand=_number(request.GET, "expand", 0),
        filters=filters_of(request.GET),
        legs=tuple(leg for leg in request.GET.getlist("legs") if leg in LEGS) or LEGS,
        as_of=_moment(request),
        trace=True,
    )
    return {
        "results": [_result(hit, q, collection.lexical_forms) for hit in found.hits],
        "elapsed_ms": found.elapsed_ms,
        "note": found.note,
        "as_of": found.as_of,
        "trace": _trace(found),
    }


def _number(data: QueryDict, name: str, default: int) -> int:
    value = data.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 6 else default


def _moment(request: TenantRequest) -> datetime | None:
    """Return the moment of the address: a snapshot's, or a date and time."""
    snapshot, at = request.GET.get("snapshot", ""), request.GET.get("as_of", "").strip()
    if snapshot.isdecimal() and len(snapshot) < 19:
        return search_selectors.snapshot_get(actor=request.actor, pk=int(snapshot)).at
    if not at:
        return None
    try:
        moment = parse_datetime(at)
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid("as_of_invalid", _("The moment must be a date and time."))
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def filters_of(data: QueryDict) -> dict[str, Any]:
    """Return the filters that the rows of the form say; search judges them.

    A value of "in", "nin" and "all" is a list with commas; one of numbers, or of the team's own metadata, is read as
    JSON where it is.
    """
    filters: dict[str, Any] = {}
    rows = zip(data.getlist("field"), data.getlist("op"), data.getlist("value"), strict=False)
    for name, operator, value in rows:
        name, value = clean(name), clean(value)
        if not name or not value:
            continue
        parts = [p.strip() for p in value.split(",")] if operator in _LISTS else [value]
        typed = [_typed(name, part) for part in parts if part]
        wanted = typed if operator in _LISTS else typed[0]
        filters.setdefault(name, {})[operator or "eq"] = wanted
    return filters


def _typed(name: str, value: str) -> Any:
    if name not in _NUMBERS and not name.startswith("attributes."):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, (int, float, bool)) else value


def _bench(request: TenantRequest, collection: Collection) -> dict[str, Any]:
    """Return what the form shows: what was asked, and what there is to choose."""
    data = request.GET
    asked = list(zip(data.getlist("field"), data.getlist("op"), data.getlist("value"), strict=False))
    asked = [row for row in asked if row[0] or row[2]][:20]
    blank = [("", "eq", "")] * max(1, FILTER_ROWS - len(asked))
    cases = search_selectors.search_case_list(actor=request.actor, collection=collection)[:20]
    legs = data.getlist("legs") or list(LEGS)
    return {
        "filter_rows": [*asked, *blank],
        "fields": [f for f in FIELDS if "<" not in f],
        "operators": OPERATORS,
        "legs": [(leg, LEG_NAMES[leg], leg in legs) for leg in LEGS],
        "k": _number(data, "k", 10),
        "expand": _number(data, "expand", 0),
        "as_of_text": data.get("as_of", ""),
        "snapshots": list(search_selectors.snapshot_list(actor=request.actor, collection=collection)[:50]),
        "snapshot": data.get("snapshot", ""),
        "cases": search_selectors.cases_shown(actor=request.actor, cases=cases),
        "filters_text": json.dumps(filters_of(data), ensure_ascii=False),
        "is_tuned": bool(asked or data.get("as_of") or data.get("snapshot")) or set(legs) != set(LEGS),
        "query_string": data.urlencode(),
    }


def _result(hit: SearchHit, q: str, forms: Sequence[str]) -> dict[str, Any]:
    chunk = SimpleNamespace(
        pk=hit.chunk_id,
        page_start=hit.page_start,
        headings=hit.headings,
        metadata=hit.metadata,
        kind=hit.kind,
        is_edited=False,
        document=SimpleNamespace(pk=hit.document_id, name=hit.document_name),
    )
    return {
        "chunk": chunk_dress(chunk),
        "segments": segments_of(hit.text, q, forms),
        "before": hit.before,
        "after": hit.after,
        "score": hit.score,
        "vector_rank": hit.vector_rank,
        "lexical_rank": hit.lexical_rank,
        "is_exact": hit.is_exact,
    }


def _trace(found: SearchResult) -> dict[str, Any] | None:
    trace = found.trace
    if trace is None:
        return None
    hidden: list[tuple[int, str]] = []
    if trace.hidden is not None:
        hidden = [
            (trace.hidden.not_ready, _("%(count)s not ready")),
            (trace.hidden.not_live, _("%(count)s not live")),
            (trace.hidden.not_permitted, _("%(count)s limited to others")),
            (trace.hidden.filtered, _("%(count)s matching the filters")),
            (trace.hidden.chunks_disabled, _("%(count)s passages excluded")),
        ]
    return {
        "searched": trace.searched,
        "terms": trace.terms,
        "identifiers": trace.identifiers,
        "legs": [(LEG_NAMES[name], leg) for name, leg in trace.legs.items()],
        "candidates": [{"row": c, "outcome": OUTCOMES.get(c.outcome, c.outcome)} for c in trace.candidates],
        "hidden": [text % {"count": count} for count, text in hidden if count],
        "timings": trace.timings_ms,
        "reranker": trace.reranker,
    }


@require_POST
@allowed("collection.write")
def case_save(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Save the question of the bench with the passages that were ticked."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    data = request.POST
    try:
        filters = json.loads(data.get("filters", "") or "{}")
        search_cases.search_case_save(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            query=data.get("query", ""),
            chunks=[int(c) for c in data.getlist("chunks") if c.isdecimal() and len(c) < 19],
            filters=filters if isinstance(filters, dict) else {},
            k=_number(data, "k", 10),
            note=data.get("note", ""),
        )
    except (DomainError, ValueError) as error:
        told = (
            _("Nothing was saved: %(message)s") % {"message": error.message}
            if isinstance(error, DomainError)
            else _("Nothing was saved: the filters aren't JSON.")
        )
        messages.error(request, told)
    else:
        messages.success(request, _("Test question saved."))
    return _back(request, tenant_slug, pk)


@require_POST
@allowed("collection.write")
def case_delete(request: TenantRequest, tenant_slug: str, pk: int, case_pk: int) -> HttpResponse:
    """Delete a saved question."""
    case = search_selectors.search_case_get(actor=request.actor, pk=case_pk)
    search_cases.search_case_delete(tenant=request.tenant, actor=request.actor, case=case)
    messages.success(request, _("Test question deleted."))
    return _back(request, tenant_slug, pk)


def _back(request: HttpRequest, tenant_slug: str, pk: int) -> HttpResponse:
    answer = redirect("collections:search", tenant_slug, pk)
    if query := request.POST.get("query_string", ""):
        answer["Location"] += "?" + QueryDict(query[:4000]).urlencode()
    return answer

"""Pages of versions: the list, a version's manifest, what changed between two. They hold no rules."""

from __future__ import annotations

import json
from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from apps.datasets.curation.contexts import section_context
from apps.datasets.models import Dataset, RowStatus
from apps.datasets.rows import selectors
from apps.datasets.rows.page_values import number
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.versions import diffs, services
from apps.datasets.versions.services import version_is_intact
from basics.errors import Conflict
from basics.texts import number_told
from web.requests import TenantRequest, allowed, may_lag

SHOWN, COMPARED, PER_PAGE = 100, 20, 50
_KINDS: dict[diffs.Change, Any] = {
    "added": gettext_lazy("Added"),
    "removed": gettext_lazy("Removed"),
    "changed": gettext_lazy("Changed"),
}


@require_http_methods(["GET", "POST"])
@allowed("dataset.read")
def versions(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """List versions, and freeze rows into the next one."""
    context = section_context(actor=request.actor, pk=pk, tab="versions")
    dataset: Dataset = context["dataset"]
    if request.method == "POST":
        return _freeze(request, tenant_slug, dataset)
    rows = selectors.version_list(actor=request.actor, dataset=dataset)
    context |= {"versions": list(rows[:SHOWN])}
    return render(request, "datasets/versions.html", context)


def _freeze(request: TenantRequest, tenant_slug: str, dataset: Dataset) -> HttpResponse:
    only = RowFilter(status=RowStatus.APPROVED) if request.POST.get("approved") else RowFilter()
    try:
        made = services.version_create(
            tenant=request.tenant,
            actor=request.actor,
            dataset=dataset,
            only=only,
            note=request.POST.get("note", ""),
        )
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("datasets:versions", tenant_slug, dataset.pk)
    told = ngettext(
        "Version %(number)s has %(count)s row.", "Version %(number)s has %(count)s rows.", made.row_count
    )
    messages.success(request, told % {"number": made.number, "count": number_told(made.row_count)})
    return redirect("datasets:version", tenant_slug, dataset.pk, made.number)


@require_GET
@allowed("dataset.read")
def version(request: TenantRequest, tenant_slug: str, pk: int, number: int) -> HttpResponse:
    """Show what a version is made of: its hash, its signature, its manifest."""
    context = section_context(actor=request.actor, pk=pk, tab="versions")
    dataset: Dataset = context["dataset"]
    row = selectors.version_get(actor=request.actor, dataset=dataset, number=number)
    others = selectors.version_list(actor=request.actor, dataset=dataset).exclude(pk=row.pk)
    context |= {
        "row": row,
        "is_intact": version_is_intact(row),
        "splits": selectors.version_splits(actor=request.actor, version=row),
        "lengths": row.manifest.get("lengths"),
        "scores": row.manifest.get("scores"),
        "manifest": json.dumps(row.manifest, ensure_ascii=False, indent=2, sort_keys=True),
        "others": list(others.values_list("number", flat=True)[:COMPARED]),
    }
    return render(request, "datasets/version.html", context)


@require_GET
@allowed("dataset.read")
@may_lag
def diff(request: TenantRequest, tenant_slug: str, pk: int, older: int, newer: int) -> HttpResponse:
    """Show what changed between two versions, a page of one kind of change."""
    context = section_context(actor=request.actor, pk=pk, tab="versions")
    versions = [
        selectors.version_get(actor=request.actor, dataset=context["dataset"], number=number)
        for number in (older, newer)
    ]
    kind = next((one for one in _KINDS if one == request.GET.get("kind")), "changed")
    counts = diffs.version_counts(actor=request.actor, older=versions[0], newer=versions[1])
    # To find that there is none would cost as much as to count them.
    found = (
        []
        if not getattr(counts, kind)
        else diffs.version_changes(
            actor=request.actor,
            older=versions[0],
            newer=versions[1],
            kind=cast("diffs.Change", kind),
            after=number(request.GET.get("after", "")),
            limit=PER_PAGE + 1,
        )
    )
    context |= {
        "older": versions[0],
        "newer": versions[1],
        "counts": counts,
        "kinds": [(name, label, getattr(counts, name)) for name, label in _KINDS.items()],
        "kind": kind,
        "changes": found[:PER_PAGE],
        "next": found[PER_PAGE - 1].ref if len(found) > PER_PAGE else None,
    }
    return render(request, "datasets/diff.html", context)

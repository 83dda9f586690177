"""The page of a dataset's sources and their licences. It holds no rules: selectors read, services write."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from apps.datasets.curation.contexts import section_context
from apps.datasets.licences import services
from apps.datasets.licences.selectors import source_list
from apps.datasets.models import Dataset
from basics.errors import Invalid
from basics.texts import number_told
from web.requests import TenantRequest, allowed

PER_PAGE = 50
LICENSES = (
    "CC0-1.0",
    "CC-BY-4.0",
    "CC-BY-SA-4.0",
    "MIT",
    "Apache-2.0",
    "BSD-3-Clause",
    "GPL-3.0-only",
    "Public domain",
    "Proprietary",
)
"""Suggestions only; you can enter any licence."""


@require_http_methods(["GET", "POST"])
@allowed("dataset.read")
def sources(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """List the documents that rows quote with their licences, and set one."""
    context = section_context(actor=request.actor, pk=pk, tab="sources")
    dataset: Dataset = context["dataset"]
    if request.method == "POST":
        return _license_set(request, tenant_slug, dataset)
    after = request.GET.get("after", "").replace("\x00", "")
    found = source_list(actor=request.actor, dataset=dataset, after=after, most=PER_PAGE + 1)
    context |= {
        "sources": found[:PER_PAGE],
        "after": after,
        "next": found[PER_PAGE - 1].document if len(found) > PER_PAGE else "",
        "licenses": LICENSES,
    }
    return render(request, "datasets/sources.html", context)


def _license_set(request: TenantRequest, tenant_slug: str, dataset: Dataset) -> HttpResponse:
    try:
        changed = services.source_license_set(
            tenant=request.tenant,
            actor=request.actor,
            dataset=dataset,
            document=request.POST.get("document", "").replace("\x00", ""),
            licence=request.POST.get("license", "").replace("\x00", ""),
        )
    except Invalid as error:
        messages.error(request, error.message)
    else:
        told = ngettext("Licence set in %(count)s row.", "Licence set in %(count)s rows.", changed)
        messages.success(request, told % {"count": number_told(changed)})
    return redirect("datasets:sources", tenant_slug, dataset.pk)

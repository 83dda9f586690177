"""The command palette's answers."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from web.palette import palette_groups
from web.requests import TenantRequest, allowed

_MAX_QUERY = 100


@never_cache
@require_GET
@allowed("tenant.read")
def palette(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Return what matches the query, as the inside of the palette's list."""
    query = request.GET.get("q", "").replace("\0", "").strip()[:_MAX_QUERY]
    groups = palette_groups(tenant=request.tenant, actor=request.actor, query=query)
    return render(request, "components/_palette.html", {"query": query, "groups": groups})

"""The dry run as a page: what a member, a key or a role can see and do, and why."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.tools.catalog.selectors import Choice, catalog_narrow
from apps.tools.permissions.dry_run import access_explain
from apps.tools.permissions.subjects import subjects_read
from tenancy.permissions import ACTIONS
from web.requests import TenantRequest, allowed

TOOLS_PER_PAGE = 100
_LONGEST = 120


@require_GET
@allowed("tool.run")
def access(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show what one subject can see and do; managers may ask about anybody, others about themselves."""
    subject = request.GET.get("subject", "").strip()[:_LONGEST]
    effect = request.GET.get("effect", "").strip()[:_LONGEST]
    found = access_explain(actor=request.actor, subject=subject)
    is_manager = request.actor.can("tool.manage")
    narrowed = catalog_narrow(found.tools, Choice(effect=effect))
    page = Paginator(narrowed, TOOLS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "permissions" if is_manager else "catalog",
        "part": "access",
        "access": found,
        "tools": [(t, found.rules.get(t.decision.rule or 0, "")) for t in page.object_list],
        "page_obj": page,
        "query": urlencode({k: v for k, v in (("subject", subject), ("effect", effect)) if v}),
        "counts": {e: sum(t.decision.effect == e for t in found.tools) for e in ("allow", "ask", "deny")},
        "rights": sorted(found.subject.actions),
        "lacks": sorted(ACTIONS - found.subject.actions),
        "subject": subject,
        "effect": effect,
        "subjects": subjects_read(actor=request.actor) if is_manager else None,
    }
    return render(request, "tools/access.html", context)

"""Settings, Audit log."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from audit.selectors import audit_actions, audit_list
from web.requests import TenantRequest, allowed

PAGE_SIZE = 50


@never_cache
@require_GET
@allowed("audit.read")
def audit(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List who did what, newest first."""
    action = request.GET.get("action", "")
    page = Paginator(audit_list(actor=request.actor, action=action), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "section": "audit",
        "events": page.object_list,
        "page_obj": page,
        "query": urlencode({"action": action}) if action else "",
        "action": action,
        "action_choices": audit_actions(actor=request.actor),
    }
    return render(request, "settings/audit.html", context)

"""The bell's list, and in which ways a person is told."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from notices import services
from notices.selectors import groups_with, is_mail_set_up, notice_list, notice_ways
from notices.sources import GROUPS, MAIL, PORTAL, WAYS
from web.requests import TenantRequest, allowed


@never_cache
@vary_on_headers("HX-Request")
@require_GET
@allowed("notice.read")
def notices(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show what the person was told of; the list alone when the bell asks for it."""
    template = "notices/_list.html" if request.htmx else "notices/page.html"
    return render(request, template, _listed(request))


@require_POST
@allowed("notice.read")
def read(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Mark one notice (``notice``) or all of them as read."""
    pk = request.POST.get("notice", "")
    if pk and not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return redirect("web:notices", tenant_slug)
    services.notices_read(tenant=request.tenant, actor=request.actor, pk=int(pk) if pk else None)
    if request.htmx:
        return render(request, "notices/_list.html", {**_listed(request), "is_changed": True})
    return redirect("web:notices", tenant_slug)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("notice.read")
def choices(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show in which ways the person is told of what; POST changes them: ``way`` is “group:way”, once for each that is on."""
    if request.method == "POST":
        _choose(request)
        messages.success(request, _("Saved."))
        return redirect("web:settings-notices", tenant_slug)
    chosen = notice_ways(actor=request.actor)
    rows = [
        {
            "label": group.label,
            "what": group.what,
            "name": name,
            "ways": [(way, label, way in chosen[name]) for way, label in WAYS.items()],
        }
        for name, group in GROUPS.items()
    ]
    context = {"section": "notices", "rows": rows, "ways": WAYS, "is_mail_set_up": is_mail_set_up()}
    return render(request, "settings/notices.html", context)


def _choose(request: TenantRequest) -> None:
    posted = {pair for pair in request.POST.getlist("way") if ":" in pair}
    ways = {name: {way for way in WAYS if f"{name}:{way}" in posted} for name in GROUPS}
    if not is_mail_set_up():  # its boxes can't be changed then
        mailed = groups_with(MAIL, notice_ways(actor=request.actor))
        for name in mailed:
            ways[name].add(MAIL)
    services.notice_ways_set(tenant=request.tenant, actor=request.actor, ways=ways)


def _listed(request: TenantRequest) -> dict[str, Any]:
    ways = notice_ways(actor=request.actor)
    told = notice_list(tenant=request.tenant, actor=request.actor, ways=ways)
    is_off = not groups_with(PORTAL, ways)
    return {"told": told, "has_unread": any(not one.is_read for one in told), "is_off": is_off}

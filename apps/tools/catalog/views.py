"""Pages of the tool catalog. They hold no rules: selectors read, services write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.tools.catalog.forms import EntryForm
from apps.tools.catalog.selectors import (
    Choice,
    Listed,
    catalog_facets,
    catalog_get,
    catalog_narrow,
    catalog_read,
)
from apps.tools.catalog.services import entry_set
from apps.tools.catalog.suggestions import Suggestion, tools_suggest
from basics.errors import Invalid
from web.forms import add_refusal
from web.requests import TenantRequest, allowed

TOOLS_PER_PAGE = 50
_LONGEST = 200


@require_GET
@allowed("tool.run")
def catalog(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the workspace's tools, narrowed as the address says; its list alone for htmx."""
    given = {key: request.GET.get(key, "").strip()[:_LONGEST] for key in asdict(Choice())}
    tools = catalog_read(actor=request.actor)
    choice = Choice(**given)
    fitting = catalog_narrow(tools, choice)
    page = Paginator(fitting, TOOLS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "catalog",
        "page_obj": page,
        "tools": page.object_list,
        "suggestions": _suggestions(request, choice, tools, fitting),
        "total": len(tools),
        "choice": choice,
        "is_narrowed": any(given.values()),
        "facets": catalog_facets(tools),
        "query": urlencode({k: v for k, v in given.items() if v}),
    }
    name = "tools/_catalog.html" if request.htmx else "tools/catalog.html"
    return render(request, name, context)


def _suggestions(
    request: TenantRequest, choice: Choice, tools: Sequence[Listed], fitting: Sequence[Listed]
) -> list[Suggestion]:
    """Return what else may fit where somebody asks in a sentence, or where no tool has all the words."""
    if not choice.q or (fitting and " " not in choice.q):
        return []
    shown = {tool.name for tool in fitting}
    others = [t for t in catalog_narrow(tools, replace(choice, q="")) if t.name not in shown]
    return tools_suggest(actor=request.actor, question=choice.q, tools=others)


@require_POST
@allowed("tool.manage")
def switch(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Switch a tool on or off for the whole workspace; answers htmx with its row."""
    listed = catalog_get(actor=request.actor, name=name)
    is_enabled = request.POST.get("is_enabled") == "true"
    entry_set(tenant=request.tenant, actor=request.actor, name=listed.name, is_enabled=is_enabled)
    if request.htmx:
        listed = catalog_get(actor=request.actor, name=name)
        return render(request, "tools/_tool_row.html", {"t": listed})
    told = _("%(tool)s is now on.") if is_enabled else _("%(tool)s is now off.")
    messages.success(request, told % {"tool": listed.title})
    return redirect("tools:tool", tenant_slug, name)


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def edit(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Change what the workspace states about a tool."""
    listed = catalog_get(actor=request.actor, name=name)
    form = EntryForm(request.POST or None, initial=EntryForm.initial_of(listed.entry))
    if request.method == "POST" and form.is_valid():
        try:
            entry_set(tenant=request.tenant, actor=request.actor, name=name, **form.changes())
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("tools:tool", tenant_slug, name)
    context = {"tab": "catalog", "listed": listed, "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "tools/edit.html", context, status=status)

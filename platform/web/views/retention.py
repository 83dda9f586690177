"""Settings, Retention: how long things of each kind are kept, with a preview of what the rules would remove."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import Invalid
from erasure.lasting import LASTING
from erasure.retention import Overview, retention_overview, retention_rules_set
from web.forms import RetentionForm
from web.requests import TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("retention.manage")
def retention(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show all rules; POST sets them, or with ``do`` preview tells what they would remove and sets nothing."""
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    is_preview = request.method == "POST" and request.POST.get("do") == "preview"
    overview = retention_overview(**who)
    form = RetentionForm(overview.rules, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            if is_preview:
                overview = retention_overview(**who, changes=form.changes())
            else:
                retention_rules_set(**who, changes=form.changes())
                messages.success(request, _("Retention rules saved."))
                return redirect("web:settings-retention", tenant_slug)
        except Invalid as error:
            for name, problems in error.data["fields"].items():
                form.add_error(name, problems)
    context = {"section": "retention", "form": form, "is_preview": is_preview and not form.errors}
    context |= {"overview": overview, "lines": _lines(form, overview), "lasting": LASTING}
    return render(request, "settings/retention.html", context, status=422 if form.errors else 200)


def _lines(form: RetentionForm, overview: Overview) -> list[dict[str, Any]]:
    return [{"rule": rule, "field": form[rule.kind.name]} for rule in overview.rules]

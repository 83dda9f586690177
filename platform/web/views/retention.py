"""Settings, Retention: how long what was said in runs is kept."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import Invalid
from erasure.retention import retention_overview
from runs.retention import retention_own, retention_set
from web.forms import RetentionForm, add_refusal
from web.requests import TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("retention.manage")
def retention(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the rule; POST sets it, and an empty field goes back to the server's default."""
    own = retention_own(request.tenant)
    form = RetentionForm(request.POST or None, initial={"days": own})
    if request.method == "POST" and form.is_valid():
        try:
            retention_set(tenant=request.tenant, actor=request.actor, days=form.cleaned_data["days"])
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, "Retention rule saved.")
            return redirect("web:settings-retention", tenant_slug)
    context = {"section": "retention", "form": form, "own": own, "default": settings.RETENTION_DAYS}
    overview = retention_overview(tenant=request.tenant, actor=request.actor)
    context |= {"hold": overview.hold, "rules": overview.rules}
    return render(request, "settings/retention.html", context, status=422 if form.errors else 200)

"""Settings, Audit log, Streams: where the workspace's audit events are sent."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from audit.selectors import stream_list
from audit.services import MAX_STREAMS, stream_create, stream_delete
from basics.errors import Invalid
from web.forms import AuditStreamForm, add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tenant.manage")
@sensitive_variables("secret")
def streams(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the streams; POST adds or removes one. A webhook's secret is shown in that one answer."""
    action = request.POST.get("action")
    if request.method == "GET":
        return _page(request, AuditStreamForm())
    if action == "remove":
        stream_delete(tenant=request.tenant, actor=request.actor, pk=posted_id(request, "pk"))
        messages.success(request, _("Stream removed."))
        return redirect("web:settings-audit-stream", tenant_slug)
    if action != "add":
        raise Http404
    form = AuditStreamForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    try:
        _row, secret = stream_create(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
    except Invalid as error:
        add_refusal(form, error)
        return _page(request, form, status=422)
    return _page(request, AuditStreamForm(), secret=secret)


def _page(
    request: TenantRequest, form: AuditStreamForm, *, secret: str = "", status: int = 200
) -> HttpResponse:
    rows = list(stream_list(actor=request.actor))
    context = {
        "section": "audit",
        "streams": rows,
        "form": form,
        "secret": secret,
        "is_full": len(rows) >= MAX_STREAMS,
    }
    return render(request, "settings/audit_stream.html", context, status=status)

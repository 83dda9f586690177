"""Settings, Outgoing hosts: where the workspace's requests may go."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import Invalid
from tenancy.outgoing import outgoing_hosts
from tenancy.services import outgoing_hosts_set
from web.forms import OutgoingHostsForm, add_refusal
from web.requests import TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tenant.manage")
def outgoing(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the list; POST replaces it."""
    hosts = outgoing_hosts(actor=request.actor)
    form = OutgoingHostsForm(request.POST or None, initial={"hosts": "\n".join(hosts)})
    # An empty field is a list without hosts, and still a form that was sent.
    if request.method == "POST" and form.is_valid():
        try:
            outgoing_hosts_set(
                tenant=request.tenant, actor=request.actor, hosts=form.cleaned_data["hosts"].split()
            )
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Outgoing hosts saved."))
            return redirect("web:settings-outgoing", tenant_slug)
    context = {"section": "outgoing", "form": form, "hosts": hosts}
    return render(request, "settings/outgoing.html", context, status=422 if form.errors else 200)

"""Settings, Connected applications."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import Conflict
from tenancy import services
from tenancy.permissions import APP_SCOPES
from tenancy.selectors import connection_list
from web.oauth.metadata import resource_of
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("app.connect")
def connections(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the applications that act for the member, for an admin everybody's; POST disconnects one."""
    if request.method == "GET":
        context = {
            "section": "connections",
            "connections": [
                (row, [words for scope, words in APP_SCOPES.items() if scope in row.scopes])
                for row in connection_list(actor=request.actor)
            ],
            "sees_all": request.actor.can("key.manage"),
            "mcp_url": resource_of(request, tenant_slug),
        }
        return render(request, "settings/connections.html", context)
    try:
        row = services.connection_revoke(
            tenant=request.tenant, actor=request.actor, key_id=posted_id(request, "connection")
        )
        messages.success(request, _("“%(name)s” is disconnected.") % {"name": row.name})
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("web:settings-connections", tenant_slug)

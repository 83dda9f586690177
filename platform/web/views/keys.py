"""Settings, API keys."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from basics.errors import Conflict, DomainError, Invalid
from basics.texts import gettext as _
from tenancy import services
from tenancy.selectors import api_key_list
from web.forms import ApiKeyForm, add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("key.manage")
@sensitive_variables("key")
def keys(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the keys; POST makes, replaces or revokes one. A new key is shown in that one answer."""
    form = ApiKeyForm(actor=request.actor)
    if request.method == "GET":
        return _page(request, form)
    tenant, actor = request.tenant, request.actor
    action = request.POST.get("action")
    if action == "create":
        form = ApiKeyForm(request.POST, actor=actor)
        if not form.is_valid():
            return _page(request, form, status=422)
        try:
            _row, key = services.api_key_create(
                tenant=tenant,
                actor=actor,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(),
                collections=form.limited_to(),
            )
        except DomainError as error:
            if error.status == 403:
                raise
            add_refusal(form, error)
            return _page(request, form, status=422)
        return _page(request, ApiKeyForm(actor=actor), new_key=key)
    try:
        if action == "rotate":
            _row, key = services.api_key_rotate(tenant=tenant, actor=actor, key_id=posted_id(request, "key"))
            return _page(request, form, new_key=key)
        if action != "revoke":
            raise Invalid("invalid", _("Unknown action."))
        row = services.api_key_revoke(tenant=tenant, actor=actor, key_id=posted_id(request, "key"))
        messages.success(request, _("The key “%(name)s” was revoked.") % {"name": row.name})
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("web:settings-keys", tenant.slug)


def _page(request: TenantRequest, form: ApiKeyForm, *, new_key: str = "", status: int = 200) -> HttpResponse:
    rows = list(api_key_list(actor=request.actor).filter(client_id=""))
    now = timezone.now()
    limits = form.fields.get("collections")
    names = dict(getattr(limits, "choices", ()))
    for row in rows:
        # What was deleted is not counted, nor the private collection of what the key itself has attached.
        limited = None if row.collections is None else [names[pk] for pk in row.collections if pk in names]
        row.limited_to = limited  # type: ignore[attr-defined]
        row.is_expired = row.expires_at is not None and row.expires_at <= now  # type: ignore[attr-defined]
    context = {
        "section": "keys",
        "keys": rows,
        "form": form,
        "can_manage": request.actor.can("key.manage"),
        "new_key": new_key,
    }
    return render(request, "settings/keys.html", context, status=status)

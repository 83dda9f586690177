"""Settings, Models: which providers and models answer for the workspace, with whose key, and what they cost."""

from __future__ import annotations

import os
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from basics.errors import DomainError, Invalid, Missing
from basics.texts import gettext as _
from tenancy import services
from tenancy.models import ProviderCredential
from tenancy.selectors import credential_list
from tenancy.services.credentials import PROVIDERS
from toolloop.providers.profiles import DEFAULT_MODELS
from toolloop.providers.registry import configured_models
from web.forms import CredentialForm, ModelEntryForm, add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id
from web.views.model_entries import model_forget, model_form, model_lines, model_save, model_switch


@never_cache
@sensitive_post_parameters("secret")
@require_http_methods(["GET", "POST"])
@allowed("credential.manage")
def models(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List providers and models; POST saves, removes or switches a credential or what is stated about a model."""
    if request.method == "GET":
        return _page(request, CredentialForm())
    action = request.POST.get("action")
    if action == "save":
        if (refused := _save(request)) is not None:
            return _page(request, refused, status=422)
    elif action in {"remove", "toggle"}:
        _switch(request, _chosen(request), action)
    elif action == "model_save":
        if (stated := model_save(request)) is not None:
            return _page(request, CredentialForm(), stated, status=422)
    elif action in {"model_hide", "model_show"}:
        model_switch(request, is_enabled=action == "model_show")
    elif action == "model_forget":
        model_forget(request)
    else:
        raise Invalid("invalid", _("Unknown action."))
    return redirect("web:settings-models", request.tenant.slug)


def _save(request: TenantRequest) -> CredentialForm | None:
    """Store a credential; return the form when it was refused."""
    form = CredentialForm(request.POST)
    if not form.is_valid():
        return form
    try:
        services.credential_set(
            tenant=request.tenant,
            actor=request.actor,
            provider=form.cleaned_data["provider"],
            endpoint=form.cleaned_data["endpoint"],
            secret=form.cleaned_data["secret"],
            base_url=form.cleaned_data["base_url"],
            label=form.cleaned_data["label"],
            model_names=form.names(),
        )
    except DomainError as error:
        if error.status == 403:
            raise
        add_refusal(form, error)
        return form
    messages.success(request, _("Saved. The key is encrypted and not shown again."))
    return None


def _switch(request: TenantRequest, row: ProviderCredential, action: str) -> None:
    name = _name(row.provider, row.endpoint)
    if action == "remove":
        services.credential_delete(
            tenant=request.tenant, actor=request.actor, provider=row.provider, endpoint=row.endpoint
        )
        messages.success(request, _("The key for %(name)s was removed.") % {"name": name})
        return
    services.credential_set(
        tenant=request.tenant,
        actor=request.actor,
        provider=row.provider,
        endpoint=row.endpoint,
        secret="",
        base_url=row.base_url,
        label=row.label,
        model_names=row.model_names,
        is_enabled=not row.is_enabled,
    )
    told = _("%(name)s is off now.") if row.is_enabled else _("%(name)s is on now.")
    messages.success(request, told % {"name": name})


def _name(provider: str, endpoint: str) -> str:
    label = str(PROVIDERS.get(provider, provider))
    return f"{label}: {endpoint}" if endpoint else label


def _chosen(request: TenantRequest) -> ProviderCredential:
    row = credential_list(actor=request.actor).filter(pk=posted_id(request, "credential")).first()
    if row is None:
        raise Missing("credential")
    return row


def _providers(request: TenantRequest) -> list[dict[str, Any]]:
    """Return a line for each provider, and for each further endpoint below it."""
    own = {(c.provider, c.endpoint): c for c in credential_list(actor=request.actor)}
    installed: dict[str, list[str]] = {}
    for info in configured_models(os.environ):
        installed.setdefault(info.provider, []).append(info.model)
    keys = [(name, "") for name in (*PROVIDERS, "extractive")]
    keys += [key for key in own if key[1]]
    lines: list[dict[str, Any]] = []
    for name, endpoint in keys:
        credential = own.get((name, endpoint))
        offered = [] if endpoint else list(installed.get(name, ()))
        if credential is not None and credential.is_enabled:
            offered = list(credential.model_names) or list(DEFAULT_MODELS.get(name, ()))
        lines.append(
            {
                "name": name,
                "label": "Extractive" if name == "extractive" else _name(name, endpoint),
                "credential": credential,
                "from_environment": not endpoint and name in installed,
                "models": [] if name == "extractive" else offered,
            }
        )
    return lines


def _page(
    request: TenantRequest, form: CredentialForm, stated: ModelEntryForm | None = None, *, status: int = 200
) -> HttpResponse:
    context = {
        "section": "models",
        "providers": _providers(request),
        "models": model_lines(request),
        "form": form,
        "model_form": stated or model_form(request),
        "can_manage": request.actor.can("credential.manage"),
    }
    return render(request, "settings/models.html", context, status=status)

"""Settings, Models: which providers answer for the workspace, and with whose key."""

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
from tenancy import services
from tenancy.models import ProviderCredential
from tenancy.selectors import credential_list
from tenancy.services.credentials import PROVIDERS
from toolloop.providers.profiles import DEFAULT_MODELS
from toolloop.providers.registry import configured_models
from web.forms import CredentialForm, add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


@never_cache
@sensitive_post_parameters("secret")
@require_http_methods(["GET", "POST"])
@allowed("credential.manage")
def models(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the providers; POST saves, removes or switches a credential."""
    if request.method == "GET":
        return _page(request, CredentialForm())
    action = request.POST.get("action")
    if action == "save":
        form = CredentialForm(request.POST)
        if not form.is_valid():
            return _page(request, form, status=422)
        try:
            services.credential_set(
                tenant=request.tenant,
                actor=request.actor,
                provider=form.cleaned_data["provider"],
                secret=form.cleaned_data["secret"],
                base_url=form.cleaned_data["base_url"],
                label=form.cleaned_data["label"],
                model_names=form.names(),
            )
        except DomainError as error:
            if error.status == 403:
                raise
            add_refusal(form, error)
            return _page(request, form, status=422)
        messages.success(request, "Saved. The key is encrypted and not shown again.")
    elif action in {"remove", "toggle"}:
        _switch(request, _chosen(request), action)
    else:
        raise Invalid("invalid", "Unknown action.")
    return redirect("web:settings-models", request.tenant.slug)


def _switch(request: TenantRequest, row: ProviderCredential, action: str) -> None:
    name = PROVIDERS.get(row.provider, row.provider)
    if action == "remove":
        services.credential_delete(
            tenant=request.tenant, actor=request.actor, provider=row.provider
        )
        messages.success(request, f"The key of {name} is forgotten.")
        return
    services.credential_set(
        tenant=request.tenant,
        actor=request.actor,
        provider=row.provider,
        secret="",
        base_url=row.base_url,
        label=row.label,
        model_names=row.model_names,
        is_enabled=not row.is_enabled,
    )
    messages.success(request, f"{name} is {'off' if row.is_enabled else 'on'} now.")


def _chosen(request: TenantRequest) -> ProviderCredential:
    row = credential_list(actor=request.actor).filter(pk=posted_id(request, "credential")).first()
    if row is None:
        raise Missing("credential")
    return row


def _page(request: TenantRequest, form: CredentialForm, *, status: int = 200) -> HttpResponse:
    own = {c.provider: c for c in credential_list(actor=request.actor)}
    installed: dict[str, list[str]] = {}
    for info in configured_models(os.environ):
        installed.setdefault(info.provider, []).append(info.model)
    providers: list[dict[str, Any]] = []
    for name, label in {**PROVIDERS, "extractive": "Extractive"}.items():
        credential = own.get(name)
        offered = list(installed.get(name, ()))
        if credential is not None and credential.is_enabled:
            offered = list(credential.model_names) or list(DEFAULT_MODELS.get(name, ()))
        providers.append(
            {
                "name": name,
                "label": label,
                "credential": credential,
                "from_environment": name in installed,
                "models": [] if name == "extractive" else offered,
            }
        )
    context = {
        "section": "models",
        "providers": providers,
        "form": form,
        "can_manage": request.actor.can("credential.manage"),
    }
    return render(request, "settings/models.html", context, status=status)

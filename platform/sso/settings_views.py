"""Settings, Sign-in: the identity provider, mail domains, roles of groups, what is asked of sessions, SCIM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from basics.errors import Conflict, DomainError, Invalid
from basics.texts import gettext as _
from sso import domains, services
from sso.forms import (
    ConnectionForm,
    DomainForm,
    GroupForm,
    RulesForm,
    SamlChangeForm,
    SamlForm,
    TokenForm,
)
from sso.models import Protocol
from sso.saml.services import certificate_ends, ends_soon, saml_connection_set
from sso.selectors import connection_list, domain_list, group_role_list, owner_list, scim_token_list
from sso.views import acs_address, answer_address, entity_id
from tenancy.sign_in_rules import SignInRules
from web.forms import add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tenant.manage")
@sensitive_variables("token")
def sign_in(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show everything about sign-in; POST changes one thing of it."""
    if request.method == "GET":
        return _page(request)
    who: Any = {"tenant": request.tenant, "actor": request.actor}
    action = request.POST.get("action")
    forms = {
        "connection": ConnectionForm,
        "saml": SamlForm,
        "domain": DomainForm,
        "group": GroupForm,
        "token": TokenForm,
    }
    if action == "rules":
        rules = RulesForm(
            request.POST, owners=list(owner_list(actor=request.actor)), rules=SignInRules.of(request.tenant)
        )
        return _tried(request, "rules", rules, lambda values: services.rules_set(**who, **values))
    if action == "connection" and "connection" in request.POST:
        pk = posted_id(request, "connection")
        is_saml = connection_list(actor=request.actor).filter(pk=pk, protocol=Protocol.SAML).exists()
        form_of = SamlChangeForm if is_saml else ConnectionForm
        change = saml_connection_set if is_saml else services.connection_set
        changed = form_of(request.POST, prefix=f"c{pk}")
        return _tried(request, f"c{pk}", changed, lambda values: change(**who, **values, pk=pk))
    if action == "token":
        form = TokenForm(request.POST, prefix="token")
        if not form.is_valid():
            return _page(request, token=form, status=422)
        try:
            _, token = services.scim_token_create(**who, **form.cleaned_data)
        except Invalid as error:
            add_refusal(form, error)
            return _page(request, token=form, status=422)
        return _page(request, new_token=token)
    if action in forms:
        make: dict[str, Callable[[dict[str, Any]], Any]] = {
            "connection": lambda values: services.connection_set(**who, **values),
            "saml": lambda values: saml_connection_set(**who, **values),
            "domain": lambda values: domains.domain_add(**who, **values),
            "group": lambda values: services.group_role_set(**who, **values),
        }
        return _tried(request, action, forms[action](request.POST, prefix=action), make[action])
    return _one(request, action, who)


def _one(request: TenantRequest, action: str | None, who: Any) -> HttpResponse:
    """Do what a button of a list does."""
    try:
        if action == "connection_remove":
            services.connection_remove(**who, pk=posted_id(request, "connection"))
        elif action == "domain_verify":
            row = domains.domain_verify(**who, pk=posted_id(request, "domain"))
            messages.success(request, _("%(domain)s is verified.") % {"domain": row.domain})
        elif action == "domain_remove":
            domains.domain_remove(**who, pk=posted_id(request, "domain"))
        elif action == "group_remove":
            services.group_role_set(**who, group=request.POST.get("group", ""), role="")
        elif action == "token_revoke":
            services.scim_token_revoke(**who, pk=posted_id(request, "token"))
        else:
            raise Invalid("invalid", _("Unknown action."))
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("sso:settings-sign-in", request.tenant.slug)


def _tried(
    request: TenantRequest, name: str, form: Any, make: Callable[[dict[str, Any]], Any]
) -> HttpResponse:
    if form.is_valid():
        try:
            make(form.cleaned_data)
        except DomainError as error:
            if error.status in {403, 404}:
                raise
            add_refusal(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("sso:settings-sign-in", request.tenant.slug)
    return _page(request, **{name: form}, status=422)


def _page(request: TenantRequest, *, new_token: str = "", status: int = 200, **tried: Any) -> HttpResponse:
    """Show the page; forms that were tried are shown as they were sent."""
    actor, tenant = request.actor, request.tenant
    rules = SignInRules.of(tenant)
    connections = []
    for row in connection_list(actor=actor):
        row.tenant = tenant
        is_saml = row.protocol == Protocol.SAML
        form = tried.get(f"c{row.pk}") or (SamlChangeForm if is_saml else ConnectionForm).of(row)
        answer = acs_address(request, row) if is_saml else answer_address(request, row)
        connections.append(
            {
                "row": row,
                "form": form,
                "answer": answer,
                "entity": entity_id(request, row) if is_saml else "",
                "certificates": certificate_ends(row),
                "ends_soon": ends_soon(row),
            }
        )
    owners = list(owner_list(actor=actor))
    context = {
        "section": "sign-in",
        "connections": connections,
        "domains": domain_list(actor=actor),
        "groups": group_role_list(actor=actor),
        "tokens": scim_token_list(actor=actor),
        "rules": rules,
        "connection_form": tried.get("connection") or ConnectionForm(prefix="connection"),
        "saml_form": tried.get("saml") or SamlForm(prefix="saml"),
        "domain_form": tried.get("domain") or DomainForm(prefix="domain"),
        "group_form": tried.get("group") or GroupForm(prefix="group"),
        "token_form": tried.get("token") or TokenForm(prefix="token"),
        "rules_form": tried.get("rules") or RulesForm(None, owners=owners, rules=rules),
        "new_token": new_token,
        "record": domains.RECORD,
        "record_prefix": domains.PREFIX,
        "door": request.build_absolute_uri(reverse("sso:workspace", args=[tenant.slug])),
        "scim": request.build_absolute_uri(reverse("scim:config").removesuffix("/ServiceProviderConfig")),
    }
    return render(request, "settings/sign_in.html", context, status=status)

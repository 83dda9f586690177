"""The addresses of a workspace's authorization server. Only ``authorize`` knows who is signed in; the others serve programs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from basics.errors import DomainError, Invalid, refusal_of
from tenancy import services
from tenancy.permissions import APP_SCOPES
from tenancy.selectors import tenant_find
from tenancy.services.connections import GrantRefused, Tokens
from web.attempts import network_of
from web.middleware import client_ip
from web.oauth import metadata
from web.oauth.clients import client_register
from web.oauth.requests import AuthorizationRequest, authorization_parse
from web.requests import TenantRequest, allowed
from web.windows import Window, windows_take

P = ParamSpec("P")
MAX_BODY = 20_000
PER_MINUTE = {"register": 20, "token": 240, "authorize": 60}


@require_GET
def resource(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Describe the MCP server (RFC 9728)."""
    return JsonResponse(metadata.resource_metadata(request, tenant_slug))


@require_GET
def server(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Describe the authorization server (RFC 8414)."""
    return JsonResponse(metadata.server_metadata(request, tenant_slug))


def _for_programs(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Answer a program: no cookies, a bounded body, refusals as OAuth spells them, nothing kept by caches."""

    @csrf_exempt
    @never_cache
    @require_POST
    @wraps(view)
    def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
                raise DomainError("invalid_request", f"Send at most {MAX_BODY:,} bytes.", status=413)
            response = view(request, *args, **kwargs)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            said = {"error": refusal.code, "error_description": refusal.message}
            response = JsonResponse(said, status=refusal.status)
            if "retry_after" in refusal.data:
                response["Retry-After"] = str(refusal.data["retry_after"])
        return response

    return cast("Callable[Concatenate[HttpRequest, P], HttpResponse]", checked)


@_for_programs
def register(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Register a client (RFC 7591)."""
    _rate_check(request, "register")
    try:
        said = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise Invalid("invalid_client_metadata", "Send the client's metadata as JSON.") from error
    client = client_register(tenant_slug, said)
    facts = {
        "client_id": client.client_id,
        "client_id_issued_at": int(time.time()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return JsonResponse(facts, status=201)


@sensitive_post_parameters()
@_for_programs
@sensitive_variables()
def token(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Give tokens for a code or a refresh token (OAuth 2.1, sections 4.1.3 and 4.3)."""
    _rate_check(request, "token")
    _refuse_twice(request)
    posted = request.POST
    if posted.get("resource", "") not in ("", metadata.resource_of(request, tenant_slug)):
        raise Invalid("invalid_target", "Tokens from this server are only for its own workspace.")
    kind = posted.get("grant_type")
    if kind not in ("authorization_code", "refresh_token"):
        raise Invalid("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
    tenant = tenant_find(slug=tenant_slug)
    if tenant is None:  # as for a code that is none
        raise GrantRefused
    client_id = posted.get("client_id", "")
    if kind == "authorization_code":
        tokens = services.code_redeem(
            tenant=tenant,
            client_id=client_id,
            code=posted.get("code", ""),
            redirect_uri=posted.get("redirect_uri", ""),
            verifier=posted.get("code_verifier", ""),
        )
    else:
        refresh = posted.get("refresh_token", "")
        tokens = services.tokens_refresh(tenant=tenant, client_id=client_id, refresh=refresh)
    return JsonResponse(_wire(tokens))


@sensitive_post_parameters()
@_for_programs
def revoke(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """End a connection by one of its tokens (RFC 7009): 200, whatever the token was."""
    _rate_check(request, "token")
    _refuse_twice(request)
    tenant = tenant_find(slug=tenant_slug)
    if tenant is not None:
        services.connection_forget(
            tenant=tenant, client_id=request.POST.get("client_id", ""), token=request.POST.get("token", "")
        )
    return HttpResponse(status=200)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("app.connect")
def authorize(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Ask the member whether an application may act for them; POST is their answer."""
    try:
        _rate_check(request, "authorize")
        asked = authorization_parse(
            request.GET,
            tenant=request.tenant,
            issuer=metadata.issuer_of(request, tenant_slug),
            resource=metadata.resource_of(request, tenant_slug),
        )
    except DomainError as error:
        page = {"problem": error.message, "code": error.code}
        return render(request, "oauth/refused.html", page, status=error.status)
    if request.method == "GET":
        return _question(request, asked)
    if request.POST.get("action") != "allow":
        return _sent_back(asked.answer(error="access_denied"))
    chosen = frozenset(request.POST.getlist("scope"))
    if not chosen:
        return _question(request, asked, problem=_("Select at least one permission, or deny."))
    code = services.connection_allow(
        tenant=request.tenant,
        actor=request.actor,
        client_id=asked.client.client_id,
        name=asked.client.name,
        scopes=chosen,
        redirect_uri=asked.redirect_uri,
        challenge=asked.challenge,
    )
    return _sent_back(asked.answer(code=code))


def _question(request: TenantRequest, asked: AuthorizationRequest, problem: str = "") -> HttpResponse:
    choices = [
        {"value": scope, "words": words, "is_asked": scope in asked.scopes}
        for scope, words in APP_SCOPES.items()
        if request.actor.can(scope)
    ]
    context = {"asked": asked, "choices": choices, "problem": problem}
    response: Any = render(request, "oauth/consent.html", context, status=422 if problem else 200)
    # Browsers hold a form's answer to this rule too, and the answer sends the person back to the application.
    response._csp_update = {"form-action": [asked.form_source]}
    return response  # type: ignore[no-any-return]


def _sent_back(address: str) -> HttpResponse:
    # HttpResponseRedirect knows no schemes of applications; the address was checked when it was parsed.
    return HttpResponse(status=303, headers={"Location": address})


def _wire(tokens: Tokens) -> dict[str, Any]:
    return {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.expires_s,
        "refresh_token": tokens.refresh,
        "scope": " ".join(tokens.scopes),
    }


def _refuse_twice(request: HttpRequest) -> None:
    for name, values in request.POST.lists():
        if len(values) > 1:
            raise Invalid("invalid_request", f"{name[:40]} was sent twice.")


def _rate_check(request: HttpRequest, action: str) -> None:
    """Refuse a network that calls too often within a minute, counted over all processes."""
    key = f"oauth:{action}:{network_of(client_ip(request))}"
    if full := windows_take(Window(key, PER_MINUTE[action], 60)):
        wait = math.ceil(full.wait_s)
        raise DomainError(
            "temporarily_unavailable",
            f"Too many requests from this address. Try again in {wait} s.",
            status=429,
            data={"retry_after": wait},
        )

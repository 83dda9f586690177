"""Signing in through a workspace's identity provider: the way there, and the way back.

Each provider has an answer address of its own, and the request is kept in the session of the browser that began it: an
answer that is another provider's, another browser's, or comes twice leads nowhere (RFC 9700, 4.4 and 4.7).
"""

from __future__ import annotations

import math
import re
import secrets
import time
from dataclasses import asdict
from typing import Any

import structlog
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from basics.errors import Denied, DomainError, Invalid
from sso import oidc
from sso.domains import domain_tenant
from sso.fetching import ProviderFailed
from sso.forms import EmailForm
from sso.models import Protocol, SsoConnection
from sso.people import company_enter, provider_actor
from sso.saml.requests import request_url
from sso.saml.services import answer_take
from sso.selectors import door_get, door_list
from sso.services import connection_secret
from tenancy.entrances import COMPANY_ONLY, SIGN_INS
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from web.attempts import network_of
from web.middleware import client_ip
from web.windows import Window, windows_take

log = structlog.get_logger(__name__)
ASKED = "company_asked"
MAX_ASKED = 5
ASKED_S = 600
PER_MINUTE = 30
_BACKEND = "django.contrib.auth.backends.ModelBackend"
_ONCE = ("code", "state", "iss", "error", "answer")
_ERROR = re.compile(r"[a-z_]{1,40}\Z")


@never_cache
@require_http_methods(["GET", "POST"])
def find(request: HttpRequest) -> HttpResponse:
    """Ask for the address at work, and show whose sign-in is behind its domain."""
    form = EmailForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "sso/find.html", {"form": form}, status=422 if form.errors else 200)
    rate_check(request)
    tenant = domain_tenant(form.cleaned_data["email"])
    if tenant is None or not door_list(slug=tenant.slug):
        form.add_error(
            "email", _("No workspace here has company sign-in for this address. Sign in with a password.")
        )
        return render(request, "sso/find.html", {"form": form}, status=422)
    return redirect("sso:workspace", tenant.slug)


@never_cache
@require_GET
def workspace(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the ways into a workspace through its providers."""
    doors = door_list(slug=slug)
    page = {"doors": doors, "slug": slug, "next": _inside(slug, request.GET.get("next", ""))}
    return render(request, "sso/workspace.html", page, status=200 if doors else 404)


@never_cache
@require_GET
def start(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Send the browser to the provider, and keep what is asked there in its session."""
    rate_check(request)
    connection = door_get(slug=slug, pk=pk)
    is_saml = connection.protocol == Protocol.SAML
    try:
        provider = None if is_saml else oidc.provider_read(connection.issuer)
    except ProviderFailed as error:
        return refused(request, connection, error)
    asked = oidc.Asked.new(connection=connection.pk, next=_inside(slug, request.GET.get("next", "")))
    state = secrets.token_urlsafe(32)
    kept: dict[str, Any] = request.session.get(ASKED, {})
    request.session[ASKED] = dict([*kept.items(), (state, asdict(asked))][-MAX_ASKED:])
    if provider is None:
        where = request_url(
            sso_url=connection.sso_url,
            entity_id=entity_id(request, connection),
            address=acs_address(request, connection),
            request_id=_request_id(asked),
            state=state,
            now=timezone.now(),
        )
    else:
        where = oidc.authorization_url(
            provider,
            client_id=connection.client_id,
            redirect_uri=answer_address(request, connection),
            state=state,
            asked=asked,
        )
    return redirect(where)


@never_cache
@require_GET
def answer(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take the provider's answer, and let in whom it stands for."""
    rate_check(request)
    connection = door_get(slug=slug, pk=pk)
    for name in _ONCE:
        if len(request.GET.getlist(name)) > 1:
            raise Invalid("sso_answer", _("The identity provider's answer repeats a value."))
    asked = _asked_take(request, connection)
    try:
        member, token = company_enter(connection=connection, claims=_claims(request, connection, asked))
    except (Denied, Invalid) as error:
        return refused(request, connection, error)
    is_same = request.user.is_authenticated and request.user.pk == member.user_id
    if is_same:
        request.session.cycle_key()
    else:
        request.session.flush()  # nothing of who was here before
        login(request, member.user, _BACKEND)
        request.session[COMPANY_ONLY] = True
    request.session[SIGN_INS] = {**request.session.get(SIGN_INS, {}), str(member.tenant_id): token}
    return redirect(asked.next or reverse("web:tenant-home", args=[slug]))


def _asked_take(request: HttpRequest, connection: SsoConnection) -> oidc.Asked:
    """Return the request that an answer is to, which it is an answer to only once.

    The session alone doesn't tell: two servers may have read it at the same moment, and a slow page of the same browser may
    write it as it was. So the state is counted in the database, for twice as long as an answer to it is taken: the clock of
    one server may be behind.
    """
    kept: dict[str, Any] = request.session.get(ASKED, {})
    state = request.GET.get("state", "")
    found = kept.pop(state, None)
    if found is None or windows_take(Window(f"sso-state:{state}", 1, 2 * ASKED_S)):
        raise Invalid(
            "sso_state",
            _("This answer doesn't belong to a sign-in in this browser. Start again from the sign-in page."),
        )
    request.session[ASKED] = kept
    request.session.save()  # before anything is asked elsewhere: a second answer finds it gone
    asked = oidc.Asked(**found)
    if asked.connection != connection.pk:
        raise Invalid(
            "sso_state", _("Another identity provider was asked. Start again from the sign-in page.")
        )
    if asked.began < time.time() - ASKED_S:
        raise Invalid("sso_state", _("This sign-in took too long. Start again from the sign-in page."))
    return asked


def _claims(request: HttpRequest, connection: SsoConnection, asked: oidc.Asked) -> dict[str, Any]:
    if connection.protocol == Protocol.SAML:
        token = request.GET.get("answer", "")
        return answer_take(connection=connection, token=token, request_id=_request_id(asked))
    said = request.GET.get("iss")
    if said is not None and said != connection.issuer:
        raise ProviderFailed("sso_issuer", "The answer is another identity provider's.")
    if "error" in request.GET:
        code = request.GET["error"]
        told = code if _ERROR.match(code) else "error"
        raise ProviderFailed("sso_provider", f"The identity provider refused the sign-in ({told}).")
    code = request.GET.get("code", "")
    if not 1 <= len(code) <= 4000 or not code.isprintable():
        raise ProviderFailed("sso_provider", "The identity provider sent no code.")
    provider = oidc.provider_read(connection.issuer)
    if said is None and provider.states_issuer:
        raise ProviderFailed("sso_issuer", "The answer doesn't say which identity provider it is from.")
    return oidc.claims_fetch(
        provider,
        client_id=connection.client_id,
        secret=connection_secret(connection),
        redirect_uri=answer_address(request, connection),
        code=code,
        asked=asked,
    )


def answer_address(request: HttpRequest, connection: SsoConnection) -> str:
    """Return where an OpenID provider sends the browser back to: an address for each connection."""
    return _address(request, connection, "answer")


def acs_address(request: HttpRequest, connection: SsoConnection) -> str:
    """Return where a SAML provider has its answers posted: an address for each connection."""
    return _address(request, connection, "acs")


def entity_id(request: HttpRequest, connection: SsoConnection) -> str:
    """Return who we are to a SAML provider, for each connection another one: the address of our metadata."""
    return _address(request, connection, "metadata")


def _address(request: HttpRequest, connection: SsoConnection, name: str) -> str:
    path = reverse(f"sso:{name}", args=[connection.tenant.slug, connection.pk])
    return request.build_absolute_uri(path)


def _request_id(asked: oidc.Asked) -> str:
    """Return a SAML request's ID; one mustn't begin with a digit."""
    return f"_{asked.nonce}"


def _inside(slug: str, path: str) -> str:
    """Return a path of the workspace, "" for anything else: nobody is sent anywhere by a link."""
    is_ours = path.startswith(f"/t/{slug}/") and path.isprintable() and "\\" not in path
    return path[:2000] if is_ours and "/../" not in path else ""


def refused(request: HttpRequest, connection: SsoConnection, error: DomainError) -> HttpResponse:
    """Say that somebody can't come in. What the provider did wrong is for owners, in the audit log."""
    tenant = connection.tenant
    reason = str(error.data.get("stored", error.message))
    log.info("sso_refused", tenant=tenant.slug, code=error.code, reason=reason)
    with tenant_scope(tenant.pk), transaction.atomic():
        audit_record(
            tenant=tenant,
            actor=provider_actor(tenant, connection.name),
            action="sso.refuse",
            object=connection,
            data={"code": error.code, "reason": reason[:300], "protocol": connection.protocol},
        )
    told = error.message
    if isinstance(error, ProviderFailed):
        told = _(
            "%(provider)s could not sign you in. Try again; if it happens again, tell an owner of "
            "%(workspace)s: the audit log has the reason."
        ) % {"provider": connection.name, "workspace": tenant.name}
    page = {"connection": connection, "told": told, "code": error.code}
    return render(request, "sso/refused.html", page, status=error.status)


def rate_check(request: HttpRequest, what: str = "") -> None:
    """Refuse a network that asks too often within a minute: each question makes us ask a provider, or tells of a domain.

    Args:
        what: is counted by itself.
    """
    key = f"sso{what}:{network_of(client_ip(request))}"
    if full := windows_take(Window(key, PER_MINUTE, 60)):
        wait = math.ceil(full.wait_s)
        raise DomainError(
            "too_many_attempts",
            _("Too many sign-ins from this address. Try again in %(seconds)s s.") % {"seconds": wait},
            status=429,
            data={"retry_after": wait},
        )

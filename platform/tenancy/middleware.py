"""Put each request into the scope of one tenant, taken from the URL and from nothing else.

``/t/<slug>/...`` needs a signed-in member of that tenant: others get 404, so that a workspace's existence is not told.
``/admin/...`` opens every tenant to superusers and one owned tenant to an owner. Anything else runs without a tenant.
API requests under ``/api/`` find their tenant in ``web.drf`` (key or session), and so does ``/t/<slug>/mcp``, which takes keys
and access tokens alone. Where applications fetch those tokens (``web.oauth``) nobody is signed in either.

The scope is a context variable: it follows the request into threads and tasks, but a streaming body is sent after this
middleware has ended, so a stream enters the scope itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import quote, urlsplit

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tenancy.database import replica
from tenancy.entrances import CLOSED, Problem, entrance_problem, is_contained
from tenancy.lagging import write_noted, writes_of_person_noted
from tenancy.models import Role, Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import membership_find, membership_list, user_actor

TENANT_PATH = re.compile(r"^/t/(?P<slug>[-a-zA-Z0-9_]+)/(?!(?:mcp|oauth/(?:register|token|revoke))\Z)")


_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REFUSED_BY_RATE = 429


def _sign_in(back: str) -> str:
    """Return where to sign in, and to come back from there."""
    return f"{reverse('account_login')}?next={quote(back)}"


def _asked_for(problem: Problem, request: Any, tenant: Tenant) -> HttpResponse:
    """Send a session that may not enter yet to where it gets what it lacks, and back from there."""
    page = _page_open(request) if request.headers.get("HX-Request") else request.get_full_path()
    where, words = {
        "company": (reverse("sso:workspace", args=[tenant.slug]), ""),
        "password": (
            reverse("account_reauthenticate"),
            _("Enter your password to open %(workspace)s.") % {"workspace": tenant.name},
        ),
        "again": (
            reverse("account_reauthenticate"),
            _("%(workspace)s asks you to sign in again.") % {"workspace": tenant.name},
        ),
        "second_factor": (
            reverse(_factor_page(request.user)),
            _("%(workspace)s asks for a second factor.") % {"workspace": tenant.name},
        ),
    }[problem]
    if words:
        messages.info(request, words)
    target = f"{where}?next={quote(page)}"
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=401)
        response["HX-Redirect"] = target
        return response
    return HttpResponseRedirect(target)


def _factor_page(user: Any) -> str:
    """Return where somebody shows their second factor, or sets one up."""
    if is_mfa_enabled(user, [Authenticator.Type.WEBAUTHN]):
        return "mfa_reauthenticate_webauthn"
    return "mfa_reauthenticate" if is_mfa_enabled(user) else "mfa_activate_totp"


def _administered(request: Any) -> list[Tenant]:
    """Return the workspaces that this session's person owns and has signed in to as their rules ask."""
    owned = [m for m in membership_list(user=request.user) if m.role == Role.OWNER]
    return [m.tenant for m in owned if entrance_problem(request, m) is None]


def _page_open(request: Any) -> str:
    """Return the page of a workspace that htmx asks from, else "/"; of what the browser says only the path counts."""
    try:
        page = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # no URL at all
        return "/"
    is_ours = TENANT_PATH.match(page.path) is not None
    return page._replace(scheme="", netloc="", fragment="").geturl() if is_ours else "/"


def _enter(request: Any) -> tuple[AbstractContextManager[None], HttpResponse | None]:
    """Find the scope of a request; a response is returned instead when it may not go on."""
    request.tenant = request.membership = request.actor = request.admin_tenant = None
    if match := TENANT_PATH.match(request.path_info):
        if not request.user.is_authenticated:
            if request.headers.get("HX-Request"):
                response = HttpResponse(status=401)
                response["HX-Redirect"] = _sign_in(_page_open(request))
                return nullcontext(), response
            return nullcontext(), HttpResponseRedirect(_sign_in(request.get_full_path()))
        membership = membership_find(user=request.user, slug=match["slug"])
        if membership is None:
            raise Http404
        membership.user = request.user
        if problem := entrance_problem(request, membership):
            return nullcontext(), _asked_for(problem, request, membership.tenant)
        request.membership = membership
        request.tenant = membership.tenant
        request.actor = user_actor(membership)
        return tenant_scope(membership.tenant_id), None
    if CLOSED.match(request.path_info) and request.user.is_authenticated and is_contained(request):
        raise PermissionDenied(
            _(
                "You signed in through your company, which gives access to its workspace only. Sign out and sign "
                "in with your password to do this."
            ),
        )
    if request.path_info.startswith("/admin/") and request.user.is_authenticated:
        if request.user.is_superuser and request.user.is_active:
            return platform_scope(), None
        tenants = _administered(request)
        chosen = request.session.get("admin_tenant")
        tenant = next((t for t in tenants if t.pk == chosen), tenants[0] if tenants else None)
        if tenant is not None:
            request.admin_tenant = tenant
            return tenant_scope(tenant.pk), None
    return nullcontext(), None


def _written(request: Any, response: Any) -> None:
    """Remember that this request may have written, so that its person or key is not shown a state from before it.

    What has no workspace in its address (the admin site, account pages) counts for all workspaces of the person.
    """
    if request.method in _SAFE or response.status_code == _REFUSED_BY_RATE or not replica.is_set():
        return
    if request.actor is not None:
        if not getattr(request, "only_reads", False):
            write_noted(request.actor)
    elif not request.path_info.startswith("/api/") and request.user.is_authenticated:
        writes_of_person_noted(request.user)


def tenant_from_url(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware: see the module's text."""

    def middleware(request: HttpRequest) -> HttpResponse:
        scope, refusal = _enter(request)
        if refusal is not None:
            return refusal
        with scope:
            response: HttpResponse = get_response(request)
        _written(request, response)
        return response

    return middleware

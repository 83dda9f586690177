"""Requests as views may take them: what the middleware has put on them, with types."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from tenancy.actors import Actor
from tenancy.lagging import may_lag_read
from tenancy.models import Membership, Tenant, User

P = ParamSpec("P")


class AppRequest(HttpRequest):
    """A request that went through the middleware; ``user`` may be anonymous."""

    htmx: HtmxDetails
    request_id: str


class UserRequest(AppRequest):
    """A request of somebody who is signed in."""

    user: User


class TenantRequest(UserRequest):
    """A request under /t/<slug>/: a member, in the scope of their tenant."""

    tenant: Tenant
    membership: Membership
    actor: Actor


def signed_in(
    view: Callable[Concatenate[UserRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Send people who are not signed in to the sign-in page."""
    checked: Callable[Concatenate[HttpRequest, P], HttpResponseBase] = login_required(cast("Any", view))
    return checked


def allowed(
    action: str,
) -> Callable[
    [Callable[Concatenate[TenantRequest, P], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, P], HttpResponseBase],
]:
    """Refuse a view under /t/<slug>/ (403) to members whose role does not allow the action."""

    def decorate(
        view: Callable[Concatenate[TenantRequest, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            inside = cast("TenantRequest", request)
            inside.actor.require(action)
            return view(inside, *args, **kwargs)

        return cast("Callable[Concatenate[HttpRequest, P], HttpResponseBase]", checked)

    return decorate


def may_lag(
    view: Callable[Concatenate[TenantRequest, P], HttpResponse],
) -> Callable[Concatenate[TenantRequest, P], HttpResponse]:
    """Mark a view, below ``allowed``, that only reads on GET and may show a state of some seconds ago.

    It returns a whole page, not a stream, and may run twice: see ``tenancy.lagging``. Not for a page whose rows a stream
    keeps fresh: what goes between the page's state and the stream's beginning would stay on it.
    """

    @wraps(view)
    def read(request: TenantRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return view(request, *args, **kwargs)
        return may_lag_read(request.actor, lambda: view(request, *args, **kwargs))

    read.may_lag = frozenset({"GET"})  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[TenantRequest, P], HttpResponse]", read)

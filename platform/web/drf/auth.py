"""Who calls the API, and may they: deny by default."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import exceptions, permissions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from basics.errors import Denied
from tenancy.entrances import entrance_problem
from tenancy.selectors import api_key_authenticate, membership_find, user_actor


class ApiKeyAuthentication(BaseAuthentication):
    """``Authorization: Bearer gw_<prefix>_<secret>``: the key names its tenant."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        keyword, _, key = header.partition(" ")
        if keyword.lower() != self.keyword.lower() or not key.strip():
            raise exceptions.AuthenticationFailed("Use the header “Authorization: Bearer <API key>”.")
        found = api_key_authenticate(key=key.strip())
        if found is None:
            raise exceptions.AuthenticationFailed(
                "This API key is unknown, revoked or expired. Create a new one under Settings, API keys."
            )
        request._request.tenant, request._request.actor = found  # type: ignore[attr-defined]
        return found[1], found[1]

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


class TenantSessionAuthentication(SessionAuthentication):
    """A signed-in person; the header ``X-Tenant: <slug>`` (or ``?tenant=``) says in which workspace."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        slug = request.headers.get("X-Tenant", "") or request.query_params.get("tenant", "")
        if not slug:
            raise exceptions.ParseError("Say which workspace: header X-Tenant or ?tenant=.")
        membership = membership_find(user=found[0], slug=slug)
        if membership is None:
            raise Http404
        membership.user = found[0]
        if entrance_problem(request._request, membership):
            raise Denied(
                "sign_in_required",
                "This workspace asks for another or a newer sign-in. Open one of its pages, then try again.",
            )
        request._request.tenant = membership.tenant  # type: ignore[attr-defined]
        request._request.actor = user_actor(membership)  # type: ignore[attr-defined]
        return found[0], user_actor(membership)


class ActionPermission(permissions.BasePermission):
    """Allow what the view's ``actions`` names for this method and the actor may do; deny all else.

    HEAD needs what GET needs. A method that the view does not have is let through to its 405. What is missing is said
    by name: ``Denied`` instead of False.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = getattr(request._request, "actor", None)
        if actor is None:
            return False
        method = "GET" if request.method == "HEAD" else str(request.method)
        if not hasattr(view, method.lower()):
            return True
        action = getattr(view, "actions", {}).get(method)
        if action is None:
            return False
        actor.require(action)
        return True

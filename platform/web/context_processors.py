"""What every page's frame shows: the workspace, the person's role, the other workspaces, where one is."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from notices.services import notices_look
from runs.approvals.selectors import approval_count
from tenancy.entrances import memberships_shown
from tenancy.portal_languages import languages_offered
from web.accounts import AccountAdapter
from web.guide.topics import topic_of

_NAV = {
    "conversations": "chat",
    "assistants": "assistants",
    "datasets": "datasets",
    "collections": "collections",
    "tools": "tools",
    "evaluations": "evaluations",
    "usage": "usage",
    "operate": "operate",
}


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return tenant, membership, actor, memberships and what else is read only when a template looks, and the current section."""
    user: Any = getattr(request, "user", None)
    actor, membership = getattr(request, "actor", None), getattr(request, "membership", None)
    match = request.resolver_match
    namespace = match.namespace if match else ""
    name = match.url_name or "" if match else ""
    return {
        "tenant": getattr(request, "tenant", None),
        "membership": membership,
        "actor": actor,
        "memberships": SimpleLazyObject(
            lambda: memberships_shown(request) if user and user.is_authenticated else []
        ),
        "told_unread": SimpleLazyObject(
            lambda: (
                notices_look(membership=membership, actor=actor, path=_path_seen(request))
                if membership and actor
                else []
            )
        ),
        "approvals_waiting": SimpleLazyObject(lambda: approval_count(actor=actor) if actor else 0),
        "nav": "settings" if name.startswith("settings-") else _NAV.get(namespace, ""),
        "is_signup_open": SimpleLazyObject(lambda: AccountAdapter().is_open_for_signup(request)),
        "page_help": topic_of(match.view_name) if match else None,
        "languages": languages_offered(),
        "request_id": getattr(request, "request_id", ""),
    }


def _path_seen(request: HttpRequest) -> str:
    """Return the path of the page that the person has in front of them; "" where a page in the background asks."""
    if request.headers.get("HX-Request") != "true":
        return request.path
    if request.headers.get("X-Hidden"):
        return ""
    try:
        return urlsplit(request.headers.get("HX-Current-URL", "")).path
    except ValueError:  # no URL at all
        return ""

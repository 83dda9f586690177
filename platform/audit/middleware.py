"""Before an answer with content is sent, write that it is: for every address of ``audit.content_addresses``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from audit.content_addresses import ADMIN_MODELS, DOORS
from audit.reads import content_read, documents_noted
from tenancy.actors import Actor
from tenancy.permissions import ACTIONS
from tenancy.scope import platform_scope

_WRITTEN = frozenset(
    {"file", "export"}
)  # sent from elsewhere, perhaps: a redirect leads to the content itself
_ADMIN = "admin:"


def reads_recorded(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware: the innermost, so that it sees what a view answers. A read that can't be written is refused."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with documents_noted() as documents:
            response: HttpResponseBase = get_response(request)
        if _is_read(request, response):
            _record(request, documents)
        return response

    return middleware


def door_of(request: HttpRequest) -> tuple[str, str]:
    """Return name and kind of the door that a request went through, ("", "") for an address without content."""
    match = request.resolver_match
    name = match.view_name if match is not None else ""
    if name in DOORS:
        return name, DOORS[name]
    if name.startswith(_ADMIN) and name.endswith(("_change", "_changelist")):
        app, _, rest = name.removeprefix(_ADMIN).partition("_")
        model = rest.rpartition("_")[0]
        if f"{app}.{model}" in ADMIN_MODELS:
            return name, "admin"
    return "", ""


def _is_read(request: HttpRequest, response: HttpResponseBase) -> bool:
    name, kind = door_of(request)
    if not name or request.method == "OPTIONS":
        return False
    status = response.status_code
    return 200 <= status < 300 or (kind in _WRITTEN and status in {301, 302, 303, 307, 308})


def _record(request: Any, documents: Iterable[int]) -> None:
    name, kind = door_of(request)
    # Numbers of rows alone: the key of a share is in its address, and is its secret.
    named = {key: value for key, value in request.resolver_match.kwargs.items() if str(value).isdecimal()}
    actor = getattr(request, "actor", None)
    if actor is None:
        tenant = _tenant_of_admin(request, name, named)
        if tenant is None:
            return
        user = request.user
        actor = Actor("user", tenant, ACTIONS, user_id=user.pk, role="system", name=user.email)
    content_read(actor=actor, door=name, kind=kind, named=named, documents=documents)


def _tenant_of_admin(request: Any, name: str, named: dict[str, Any]) -> int | None:
    """Return whose rows a page of the admin has shown: an owner's workspace, or that of the one row.

    The operator's lists over all workspaces belong to none, and are in the log of requests alone.
    """
    if getattr(request, "admin_tenant", None) is not None:
        return int(request.admin_tenant.pk)
    if not name.endswith("_change"):
        return None
    app, _, rest = name.removeprefix(_ADMIN).partition("_")
    model = apps.get_model(app, rest.rpartition("_")[0])
    with platform_scope():
        found: int | None = (
            model._default_manager.filter(pk=named["object_id"]).values_list("tenant_id", flat=True).first()
        )
    return found

"""The address of a workspace's MCP server: who may come in, how often, and with how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import permissions
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.mcp_server.caller import Caller
from basics.errors import Denied, DomainError
from tenancy.database.waiting import wait_for
from tenancy.selectors import access_token_authenticate
from tenancy.tokens import TOKEN_PREFIX
from web.drf.auth import ApiKeyAuthentication
from web.drf.errors import exception_handler
from web.drf.views import TenantAPIView
from web.oauth.metadata import challenge_of

MAX_BODY = 1_000_000
INVALID_REQUEST = -32600
"""JSON-RPC 2.0, section 5.1. The refusals of HTTP have no codes there; their status and ``data.code`` tell them apart."""


class WorkspaceKeyAuthentication(ApiKeyAuthentication):
    """An API key of the workspace that the address names. To any other key nothing is there.

    Or the access token of a connected application (``web.oauth``), which is for this address alone.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        inner: Any = request._request
        token = _access_token(request)
        if token:
            slug = inner.resolver_match.kwargs["tenant_slug"]
            opened = access_token_authenticate(slug=slug, token=token)
            if opened is None:
                raise AuthenticationFailed(
                    "This access token is unknown or expired, or the application was disconnected. Connect it again."
                )
            inner.tenant, inner.actor = opened
            return opened[1], opened[1]
        found = super().authenticate(request)
        if found is not None and inner.tenant.slug != inner.resolver_match.kwargs["tenant_slug"]:
            inner.tenant = inner.actor = None
            raise Http404
        return found


class HasKey(permissions.BasePermission):
    """Let every key of the workspace in: each thing that is asked for needs its own right."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return getattr(request._request, "actor", None) is not None


class AnyForm(BaseContentNegotiation):
    """Leave ``Accept`` to the SDK, which knows what the protocol wants there."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


@extend_schema(exclude=True)
class McpView(TenantAPIView):
    """The workspace as an MCP server. No stream is opened from here: GET and DELETE are 405, as the protocol allows."""

    authentication_classes = (WorkspaceKeyAuthentication,)
    permission_classes = (HasKey,)
    content_negotiation_class = AnyForm

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let in as REST does. An ``Idempotency-Key`` has no meaning here, for a request may hold any method."""
        self._uploads = None
        _refuse_foreign_page(request)
        super().initial(request, *args, **kwargs)

    def get_authenticate_header(self, request: Request) -> str:
        """Tell an application without a token where to get one."""
        return challenge_of(request._request, self.kwargs["tenant_slug"])

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        """Put refusals into JSON-RPC, so that clients show their words."""

        def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
            response = exception_handler(exc, context)
            if response is not None:
                said = response.data
                error = {"code": INVALID_REQUEST, "message": said.pop("message"), "data": said}
                response.data = {"jsonrpc": "2.0", "id": None, "error": error}
            return response

        return handle

    def post(self, request: Request, tenant_slug: str) -> HttpResponse:
        """Answer one message."""
        from apps.tools.mcp_server.exchange import exchange  # late: see the package

        inner = request._request
        body = _body(inner)
        caller = Caller(self.tenant, self.actor, inner.build_absolute_uri("/").rstrip("/"))
        answer = wait_for(exchange, caller, dict(inner.headers), body)
        return HttpResponse(answer.body, status=answer.status, headers=answer.headers)


def _access_token(request: Request) -> str:
    keyword, _, token = request.headers.get("Authorization", "").partition(" ")
    is_ours = keyword.lower() == "bearer" and token.strip().startswith(TOKEN_PREFIX)
    return token.strip() if is_ours else ""


def _body(request: Any) -> bytes:
    body: bytes = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        raise DomainError("too_large", f"A message has at most {MAX_BODY:,} bytes.", status=413)
    return body


def _refuse_foreign_page(request: Request) -> None:
    """Refuse a browser's request that comes from another site's page (the protocol asks for it: DNS rebinding).

    The ``Host`` itself is checked by Django against ``ALLOWED_HOSTS``.
    """
    origin = request.headers.get("Origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    if urlsplit(origin).netloc != request.get_host():
        raise Denied("origin_denied", "Pages from other sites can't call this address.")

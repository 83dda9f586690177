"""Where a workspace's MCP server and its authorization server are: RFC 9728 and RFC 8414.

Made of the address alone, so that a workspace that is not there looks like one that is.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from tenancy.permissions import APP_DEFAULT, APP_SCOPES


def issuer_of(request: HttpRequest, slug: str) -> str:
    """Return the workspace's issuer identifier."""
    return request.build_absolute_uri(f"/t/{slug}")


def resource_of(request: HttpRequest, slug: str) -> str:
    """Return the address of the workspace's MCP server, which is what its tokens are for (RFC 8707)."""
    return request.build_absolute_uri(reverse("mcp", args=[slug]))


def challenge_of(request: HttpRequest, slug: str) -> str:
    """Return the ``WWW-Authenticate`` of a 401 (RFC 9728, section 5.1; RFC 6750, section 3)."""
    where = request.build_absolute_uri(reverse("web:oauth-resource", args=[slug]))
    parts = [f'resource_metadata="{where}"', f'scope="{" ".join(sorted(APP_DEFAULT))}"']
    if request.headers.get("Authorization"):
        parts.append('error="invalid_token"')
    return f"Bearer {', '.join(parts)}"


def resource_metadata(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return the document about the MCP server (RFC 9728, section 2)."""
    return {
        "resource": resource_of(request, slug),
        "authorization_servers": [issuer_of(request, slug)],
        "scopes_supported": sorted(APP_DEFAULT),
        "bearer_methods_supported": ["header"],
    }


def server_metadata(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return the document about the authorization server (RFC 8414, section 2)."""

    def at(name: str) -> str:
        return request.build_absolute_uri(reverse(f"web:oauth-{name}", args=[slug]))

    return {
        "issuer": issuer_of(request, slug),
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "registration_endpoint": at("register"),
        "revocation_endpoint": at("revoke"),
        "scopes_supported": sorted(APP_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }

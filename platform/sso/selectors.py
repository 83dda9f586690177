"""What owners see of sign-in, and what those see who come to a workspace's door."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from basics.errors import Missing
from sso.models import GroupRole, Protocol, ScimToken, SsoConnection, SsoDomain
from tenancy.actors import Actor
from tenancy.models import Membership, Role
from tenancy.scope import platform_scope


def connection_list(*, actor: Actor) -> QuerySet[SsoConnection]:
    """Return the workspace's providers without their secrets. Raises Denied."""
    rows: QuerySet[SsoConnection] = _rows(SsoConnection, actor)
    return rows.defer("secret_encrypted").order_by("pk")


def domain_list(*, actor: Actor) -> QuerySet[SsoDomain]:
    """Return the workspace's mail domains, by name. Raises Denied."""
    rows: QuerySet[SsoDomain] = _rows(SsoDomain, actor)
    return rows.order_by("domain")


def group_role_list(*, actor: Actor) -> QuerySet[GroupRole]:
    """Return which groups have a role, by name. Raises Denied."""
    rows: QuerySet[GroupRole] = _rows(GroupRole, actor)
    return rows.order_by("group")


def scim_token_list(*, actor: Actor) -> QuerySet[ScimToken]:
    """Return the tokens that are in force, newest first. Raises Denied."""
    rows: QuerySet[ScimToken] = _rows(ScimToken, actor)
    return rows.filter(revoked_at=None).order_by("-pk")


def owner_list(*, actor: Actor) -> QuerySet[Membership]:
    """Return the workspace's owners, to choose the one for emergencies from. Raises Denied."""
    rows: QuerySet[Membership] = _rows(Membership, actor)
    return rows.select_related("user").filter(role=Role.OWNER).order_by("pk")


def door_list(*, slug: str) -> list[SsoConnection]:
    """Return the providers that somebody may sign in through to a workspace; none where there is no such workspace.

    A SAML provider whose metadata isn't there yet isn't among them.
    """
    return [row for row in _connections(slug) if row.issuer]


def connection_find(*, slug: str, pk: int) -> SsoConnection:
    """Return a workspace's SAML provider, also one that isn't ready. Raises Missing."""
    found = next((row for row in _connections(slug) if row.pk == pk), None)
    if found is None or found.protocol != Protocol.SAML:
        raise Missing("identity provider")
    return found


def _connections(slug: str) -> list[SsoConnection]:
    with platform_scope():
        return list(
            SsoConnection.objects.select_related("tenant")
            .filter(tenant__slug=slug, tenant__is_active=True, is_enabled=True)
            .order_by("pk")
        )


def door_get(*, slug: str, pk: int) -> SsoConnection:
    """Return one of them. Raises Missing."""
    found = next((row for row in door_list(slug=slug) if row.pk == pk), None)
    if found is None:
        raise Missing("identity provider")
    return found


def _rows(model: Any, actor: Actor) -> Any:
    actor.require("tenant.manage")
    return model.objects.visible_to(actor)

"""Reads of tenants, memberships and keys. Sign-in looks across tenants, each time in one marked place."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.utils import timezone

from tenancy import keys
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Role, Tenant, User
from tenancy.permissions import ROLE_ACTIONS, expand_scopes
from tenancy.scope import platform_scope


def membership_find(*, user: User, slug: str) -> Membership | None:
    """Return the user's membership in an active tenant of that slug, or None (unknown and foreign look alike)."""
    with platform_scope():
        return (
            Membership.objects.select_related("tenant")
            .filter(user=user, tenant__slug=slug, tenant__is_active=True)
            .first()
        )


def membership_list(*, user: User) -> list[Membership]:
    """Return the user's memberships in active tenants, by workspace name."""
    with platform_scope():
        return list(
            Membership.objects.select_related("tenant")
            .filter(user=user, tenant__is_active=True)
            .order_by("tenant__name")
        )


def owned_tenants(*, user: User) -> list[Tenant]:
    """Return the active tenants this user owns (the scope of their admin)."""
    return [m.tenant for m in membership_list(user=user) if m.role == Role.OWNER]


def user_actor(membership: Membership) -> Actor:
    """Return the actor a membership stands for."""
    user: Any = membership.user
    return Actor(
        "user",
        membership.tenant_id,
        ROLE_ACTIONS[membership.role],
        user_id=membership.user_id,
        role=membership.role,
        name=user.email,
    )


def api_key_authenticate(*, key: str) -> tuple[Tenant, Actor] | None:
    """Return the tenant and actor of an API key, or None when it is unknown, revoked, expired or its maker has left.

    A key's rights are its scopes cut down to what its maker's role allows today. ``last_used_at`` moves at most once
    a minute, so that a busy key does not write at each request.
    """
    prefix, secret = keys.split(key)
    if not prefix:
        return None
    now = timezone.now()
    with platform_scope():
        row = (
            ApiKey.objects.select_related("tenant", "user")
            .filter(prefix=prefix, revoked_at=None, tenant__is_active=True)
            .filter(Q(expires_at=None) | Q(expires_at__gt=now))
            .first()
        )
        if row is None or not keys.matches(secret, row.secret_sha256):
            return None
        actions = expand_scopes(row.scopes)
        if row.user_id is not None:
            if not row.user.is_active:
                return None
            membership = Membership.objects.filter(tenant=row.tenant, user=row.user).first()
            if membership is None:
                return None
            actions &= ROLE_ACTIONS[membership.role]
        if row.last_used_at is None or (now - row.last_used_at).total_seconds() > 60:
            ApiKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return row.tenant, Actor(
        "api_key",
        row.tenant_id,
        actions,
        user_id=row.user_id,
        api_key_id=row.pk,
        name=f"key {row.name}",
    )

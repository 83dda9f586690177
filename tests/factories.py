"""Make rows for tests, inside the right tenant scope."""

from __future__ import annotations

import itertools
from typing import Any

from apps.collections.models import Collection, EmbeddingSpace
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import user_actor
from tenancy.services.tenants import tenant_start

_numbers = itertools.count(1)


def make_tenant(slug: str = "") -> Tenant:
    """Return a new tenant."""
    number = next(_numbers)
    slug = slug or f"tenant-{number}"
    tenant = Tenant.objects.create(slug=slug, name=slug.title())
    tenant_start(tenant)
    return tenant


def make_user(email: str = "", **extra: Any) -> User:
    """Return a new user whose password is "secret-password"."""
    return User.objects.create_user(email or f"user{next(_numbers)}@example.org", "secret-password", **extra)


def make_member(tenant: Tenant, role: str, user: User | None = None) -> Membership:
    """Return a membership of a (new) user in the tenant."""
    user = user or make_user(f"{role}{next(_numbers)}@example.org")
    with platform_scope():
        return Membership.objects.create(tenant=tenant, user=user, role=role)


def make_members(*wanted: tuple[Tenant, str]) -> list[Membership]:
    """Return a membership of a new user for each tenant and role, in one statement per table."""
    users = [User(email=f"{role}{next(_numbers)}@example.org") for _, role in wanted]
    for user in users:
        user.set_password("secret-password")
    User.objects.bulk_create(users)
    with platform_scope():
        return Membership.objects.bulk_create(
            Membership(tenant=tenant, user=user, role=role)
            for (tenant, role), user in zip(wanted, users, strict=True)
        )


def actor_of(membership: Membership) -> Actor:
    """Return the actor of a membership."""
    return user_actor(membership)


def make_space(dimensions: int = 384, fingerprint: str = "test") -> EmbeddingSpace:
    """Return the embedding space of these properties, made once."""
    return EmbeddingSpace.objects.get_or_create(
        provider="test", model="test", dimensions=dimensions, fingerprint=fingerprint
    )[0]


def make_collection(tenant: Tenant, name: str = "", **extra: Any) -> Collection:
    """Return a collection of the tenant."""
    with tenant_scope(tenant.pk):
        return Collection.objects.create(
            tenant=tenant,
            name=name or f"Collection {next(_numbers)}",
            space=extra.pop("space", None) or make_space(),
            **extra,
        )

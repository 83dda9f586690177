"""The fixed cast: who plays which role in every test of rights."""

from __future__ import annotations

from dataclasses import dataclass

from tenancy.actors import Actor
from tenancy.models import Membership, Role, Tenant, User
from tests.factories import actor_of, make_members, make_tenant


@dataclass(frozen=True)
class Cast:
    """One tenant with a person per role, and an outsider who owns another tenant."""

    tenant: Tenant
    owner: Membership
    admin: Membership
    member: Membership
    viewer: Membership
    other_tenant: Tenant
    outsider: Membership

    def actor(self, role: str) -> Actor:
        """Return the actor of "owner", "admin", "member", "viewer" or "outsider"."""
        return actor_of(getattr(self, role))

    def user(self, role: str) -> User:
        """Return the user behind a role."""
        user: User = getattr(self, role).user
        return user


def make_cast() -> Cast:
    """Return a fresh cast."""
    tenant, other = make_tenant(), make_tenant()
    owner, admin, member, viewer, outsider = make_members(
        *((tenant, role) for role in (Role.OWNER, Role.ADMIN, Role.MEMBER, Role.VIEWER)), (other, Role.OWNER)
    )
    return Cast(tenant, owner, admin, member, viewer, other, outsider)

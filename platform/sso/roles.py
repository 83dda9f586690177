"""Which role somebody has by the groups that the identity provider tells of, and the membership that follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from sso.models import GroupRole, ScimGroupMember, ScimUser
from tenancy.actors import Actor
from tenancy.models import Membership, Role, Tenant, User
from tenancy.permissions import rank
from tenancy.services import member_add, member_remove, member_role_change
from tenancy.sign_in_rules import SignInRules


def provisioned_groups(tenant: Tenant, user: User) -> set[str]:
    """Return the names and ids of the groups that SCIM has put somebody in."""
    rows = ScimGroupMember.objects.filter(
        tenant=tenant, person__user=user, person__is_active=True, person__deleted_at=None
    )
    found = rows.values_list("group__display_name", "group__external_id")
    return {text for pair in found for text in pair if text}


def is_provisioned_out(tenant: Tenant, user: User) -> bool:
    """Tell whether SCIM has deactivated or deleted somebody: no sign-in brings them back then."""
    row = ScimUser.objects.filter(tenant=tenant, user=user).first()
    return row is not None and (row.deleted_at is not None or not row.is_active)


def membership_sync(
    *, tenant: Tenant, actor: Actor, user: User, groups: Iterable[str], creates: bool = True
) -> Membership | None:
    """Give somebody the membership and role that their groups say. Call it in a transaction, with members locked.

    Where no group has a role, a member keeps the one they were given here. The break-glass owner and the last owner keep
    theirs whatever the groups say: a provider can't leave a workspace without an owner.

    Args:
        groups: names and ids of all the groups that they are in.
        creates: somebody who isn't a member becomes one.

    Returns:
        The membership, None where there is none now.
    """
    rules = SignInRules.of(tenant)
    mapped = dict(GroupRole.objects.filter(tenant=tenant).values_list("group", "role"))
    roles = [mapped[group] for group in set(groups) if group in mapped]
    wanted = max(roles, key=rank, default=rules.default_role)
    row = Membership.objects.filter(tenant=tenant, user=user).first()
    if row is None:
        if not creates or not wanted:
            return None
        return member_add(tenant=tenant, actor=actor, user=user, role=wanted)
    row.tenant, row.user = tenant, user
    if not mapped or row.role == wanted or is_kept(tenant, row):
        return row
    if not wanted:
        member_remove(tenant=tenant, actor=actor, member_id=row.pk)
        return None
    return member_role_change(tenant=tenant, actor=actor, member_id=row.pk, role=wanted)


def is_kept(tenant: Tenant, row: Membership) -> bool:
    """Tell whether a membership is the break-glass owner's or the last owner's."""
    if row.role != Role.OWNER:
        return False
    owners = Membership.objects.filter(tenant=tenant, role=Role.OWNER, user__is_active=True)
    return SignInRules.of(tenant).break_glass == row.user_id or not owners.exclude(pk=row.pk).exists()

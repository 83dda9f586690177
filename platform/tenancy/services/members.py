"""Who belongs to a workspace, and in which role.

Two rules hold everywhere: nobody gives or takes a role above their own, and a workspace keeps at least one owner. Both
are checked under a lock on the workspace's row, so that two owners who demote each other at once leave one.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.losses import loss_tell
from tenancy.models import ApiKey, Invite, Membership, Role, Tenant, User
from tenancy.permissions import rank
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record
from tenancy.sign_in_rules import SignInRules


@transaction.atomic
def member_add(*, tenant: Tenant, actor: Actor, user: User, role: str) -> Membership:
    """Make an existing person a member at once (commands of an operator; people are invited).

    Raises:
        Conflict: ``already_member``.
        Denied, Invalid: as ``member_role_change``.
    """
    actor.require("member.manage")
    with tenant_scope(tenant.pk):
        lock_members(tenant)
        require_rank(actor, role)
        membership, is_new = Membership.objects.get_or_create(
            tenant=tenant, user=user, defaults={"role": role}
        )
        if not is_new:
            raise Conflict(
                "already_member",
                _("%(email)s is already a member of this workspace.") % {"email": user.email},
            )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="member.add",
            object=membership,
            object_name=user.email,
            data={"role": role},
        )
    return membership


@transaction.atomic
def member_role_change(*, tenant: Tenant, actor: Actor, member_id: int, role: str) -> Membership:
    """Give a member another role.

    Raises:
        Denied: the actor may not manage members, or the old or the new role is above their own.
        Missing: no such member here.
        Invalid: no such role.
        Conflict: ``last_owner``.
    """
    actor.require("member.manage")
    with tenant_scope(tenant.pk):
        lock_members(tenant)
        member = _get(tenant, member_id)
        require_rank(actor, role)
        require_rank(actor, member.role)
        if member.role == role:
            return member
        _keep_break_glass(tenant, member)
        if member.role == Role.OWNER:
            _keep_an_owner(tenant)
        before, member.role = member.role, role
        member.save(update_fields=["role"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="member.role_change",
            object=member,
            object_name=member.user.email,
            data={"from": before, "to": role},
        )
        loss_tell(tenant_id=tenant.pk, user_id=member.user_id)
    return member


@transaction.atomic
def member_remove(*, tenant: Tenant, actor: Actor, member_id: int) -> None:
    """Take a member out; anybody may leave, except the last owner.

    Their API keys and their open invitations end with the membership: both carry its rights.

    Raises:
        Denied: somebody else's membership, without the right or with a role above the actor's own.
        Missing: no such member here.
        Conflict: ``last_owner``.
    """
    with tenant_scope(tenant.pk):
        lock_members(tenant)
        member = _get(tenant, member_id)
        is_leaving = actor.kind == "user" and actor.user_id == member.user_id
        if not is_leaving:
            actor.require("member.manage")
            require_rank(actor, member.role)
        _keep_break_glass(tenant, member)
        if member.role == Role.OWNER:
            _keep_an_owner(tenant)
        now = timezone.now()
        keys = ApiKey.objects.filter(tenant=tenant, user_id=member.user_id, revoked_at=None)
        invites = Invite.objects.filter(
            tenant=tenant, invited_by_id=member.user_id, accepted_at=None, revoked_at=None
        )
        ended = {
            "keys_revoked": keys.update(revoked_at=now),
            "invites_revoked": invites.update(revoked_at=now),
        }
        audit_record(
            tenant=tenant,
            actor=actor,
            action="member.leave" if is_leaving else "member.remove",
            object=member,
            object_name=member.user.email,
            data={"role": member.role, **ended},
        )
        user_id = member.user_id
        member.delete()
        loss_tell(tenant_id=tenant.pk, user_id=user_id)


def lock_members(tenant: Tenant) -> Tenant:
    """Let one change of a workspace's members happen at a time, until the transaction ends; returns its row as it is now."""
    return Tenant.objects.select_for_update(of=("self",)).get(pk=tenant.pk)


def require_rank(actor: Actor, role: str) -> None:
    """Raise Denied when a role is above the actor's own, as it stands in the database now.

    The actor's role was read when the request began; a demotion may have been committed since.
    """
    if role not in Role.values:
        raise Invalid(
            "invalid",
            _("Unknown role “%(role)s”: use one of %(known)s.")
            % {"role": role, "known": ", ".join(Role.values)},
        )
    own = actor.role
    if actor.kind == "user":
        row = Membership.objects.filter(tenant_id=actor.tenant_id, user_id=actor.user_id or 0).first()
        own = row.role if row else ""
    if rank(own) < rank(role):
        raise Denied(
            "role_above_own",
            _("The role “%(role)s” is above yours; an owner of the workspace can do this.") % {"role": role},
            data={"role": role},
        )


def _get(tenant: Tenant, member_id: int) -> Membership:
    member = Membership.objects.select_related("user", "tenant").filter(tenant=tenant, pk=member_id).first()
    if member is None:
        raise Missing("member")
    return member


def _keep_break_glass(tenant: Tenant, member: Membership) -> None:
    """Refuse to take the one who comes in without the identity provider; see ``tenancy.sign_in_rules``."""
    rules = SignInRules.of(Tenant.objects.get(pk=tenant.pk))
    if rules.requires_sso and rules.break_glass == member.user_id:
        raise Conflict(
            "break_glass",
            _(
                "This owner can sign in without the identity provider. Choose another one under Settings, Sign-in "
                "first."
            ),
        )


def _keep_an_owner(tenant: Tenant) -> None:
    if Membership.objects.filter(tenant=tenant, role=Role.OWNER, user__is_active=True).count() < 2:
        raise Conflict(
            "last_owner", _("This is the workspace's only owner. Make someone else an owner first.")
        )

"""Invitations by link: signed, expiring, for one email address, used once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, timedelta

from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import get_language, gettext_lazy, override

from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy import tokens
from tenancy.actors import Actor
from tenancy.models import Invite, Membership, Tenant, User
from tenancy.permissions import rank
from tenancy.portal_languages import person_language
from tenancy.scope import tenant_scope
from tenancy.selectors import INVITE_SALT, invite_problem, invite_read, user_actor
from tenancy.services.audit import audit_record
from tenancy.services.members import lock_members, require_rank

INVITE_LIFETIME = timedelta(days=7)
_PROBLEMS = {
    "used": gettext_lazy("This invitation has already been used."),
    "revoked": gettext_lazy("This invitation was withdrawn. Ask the workspace for a new one."),
    "expired": gettext_lazy("This invitation has expired. Ask the workspace for a new one."),
}


@transaction.atomic
def invite_create(
    *,
    tenant: Tenant,
    actor: Actor,
    email: str,
    role: str,
    link_for: Callable[[str], str],
    is_mailed: bool = True,
) -> tuple[Invite, str]:
    """Invite an address, and mail the link once the invitation is committed.

    An earlier open invitation of the same address ends: one link is valid at a time.

    Args:
        link_for: makes the absolute URL from a token (the edge knows it, this room does not).
        is_mailed: False where the address in the link is only the browser's word; the inviter has the link all the same.

    Returns:
        The invitation, and the link to show once to the inviter; the token in it is not stored.

    Raises:
        Denied: the actor may not invite, or not into this role.
        Invalid: the address or the role is none.
        Conflict: ``already_member``.
    """
    actor.require("member.manage")
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid(
            "invalid", _("“%(email)s” isn't an email address.") % {"email": email}, data={"field": "email"}
        ) from None
    with tenant_scope(tenant.pk):
        lock_members(tenant)
        require_rank(actor, role)
        if Membership.objects.filter(tenant=tenant, user__email__iexact=email).exists():
            raise Conflict(
                "already_member",
                _("%(email)s is already a member of this workspace.") % {"email": email},
                data={"field": "email"},
            )
        now = timezone.now()
        Invite.objects.filter(tenant=tenant, email=email, accepted_at=None, revoked_at=None).update(
            revoked_at=now
        )
        token = signing.TimestampSigner(salt=INVITE_SALT).sign(secrets.token_urlsafe(32))
        invite = Invite.objects.create(
            tenant=tenant,
            email=email,
            role=role,
            token_sha256=tokens.digest(token),
            invited_by_id=actor.user_id,
            expires_at=now + INVITE_LIFETIME,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="invite.create",
            object=invite,
            object_name=email,
            data={"role": role},
        )
    link = link_for(token)
    inviter = actor.name or _("Someone")
    # A mail server that is down must not undo the invitation: the inviter holds the link.
    if is_mailed:
        transaction.on_commit(lambda: _mail(invite, inviter, link), robust=True)
    return invite, link


@transaction.atomic
def invite_accept(*, user: User, token: str) -> Membership:
    """Make the user a member by the link they were sent.

    Raises:
        Missing: the link is unknown or forged.
        Conflict: ``invite_used``, ``invite_revoked`` or ``invite_expired``.
        Denied: ``invite_other_email``, it was meant for another address; ``invite_void``, its maker lost the right.
    """
    found, _problem = invite_read(token=token)
    if found is None:
        raise Missing("invitation")
    with tenant_scope(found.tenant_id):
        tenant = found.tenant
        lock_members(tenant)
        invite = Invite.objects.select_for_update(of=("self",)).get(pk=found.pk)
        if problem := invite_problem(invite):
            raise Conflict(f"invite_{problem}", str(_PROBLEMS[problem]))
        if user.email.lower() != invite.email.lower():
            raise Denied(
                "invite_other_email",
                _("This invitation is for another email address. Sign in with the address it was sent to."),
            )
        if invite.invited_by_id is not None:
            _require_inviter(invite)
        membership, is_new = Membership.objects.get_or_create(
            tenant=tenant, user=user, defaults={"role": invite.role}
        )
        invite.accepted_at = timezone.now()
        invite.save(update_fields=["accepted_at"])
        membership.tenant, membership.user = tenant, user
        audit_record(
            tenant=tenant,
            actor=user_actor(membership),
            action="invite.accept",
            object=invite,
            object_name=invite.email,
            data={"role": membership.role, "was_member": not is_new},
        )
    return membership


@transaction.atomic
def invite_revoke(*, tenant: Tenant, actor: Actor, invite_id: int) -> Invite:
    """End an open invitation; its link stops working at once.

    Raises:
        Denied, Missing: without the right; no such invitation here.
        Conflict: ``invite_closed``, it was accepted or revoked before.
    """
    actor.require("member.manage")
    with tenant_scope(tenant.pk):
        invite = Invite.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=invite_id).first()
        if invite is None:
            raise Missing("invitation")
        if invite.accepted_at or invite.revoked_at:
            raise Conflict("invite_closed", _("This invitation has already been accepted or revoked."))
        invite.revoked_at = timezone.now()
        invite.save(update_fields=["revoked_at"])
        audit_record(
            tenant=tenant, actor=actor, action="invite.revoke", object=invite, object_name=invite.email
        )
    return invite


def _require_inviter(invite: Invite) -> None:
    """An invitation carries its maker's rights, and they may have lost them since."""
    maker = Membership.objects.filter(tenant_id=invite.tenant_id, user_id=invite.invited_by_id or 0).first()
    if maker is None or rank(maker.role) < rank(invite.role):
        raise Denied(
            "invite_void",
            _("The sender of this invitation can no longer invite people. Ask the workspace for a new one."),
        )


def _mail(invite: Invite, inviter: str, link: str) -> None:
    """Send an invitation in the language that its reader has chosen, else in that of whoever invites them."""
    language = person_language(User.objects.only("language").filter(email=invite.email).first())
    with override(language or get_language()), timezone.override(UTC):
        text = render_to_string(
            "tenancy/invite_email.txt",
            {"tenant": invite.tenant, "inviter": inviter, "link": link, "invite": invite},
        )
        subject = _("Join %(workspace)s on Groundwork") % {"workspace": invite.tenant.name}
        send_mail(subject, text, None, [invite.email])

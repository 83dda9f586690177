"""An invitation works once, for one address, for a while, and as long as its maker may invite."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail, signing
from django.utils import timezone

from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from tenancy import tokens
from tenancy.models import AuditEvent, Invite, Membership, Role, Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import INVITE_SALT, invite_read
from tenancy.services import invite_accept, invite_create, invite_revoke, member_role_change
from tests.cast import Cast
from tests.factories import make_user

EMAIL = "new@example.org"


def invite(cast: Cast, *, by: str = "owner", role: str = "member", email: str = EMAIL):
    """Return (invitation, token); the "link" is the token itself."""
    return invite_create(tenant=cast.tenant, actor=cast.actor(by), email=email, role=role, link_for=str)


def code_of(token: str, email: str = EMAIL) -> str:
    """Return the error code of an attempt to accept, "" when it worked."""
    user = make_user() if email != EMAIL else make_user(EMAIL)
    try:
        invite_accept(user=user, token=token)
    except DomainError as error:
        return error.code
    return ""


def test_token_works_once(cast: Cast):
    _, token = invite(cast)
    user = make_user(EMAIL)
    assert invite_accept(user=user, token=token).role == Role.MEMBER
    with pytest.raises(Conflict) as refused:
        invite_accept(user=user, token=token)
    assert refused.value.code == "invite_used"
    with tenant_scope(cast.tenant.pk):
        assert Membership.objects.filter(user=user).count() == 1


def test_token_is_refused_when_it_has_expired(cast: Cast):
    row, token = invite(cast)
    with tenant_scope(cast.tenant.pk):
        assert timedelta(days=6.9) < row.expires_at - timezone.now() <= timedelta(days=7)
        Invite.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    assert code_of(token) == "invite_expired"


def test_token_is_refused_when_it_was_revoked(cast: Cast):
    row, token = invite(cast)
    invite_revoke(tenant=cast.tenant, actor=cast.actor("admin"), invite_id=row.pk)
    assert code_of(token) == "invite_revoked"


def test_older_link_ends_when_the_address_is_invited_again(cast: Cast):
    _, old = invite(cast)
    _, new = invite(cast, role="viewer")
    assert invite_read(token=old)[1] == "revoked"
    assert code_of(new) == ""


def test_token_is_refused_when_another_person_uses_it(cast: Cast):
    _, token = invite(cast)
    assert code_of(token, "somebody-else") == "invite_other_email"
    with tenant_scope(cast.tenant.pk):
        assert Membership.objects.count() == 4
        assert Invite.objects.get().accepted_at is None


def test_address_is_compared_without_case(cast: Cast):
    _, token = invite(cast, email="New@Example.ORG")
    assert code_of(token) == ""


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: "x" + t, lambda t: "", lambda t: "é:1:2"])
def test_forged_token_is_unknown(cast: Cast, change):
    _, token = invite(cast)
    assert code_of(change(token)) == "not_found"


def test_well_signed_token_of_no_invitation_is_unknown(cast: Cast):
    assert code_of(signing.TimestampSigner(salt=INVITE_SALT).sign("x" * 43)) == "not_found"


def test_only_a_digest_of_the_token_is_stored(cast: Cast):
    row, token = invite(cast)
    with tenant_scope(cast.tenant.pk):
        stored = Invite.objects.filter(pk=row.pk).values().get()
        events = str(list(AuditEvent.objects.values()))
    assert stored["token_sha256"] == tokens.digest(token)
    secret = token.split(":")[0]
    assert secret not in str(stored)
    assert secret not in events


def test_invitation_is_void_when_its_maker_lost_the_right(cast: Cast):
    _, token = invite(cast, by="admin", role="admin")
    member_role_change(
        tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.admin.pk, role=Role.MEMBER
    )
    assert code_of(token) == "invite_void"


def test_token_is_unknown_when_the_workspace_is_off(cast: Cast):
    _, token = invite(cast)
    Tenant.objects.filter(pk=cast.tenant.pk).update(is_active=False)
    assert code_of(token) == "not_found"


def test_admin_cannot_invite_an_owner(cast: Cast):
    with pytest.raises(Denied) as refused:
        invite(cast, by="admin", role="owner")
    assert refused.value.code == "role_above_own"


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_invitation_needs_the_right(cast: Cast, who: str):
    with pytest.raises(Denied):
        invite(cast, by=who, role="viewer")


@pytest.mark.parametrize("email", ["", "no", "a@b", "a b@example.org", "x@example.org\nBcc: y@example.org"])
def test_bad_address_is_refused(cast: Cast, email: str):
    with pytest.raises(Invalid):
        invite(cast, email=email)
    assert mail.outbox == []


def test_member_cannot_be_invited_again(cast: Cast):
    with pytest.raises(Conflict) as refused:
        invite(cast, email=cast.user("viewer").email.upper())
    assert refused.value.code == "already_member"


def test_invitation_of_another_tenant_cannot_be_revoked(cast: Cast):
    row, token = invite(cast)
    with pytest.raises(Missing):
        invite_revoke(tenant=cast.other_tenant, actor=cast.actor("outsider"), invite_id=row.pk)
    assert invite_read(token=token)[1] == ""


def test_accepting_never_changes_the_role_of_a_member(cast: Cast):
    _, token = invite(cast, role="viewer")
    user = make_user(EMAIL)
    with platform_scope():
        Membership.objects.create(tenant=cast.tenant, user=user, role=Role.ADMIN)
    assert invite_accept(user=user, token=token).role == Role.ADMIN


def test_mail_goes_out_when_the_invitation_is_committed(cast: Cast, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        _, token = invite(cast)
        assert mail.outbox == []
    (message,) = mail.outbox
    assert message.to == [EMAIL]
    assert token in message.body
    assert cast.tenant.name in message.subject

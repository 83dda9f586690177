"""Nobody gives or takes a role above their own, and a workspace keeps an owner."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
from django.db import connection

from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from tenancy.models import ApiKey, AuditEvent, Invite, Membership, Role
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create, invite_create, member_add, member_remove, member_role_change
from tests.cast import Cast, make_cast
from tests.factories import actor_of, make_member, make_user
from tests.patience import PATIENCE_S


def role_of(cast: Cast, who: str) -> str | None:
    with tenant_scope(cast.tenant.pk):
        row = Membership.objects.filter(pk=getattr(cast, who).pk).first()
    return row.role if row else None


CHANGES = {
    "demote": lambda cast, by: member_role_change(
        tenant=cast.tenant, actor=cast.actor(by), member_id=cast.owner.pk, role=Role.VIEWER
    ),
    "remove": lambda cast, by: member_remove(
        tenant=cast.tenant, actor=cast.actor(by), member_id=cast.owner.pk
    ),
}


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_role_change_is_denied_without_the_right(cast: Cast, who: str):
    with pytest.raises(Denied) as refused:
        member_role_change(
            tenant=cast.tenant, actor=cast.actor(who), member_id=cast.viewer.pk, role=Role.MEMBER
        )
    assert refused.value.code == "permission_denied"
    assert role_of(cast, "viewer") == Role.VIEWER


def test_admin_cannot_make_an_owner(cast: Cast):
    with pytest.raises(Denied) as refused:
        member_role_change(
            tenant=cast.tenant, actor=cast.actor("admin"), member_id=cast.member.pk, role=Role.OWNER
        )
    assert refused.value.code == "role_above_own"
    assert role_of(cast, "member") == Role.MEMBER


def test_admin_cannot_promote_themselves(cast: Cast):
    with pytest.raises(Denied):
        member_role_change(
            tenant=cast.tenant, actor=cast.actor("admin"), member_id=cast.admin.pk, role=Role.OWNER
        )
    assert role_of(cast, "admin") == Role.ADMIN


@pytest.mark.parametrize("change", ["demote", "remove"])
def test_admin_cannot_touch_an_owner(cast: Cast, change: str):
    make_member(cast.tenant, Role.OWNER)
    with pytest.raises(Denied):
        CHANGES[change](cast, "admin")
    assert role_of(cast, "owner") == Role.OWNER


def test_rank_is_the_one_of_now_when_the_actor_was_demoted_meanwhile(cast: Cast):
    stale = actor_of(make_member(cast.tenant, Role.OWNER))
    with tenant_scope(cast.tenant.pk):
        Membership.objects.filter(user_id=stale.user_id or 0).update(role=Role.ADMIN)
    with pytest.raises(Denied) as refused:
        member_role_change(tenant=cast.tenant, actor=stale, member_id=cast.member.pk, role=Role.OWNER)
    assert refused.value.code == "role_above_own"


@pytest.mark.parametrize("change", ["demote", "remove"])
def test_last_owner_stays(cast: Cast, change: str):
    with pytest.raises(Conflict) as refused:
        CHANGES[change](cast, "owner")
    assert refused.value.code == "last_owner"
    assert role_of(cast, "owner") == Role.OWNER


def test_owner_who_cannot_sign_in_does_not_count(cast: Cast):
    asleep = make_member(cast.tenant, Role.OWNER, make_user(is_active=False))
    assert asleep.role == Role.OWNER
    with pytest.raises(Conflict):
        member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.owner.pk)


@pytest.mark.django_db(transaction=True)
def test_one_owner_is_left_when_two_demote_each_other_at_once():
    cast = make_cast()
    second = make_member(cast.tenant, Role.OWNER)
    start, refused = Barrier(2), []

    def demote(by: Membership, whom: Membership) -> None:
        try:
            start.wait(PATIENCE_S)
            member_role_change(tenant=cast.tenant, actor=actor_of(by), member_id=whom.pk, role=Role.VIEWER)
        except DomainError as error:
            refused.append(error.code)
        finally:
            connection.close()

    threads = [Thread(target=demote, args=pair) for pair in ((cast.owner, second), (second, cast.owner))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    with tenant_scope(cast.tenant.pk):
        assert Membership.objects.filter(role=Role.OWNER).count() == 1
    assert refused == ["role_above_own"]


def test_member_of_another_tenant_does_not_exist(cast: Cast):
    for act in (
        lambda: member_role_change(
            tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.outsider.pk, role=Role.VIEWER
        ),
        lambda: member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.outsider.pk),
    ):
        with pytest.raises(Missing):
            act()
    with tenant_scope(cast.other_tenant.pk):
        assert Membership.objects.get(pk=cast.outsider.pk).role == Role.OWNER


def test_unknown_role_is_refused(cast: Cast):
    with pytest.raises(Invalid):
        member_role_change(
            tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk, role="god"
        )


def test_removal_ends_keys_and_open_invitations_of_the_person(cast: Cast):
    admin = cast.actor("admin")
    key, _ = api_key_create(tenant=cast.tenant, actor=admin, name="k", scopes=["search.run"])
    invite, _ = invite_create(
        tenant=cast.tenant, actor=admin, email="x@example.org", role="viewer", link_for=str
    )
    member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.admin.pk)
    with tenant_scope(cast.tenant.pk):
        assert ApiKey.objects.get(pk=key.pk).revoked_at is not None
        assert Invite.objects.get(pk=invite.pk).revoked_at is not None
        event = AuditEvent.objects.get(action="member.remove")
    assert event.object_name == cast.user("admin").email
    assert event.data == {"role": "admin", "keys_revoked": 1, "invites_revoked": 1}


def test_viewer_may_leave(cast: Cast):
    member_remove(tenant=cast.tenant, actor=cast.actor("viewer"), member_id=cast.viewer.pk)
    assert role_of(cast, "viewer") is None
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.get().action == "member.leave"


def test_refused_change_leaves_no_audit_row(cast: Cast):
    with pytest.raises(Conflict):
        member_add(tenant=cast.tenant, actor=cast.actor("owner"), user=cast.user("viewer"), role=Role.ADMIN)
    with tenant_scope(cast.tenant.pk):
        assert not AuditEvent.objects.exists()
    assert role_of(cast, "viewer") == Role.VIEWER

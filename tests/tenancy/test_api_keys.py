"""A key does what its scopes and its maker's role both allow, until it ends."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.models import ApiKey, AuditEvent, Membership, Role, Tenant, User
from tenancy.scope import tenant_scope
from tenancy.selectors import api_key_authenticate
from tenancy.services import api_key_create, api_key_revoke, api_key_rotate, member_remove, member_role_change
from tests.cast import Cast


def make(cast: Cast, *, by: str = "admin", scopes: tuple[str, ...] = ("collection.*",), **extra):
    return api_key_create(tenant=cast.tenant, actor=cast.actor(by), name="k", scopes=scopes, **extra)


def test_key_authenticates_as_its_maker_within_its_scopes(cast: Cast):
    row, key = make(cast, scopes=("collection.read", "search.run"))
    found = api_key_authenticate(key=key)
    assert found is not None
    tenant, actor = found
    assert tenant == cast.tenant
    assert (actor.kind, actor.user_id, actor.api_key_id) == ("api_key", cast.user("admin").pk, row.pk)
    assert actor.actions == {"collection.read", "search.run"}
    with pytest.raises(Denied):
        actor.require("collection.write")


def test_rights_shrink_when_the_maker_is_demoted(cast: Cast):
    _, key = make(cast)
    member_role_change(
        tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.admin.pk, role=Role.VIEWER
    )
    found = api_key_authenticate(key=key)
    assert found is not None
    assert found[1].actions == {"collection.read"}


def test_key_dies_with_its_makers_membership_and_stays_dead(cast: Cast):
    _, key = make(cast)
    member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.admin.pk)
    assert api_key_authenticate(key=key) is None
    with tenant_scope(cast.tenant.pk):  # the person comes back
        Membership.objects.create(tenant=cast.tenant, user=cast.user("admin"), role=Role.OWNER)
    assert api_key_authenticate(key=key) is None


@pytest.mark.parametrize("how", ["revoked", "expired", "user off", "tenant off", "row gone"])
def test_key_is_refused_when_it_has_ended(cast: Cast, how: str):
    row, key = make(cast, expires_at=timezone.now() + timedelta(days=1))
    assert api_key_authenticate(key=key) is not None
    with tenant_scope(cast.tenant.pk):
        rows = ApiKey.objects.filter(pk=row.pk)
        if how == "revoked":
            api_key_revoke(tenant=cast.tenant, actor=cast.actor("owner"), key_id=row.pk)
        elif how == "expired":
            rows.update(expires_at=timezone.now() - timedelta(seconds=1))
        elif how == "user off":
            User.objects.filter(pk=cast.user("admin").pk).update(is_active=False)
        elif how == "tenant off":
            Tenant.objects.filter(pk=cast.tenant.pk).update(is_active=False)
        else:
            rows.delete()
    assert api_key_authenticate(key=key) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda k: k[:-1],
        lambda k: k[:-1] + ("A" if k[-1] != "A" else "B"),
        lambda k: k.replace("gw_", "GW_"),
        lambda k: k + " ",
        lambda k: k + "\n",
        lambda k: "",
        lambda k: "gw__" + k,
        lambda k: k.replace(k[3:13], "a" * 10),
    ],
)
def test_altered_key_is_unknown(cast: Cast, change):
    _, key = make(cast)
    assert api_key_authenticate(key=change(key)) is None


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_key_needs_the_right(cast: Cast, who: str):
    with pytest.raises(Denied):
        make(cast, by=who)


@pytest.mark.parametrize("scope", ["member.manage", "key.manage", "credential.manage", "*", "tenant.*x", ""])
def test_scope_that_no_key_may_have_is_refused(cast: Cast, scope: str):
    with pytest.raises(Invalid):
        make(cast, by="owner", scopes=(scope,))


@pytest.mark.parametrize("bad", [{"scopes": ()}, {"expires_at": timezone.now() - timedelta(days=1)}])
def test_useless_key_is_refused(cast: Cast, bad):
    with pytest.raises(Invalid):
        make(cast, **bad)


def test_rotation_ends_the_old_secret_at_once(cast: Cast):
    row, old = make(cast)
    again, new = api_key_rotate(tenant=cast.tenant, actor=cast.actor("admin"), key_id=row.pk)
    assert again.pk == row.pk
    assert api_key_authenticate(key=old) is None
    assert api_key_authenticate(key=new) is not None


def test_nobody_gets_a_key_that_acts_for_somebody_else(cast: Cast):
    row, key = make(cast, by="owner")
    with pytest.raises(Denied) as refused:
        api_key_rotate(tenant=cast.tenant, actor=cast.actor("admin"), key_id=row.pk)
    assert refused.value.code == "key_of_another"
    assert api_key_authenticate(key=key) is not None


def test_revoked_key_cannot_be_rotated(cast: Cast):
    row, _ = make(cast)
    api_key_revoke(tenant=cast.tenant, actor=cast.actor("admin"), key_id=row.pk)
    with pytest.raises(Conflict):
        api_key_rotate(tenant=cast.tenant, actor=cast.actor("admin"), key_id=row.pk)


def test_key_of_another_tenant_does_not_exist(cast: Cast):
    row, key = make(cast)
    for act in (api_key_revoke, api_key_rotate):
        with pytest.raises(Missing):
            act(tenant=cast.other_tenant, actor=cast.actor("outsider"), key_id=row.pk)
    assert api_key_authenticate(key=key) is not None


def test_secret_is_in_no_row_audit_event_or_log(cast: Cast, caplog):
    with caplog.at_level(logging.DEBUG):
        row, key = make(cast)
        api_key_authenticate(key=key)
        api_key_revoke(tenant=cast.tenant, actor=cast.actor("admin"), key_id=row.pk)
    secret = key.rsplit("_", 1)[1] if key.count("_") == 2 else key.split("_", 2)[2]
    with tenant_scope(cast.tenant.pk):
        kept = str(list(ApiKey.objects.values())) + str(list(AuditEvent.objects.values()))
    assert secret not in kept
    # The database driver's debug log holds the digest, never the secret.
    assert secret not in caplog.text


def test_use_is_noted_at_most_once_a_minute(cast: Cast, django_assert_num_queries):
    _, key = make(cast)
    api_key_authenticate(key=key)
    with tenant_scope(cast.tenant.pk):
        first = ApiKey.objects.get().last_used_at
    assert first is not None
    with django_assert_num_queries(1):  # and what opens a key is read at once
        api_key_authenticate(key=key)
    with tenant_scope(cast.tenant.pk):
        assert ApiKey.objects.get().last_used_at == first

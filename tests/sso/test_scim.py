"""SCIM as Okta and Entra send it; then those who should get nothing from it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sso import services
from sso.models import ScimToken, ScimUser
from tenancy.models import ApiKey, AuditEvent, Membership, Role, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import make_member, make_user
from tests.sso.conftest import BACKEND, Door
from tests.sso.provider import DOMAIN
from tests.sso.scim_client import CORE, Scim

pytestmark = pytest.mark.django_db


def test_okta_takes_somebody_in_and_out_again(scim: Scim):
    """The calls of Okta's own description, in their order."""
    asked = scim.call("GET", f'/scim/v2/Users?filter=userName%20eq%20"ada@{DOMAIN}"&startIndex=1&count=100')
    assert asked.json()["totalResults"] == 0
    assert asked["Content-Type"] == "application/scim+json"
    made = scim.user(
        "ada",
        externalId="00uemployee",
        emails=[{"primary": True, "value": f"ada@{DOMAIN}", "type": "work"}],
        displayName="Ada L",
        locale="en-US",
        groups=[],
        password="1mz050nq",
    )
    assert "password" not in made
    assert made["meta"]["location"].endswith(f"/scim/v2/Users/{made['id']}")
    assert scim.role() == "member"
    got = scim.call("GET", f"Users/{made['id']}").json()
    assert (got["externalId"], got["active"]) == ("00uemployee", True)
    got["name"] = {"givenName": "Ada", "familyName": "Lovelace"}
    assert scim.call("PUT", f"Users/{made['id']}", got).json()["name"]["familyName"] == "Lovelace"
    out = scim.patch(f"Users/{made['id']}", {"op": "replace", "value": {"active": False}})
    assert (out.status_code, out.json()["active"], scim.role()) == (200, False, "")
    back = scim.patch(f"Users/{made['id']}", {"op": "replace", "value": {"active": True}})
    assert (back.json()["active"], scim.role()) == (True, "member")


def test_okta_pushes_a_group(scim: Scim, cast: Cast):
    services.group_role_set(tenant=cast.tenant, actor=cast.actor("owner"), group="Admins", role="admin")
    ada, ben = scim.user("ada"), scim.user("ben")
    group = scim.call(
        "POST", "Groups", {"schemas": [f"{CORE}Group"], "displayName": "Admins", "members": []}
    ).json()
    path = f"Groups/{group['id']}"
    members = [{"value": ada["id"], "display": "x"}, {"value": ben["id"]}]
    assert scim.patch(path, {"op": "add", "path": "members", "value": members}).status_code == 200
    assert (scim.role("ada"), scim.role("ben")) == ("admin", "admin")
    one = {"op": "remove", "path": f'members[value eq "{ada["id"]}"]'}
    assert len(scim.patch(path, one).json()["members"]) == 1
    assert (scim.role("ada"), scim.role("ben")) == ("member", "admin")
    # Okta renames by a value without a path that names the group itself.
    renamed = {"op": "replace", "value": {"id": group["id"], "displayName": "Former admins"}}
    assert scim.patch(path, renamed).json()["displayName"] == "Former admins"
    assert scim.role("ben") == "member"
    scim.patch(path, {"op": "replace", "path": "displayName", "value": "Admins"})
    assert scim.role("ben") == "admin"
    scim.patch(path, {"op": "replace", "path": "members", "value": [{"value": ada["id"]}]})
    assert (scim.role("ada"), scim.role("ben")) == ("admin", "member")
    assert scim.call("DELETE", path).status_code == 204
    assert scim.role("ada") == "member"


# --- Entra ----------------------------------------------------------------------------------------


def test_entra_takes_somebody_in_and_out_again(scim: Scim):
    made = scim.user(
        "ben",
        externalId="0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
        displayName="Ben",
        emails=[{"primary": True, "type": "work", "value": f"ben@{DOMAIN}"}],
        meta={"resourceType": "User"},
        name={"formatted": "Ben T", "familyName": "T", "givenName": "Ben"},
        roles=[],
        **{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "bob"}},
    )
    path = f"Users/{made['id']}"
    work = {"op": "Replace", "path": 'emails[type eq "work"].value', "value": f"benny@{DOMAIN}"}
    changed = scim.patch(path, work, {"op": "Replace", "path": "name.familyName", "value": "Turner"})
    assert changed.status_code == 200, changed.content
    assert changed.json()["emails"][0]["value"] == f"benny@{DOMAIN}"
    assert changed.json()["name"]["familyName"] == "Turner"
    flat = {"op": "Add", "value": {"name.givenName": "Benjamin", "displayName": "Benjamin"}}
    assert scim.patch(path, flat).json()["name"]["givenName"] == "Benjamin"
    unknown = {
        "op": "Add",
        "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
        "value": "x",
    }
    assert scim.patch(path, unknown).status_code == 200
    off = scim.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    assert (off.json()["active"], scim.role("ben")) == (False, "")
    on = scim.patch(path, {"op": "Replace", "path": "active", "value": "True"})
    assert (on.json()["active"], scim.role("ben")) == (True, "member")
    assert scim.call("DELETE", path).status_code == 204
    assert scim.call("GET", path).status_code == 404
    assert scim.role("ben") == ""


def test_entra_fills_a_group(scim: Scim):
    ada, ben = scim.user("ada"), scim.user("ben")
    made = scim.call(
        "POST", "Groups", {"displayName": "Eng", "externalId": "8aa1a0c0", "meta": {"resourceType": "Group"}}
    )
    path = f"Groups/{made.json()['id']}"
    for one in (ada, ben):
        added = scim.patch(
            path, {"op": "Add", "path": "members", "value": [{"$ref": None, "value": one["id"]}]}
        )
        assert added.status_code == 200, added.content
    left = scim.patch(
        path, {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": ada["id"]}]}
    )
    assert [one["value"] for one in left.json()["members"]] == [ben["id"]]
    bare = scim.call("GET", f"/scim/v2/{path}?excludedAttributes=members").json()
    assert "members" not in bare
    listed = scim.call("GET", '/scim/v2/Groups?excludedAttributes=members&filter=displayName%20eq%20"eng"')
    assert [one["displayName"] for one in listed.json()["Resources"]] == ["Eng"]
    assert scim.patch(path, {"op": "Remove", "path": "members"}).json()["members"] == []


def test_entra_asks_whether_the_credentials_work(scim: Scim):
    """Its connection test looks for a user that can't be there."""
    asked = scim.call("GET", '/scim/v2/Users?filter=userName%20eq%20"a4b0c2d1-0000-4000-8000-000000000000"')
    assert (asked.status_code, asked.json()["Resources"]) == (200, [])


# --- RFC 7644 -------------------------------------------------------------------------------------


def test_only_a_scim_token_opens_it(scim: Scim, cast: Cast):
    with tenant_scope(cast.tenant.pk):
        _, key = api_key_create(
            tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=["collection.*"]
        )
    browser = Client()
    browser.force_login(cast.user("owner"), BACKEND)
    for header in (
        {},
        {"Authorization": f"Bearer {key}"},
        {"Authorization": "Bearer gws_x"},
        {"Authorization": "Basic x"},
    ):
        for path in ("Users", "Groups", "ServiceProviderConfig", "Schemas", "Bulk"):
            response = browser.get(f"/scim/v2/{path}", headers=header)
            assert response.status_code == 401
            assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_scim_token_opens_nothing_else(scim: Scim, cast: Cast):
    header = {"Authorization": f"Bearer {scim.token}"}
    assert Client().get("/api/v1/me", headers=header).status_code == 401
    assert Client().post(f"/t/{cast.tenant.slug}/mcp", {}, headers=header).status_code == 401
    assert Client().get(f"/t/{cast.tenant.slug}/settings/members/", headers=header).status_code == 302


def test_a_revoked_token_is_out_at_once(scim: Scim, cast: Cast):
    with tenant_scope(cast.tenant.pk):
        pk = ScimToken.objects.get().pk
    services.scim_token_revoke(tenant=cast.tenant, actor=cast.actor("owner"), pk=pk)
    assert scim.call("GET", "Users").status_code == 401


def test_another_workspaces_people_do_not_exist(scim: Scim, cast: Cast):
    made = scim.user()
    group = scim.call("POST", "Groups", {"displayName": "Eng", "members": [{"value": made["id"]}]}).json()
    _, token = services.scim_token_create(tenant=cast.other_tenant, actor=cast.actor("outsider"), name="B")
    scim.token = token
    assert scim.call("GET", "Users").json()["totalResults"] == 0
    for path in (f"Users/{made['id']}", f"Groups/{group['id']}"):
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            assert scim.call(method, path, {}).status_code == 404
    foreign = scim.call("POST", "Groups", {"displayName": "X", "members": [{"value": made["id"]}]})
    assert foreign.status_code == 400


def test_account_of_a_person_is_theirs(scim: Scim):
    """What a provider says stays in its workspace: the account may be used in others."""
    ada = make_user(f"ada@{DOMAIN}", first_name="Ada")
    made = scim.user("ada", displayName="Mallory")
    scim.patch(
        f"Users/{made['id']}",
        {"op": "replace", "value": {"emails": [{"value": f"m@{DOMAIN}"}], "active": False}},
    )
    ada.refresh_from_db()
    assert (ada.first_name, ada.email, ada.is_active) == ("Ada", f"ada@{DOMAIN}", True)
    assert ada.check_password("secret-password")


# --- who is put out -------------------------------------------------------------------------------


def test_deprovisioned_loses_everything_here_and_nothing_elsewhere(scim: Scim, cast: Cast):
    ada = make_user(f"ada@{DOMAIN}")
    make_member(cast.other_tenant, "admin", ada)
    made = scim.user()
    browser = Client(raise_request_exception=False)
    browser.force_login(ada, BACKEND)
    here, there = (f"/t/{t.slug}/settings/connections/" for t in (cast.tenant, cast.other_tenant))
    with platform_scope():
        Membership.objects.filter(tenant=cast.tenant, user=ada).update(role=Role.ADMIN)
        member = Membership.objects.select_related("user").get(tenant=cast.tenant, user=ada)
        from tests.factories import actor_of

        _, key = api_key_create(tenant=cast.tenant, actor=actor_of(member), name="k", scopes=["tenant.read"])
    bearer = {"Authorization": f"Bearer {key}"}
    assert browser.get(here).status_code == 200
    assert Client().get("/api/v1/me", headers=bearer).status_code == 200
    scim.patch(f"Users/{made['id']}", {"op": "replace", "value": {"active": False}})
    assert browser.get(here).status_code == 404
    assert Client().get("/api/v1/me", headers=bearer).status_code == 401
    assert browser.get(there).status_code == 200
    with platform_scope():
        assert ApiKey.objects.get(tenant=cast.tenant, user=ada).revoked_at is not None
        actions = set(AuditEvent.objects.filter(tenant=cast.tenant).values_list("action", flat=True))
    assert {"member.remove", "member.deprovision"} <= actions


@pytest.mark.parametrize("how", ["inactive", "deleted"])
def test_deprovisioned_does_not_come_back_by_signing_in(how: str, door: Door, cast: Cast):
    scim = Scim(cast)
    made = scim.user()
    assert door.sign_in().status_code == 302
    assert door.is_in()
    if how == "deleted":
        scim.call("DELETE", f"Users/{made['id']}")
    else:
        scim.patch(f"Users/{made['id']}", {"op": "Replace", "path": "active", "value": "False"})
    assert not door.is_in()
    assert door.sign_in().status_code == 403
    assert not door.is_in()


def test_the_last_owner_is_kept(scim: Scim, cast: Cast):
    owner = cast.user("owner")
    User.objects.filter(pk=owner.pk).update(email=f"boss@{DOMAIN}")
    made = scim.user("boss")
    for response in (
        scim.patch(f"Users/{made['id']}", {"op": "replace", "value": {"active": False}}),
        scim.call("DELETE", f"Users/{made['id']}"),
    ):
        assert (response.status_code, response.json()["scimType"]) == (400, "mutability")
    services.group_role_set(tenant=cast.tenant, actor=cast.actor("owner"), group="Eng", role="viewer")
    scim.call("POST", "Groups", {"displayName": "Eng", "members": [{"value": made["id"]}]})
    assert scim.role("boss") == "owner"
    assert scim.call("GET", f"Users/{made['id']}").json()["active"] is True


def test_without_a_role_for_all_a_group_lets_in_and_out(scim: Scim, cast: Cast):
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    services.rules_set(
        **who,
        requires_sso=False,
        requires_second_factor=False,
        session_hours=None,
        break_glass=None,
        default_role="",
    )
    services.group_role_set(**who, group="g-1", role="viewer")
    made = scim.user()
    assert scim.role() == ""
    group = scim.call(
        "POST", "Groups", {"displayName": "Eng", "externalId": "g-1", "members": [{"value": made["id"]}]}
    ).json()
    assert scim.role() == "viewer"
    scim.patch(f"Groups/{group['id']}", {"op": "remove", "path": f'members[value eq "{made["id"]}"]'})
    assert scim.role() == ""


def test_deleted_people_are_kept_out_of_sight(scim: Scim, cast: Cast):
    made = scim.user()
    scim.call("DELETE", f"Users/{made['id']}")
    assert scim.call("GET", "Users").json()["totalResults"] == 0
    with tenant_scope(cast.tenant.pk):
        row = ScimUser.objects.get()
    assert row.deleted_at is not None
    assert row.deleted_at <= timezone.now()

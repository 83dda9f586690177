"""SCIM as RFC 7644 has it and as Okta and Entra send it; then those who should get nothing from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sso import services
from sso.models import ScimToken, ScimUser
from tenancy.models import ApiKey, AuditEvent, Membership, Role, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import make_member, make_user
from tests.sso.conftest import BACKEND, DOMAIN, Door, domain_have

pytestmark = pytest.mark.django_db
CORE = "urn:ietf:params:scim:schemas:core:2.0:"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Scim:
    """A provider's provisioning client."""

    def __init__(self, cast: Cast) -> None:
        self.tenant = cast.tenant
        _, self.token = services.scim_token_create(tenant=cast.tenant, actor=cast.actor("owner"), name="Okta")
        self.client = Client(raise_request_exception=False)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.generic(
            method,
            path if path.startswith("/") else f"/scim/v2/{path}",
            json.dumps(body) if body is not None else "",
            content_type="application/scim+json",
            headers={"Authorization": f"Bearer {self.token}", **headers},
        )

    def user(self, name: str = "ada", /, **more: Any) -> dict[str, Any]:
        body = {"schemas": [f"{CORE}User"], "userName": f"{name}@{DOMAIN}", "active": True, **more}
        response = self.call("POST", "Users", body)
        assert response.status_code == 201, response.content
        found: dict[str, Any] = response.json()
        return found

    def patch(self, path: str, *operations: dict[str, Any]) -> Any:
        return self.call("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})

    def found(self, kind: str, filter_: str) -> list[str]:
        response = self.call("GET", f"/scim/v2/{kind}?filter={filter_.replace(' ', '%20')}")
        assert response.status_code == 200, response.content
        return [one["id"] for one in response.json()["Resources"]]

    def role(self, name: str = "ada") -> str:
        with tenant_scope(self.tenant.pk):
            row = Membership.objects.filter(tenant=self.tenant, user__email=f"{name}@{DOMAIN}").first()
        return row.role if row else ""


@pytest.fixture
def scim(cast: Cast) -> Scim:
    domain_have(cast.tenant, cast.actor("owner"))
    return Scim(cast)


# --- Okta -----------------------------------------------------------------------------------------


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


FILTERS = [
    ('userName eq "ADA@ACME.EXAMPLE"', 1),
    ('username Eq "ada@acme.example"', 1),
    (f'{CORE}User:userName eq "ada@acme.example"', 1),
    ('externalId eq "X1"', 1),
    ('externalId eq "x1"', 0),
    ('emails.value eq "ada@acme.example"', 1),
    ('emails[type eq "work" and value co "ada"]', 1),
    ('emails[type eq "home"]', 0),
    ('userName sw "a" and active eq true', 1),
    ('userName sw "a" and active eq false', 0),
    ('userName eq "x" or externalId eq "X1"', 1),
    ('not (externalId eq "X1")', 1),
    ('(userName sw "a" or userName sw "b") and not (active eq false)', 2),
    ("externalId pr", 2),
    ("displayName pr", 0),
    ('meta.lastModified gt "2020-01-01T00:00:00Z"', 2),
    ('id eq "not-an-id"', 0),
    ('userName ne "ada@acme.example"', 1),
]


def test_users_are_found_by_filters(scim: Scim):
    scim.user("ada", externalId="X1")
    scim.user("ben")
    assert [(text, len(scim.found("Users", text))) for text, _ in FILTERS] == FILTERS


def test_groups_are_found_by_their_members(scim: Scim):
    ada = scim.user("ada")
    group = scim.call("POST", "Groups", {"displayName": "Eng", "members": [{"value": ada["id"]}]}).json()
    for filter_ in (
        f'members[value eq "{ada["id"]}"]',
        f'members.value eq "{ada["id"]}"',
        f'members eq "{ada["id"]}"',
    ):
        assert scim.found("Groups", filter_) == [group["id"]]
    assert scim.found("Groups", f'id eq "{group["id"]}" and displayName eq "Eng"') == [group["id"]]
    shown = scim.call("GET", f"Users/{ada['id']}").json()
    assert shown["groups"] == [{"value": group["id"], "display": "Eng"}]


BAD_FILTERS = ["userName", 'userName eq', 'userName eq x', 'userName xx "a"', '(userName eq "a"', 'userName eq "a" and',
     'password eq "a"', 'userName eq "a")', '"a" eq userName', 'active gt true', 'meta.created gt "now"',
     "userName eq 1", "(" * 50 + 'id eq "a"' + ")" * 50, 'userName eq "\\u0000"', "x" * 3000, "'; DROP TABLE x"]  # fmt: skip


def test_bad_filters_are_refused_in_the_form_of_scim(scim: Scim):
    for text in BAD_FILTERS:
        response = scim.client.get(
            "/scim/v2/Users", {"filter": text}, headers={"Authorization": f"Bearer {scim.token}"}
        )
        assert response.status_code == 400, (text, response.content)
        said = response.json()
        assert said["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert (said["status"], said["scimType"]) == ("400", "invalidFilter"), text


def test_lists_come_in_pages(scim: Scim):
    for name in ("a", "b", "c"):
        scim.user(name)
    page = scim.call("GET", "/scim/v2/Users?startIndex=2&count=1").json()
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert page["Resources"][0]["userName"].startswith("b@")
    assert scim.call("GET", "/scim/v2/Users?count=0").json()["Resources"] == []
    assert scim.call("GET", "/scim/v2/Users?startIndex=-5&count=-1").json()["itemsPerPage"] == 0
    assert scim.call("GET", "/scim/v2/Users?count=x").status_code == 400
    only = scim.call("GET", "/scim/v2/Users?attributes=userName").json()["Resources"][0]
    assert set(only) == {"schemas", "id", "userName"}


def test_a_list_costs_no_statement_for_each_of_its_rows(scim: Scim):
    def statements(kind: str) -> int:
        with CaptureQueriesContext(connection) as sent:
            assert scim.call("GET", f"/scim/v2/{kind}").status_code == 200
        return len(sent)

    def grow(*names: str) -> None:
        for name in names:
            member = {"value": scim.user(name)["id"]}
            made = scim.call("POST", "Groups", {"displayName": name, "members": [member]})
            assert made.status_code == 201

    grow("a")
    before = {kind: statements(kind) for kind in ("Users", "Groups")}
    grow("b", "c", "d")
    assert {kind: statements(kind) for kind in before} == before
    shown = scim.call("GET", "/scim/v2/Users").json()["Resources"]
    assert [[group["display"] for group in one["groups"]] for one in shown] == [["a"], ["b"], ["c"], ["d"]]


def test_versions_keep_a_stale_write_out(scim: Scim):
    made = scim.user()
    path = f"Users/{made['id']}"
    tag = scim.call("GET", path)["ETag"]
    assert scim.call("GET", path, **{"If-None-Match": tag}).status_code == 304
    changed = scim.patch(path, {"op": "replace", "path": "displayName", "value": "New"})
    assert changed["ETag"] != tag
    assert scim.call("PUT", path, made, **{"If-Match": tag}).status_code == 412
    assert scim.call("DELETE", path, **{"If-Match": changed["ETag"]}).status_code == 204


def test_what_is_there_is_described(scim: Scim):
    said = scim.call("GET", "ServiceProviderConfig").json()
    assert (said["patch"]["supported"], said["bulk"]["supported"], said["filter"]["supported"]) == (
        True,
        False,
        True,
    )
    kinds = scim.call("GET", "ResourceTypes").json()["Resources"]
    assert [one["endpoint"] for one in kinds] == ["/Users", "/Groups"]
    assert scim.call("GET", "ResourceTypes/User").json()["schema"] == f"{CORE}User"
    schemas = scim.call("GET", "Schemas").json()
    assert schemas["totalResults"] == 2
    assert scim.call("GET", f"Schemas/{CORE}User").json()["name"] == "User"
    assert scim.call("GET", "Schemas/none").status_code == 404
    assert scim.call("POST", "Bulk", {}).status_code == 501
    assert scim.call("GET", "Devices").status_code == 404
    assert scim.call("DELETE", "Users").status_code == 405


def test_the_same_person_twice_is_a_conflict(scim: Scim):
    made = scim.user(externalId="X1")
    again = scim.call("POST", "Users", {"userName": f"ADA@{DOMAIN}"})
    assert (again.status_code, again.json()["scimType"]) == (409, "uniqueness")
    other = scim.user("ben")
    taken = scim.patch(
        f"Users/{other['id']}", {"op": "replace", "path": "userName", "value": f"ada@{DOMAIN}"}
    )
    assert taken.status_code == 409
    scim.call("POST", "Groups", {"displayName": "Eng"})
    assert scim.call("POST", "Groups", {"displayName": "ENG"}).status_code == 409
    assert scim.call("DELETE", f"Users/{made['id']}").status_code == 204
    back = scim.user(externalId="X2")
    assert back["id"] != made["id"]
    assert scim.role() == "member"


BAD_USERS: list[dict[str, Any]] = [
    {},
    {"userName": ""},
    {"userName": "ada"},
    {"userName": "ada@evil.example"},
    {"userName": "ada", "emails": [{"value": f"ada@sub.{DOMAIN}"}]},
    {"userName": f"ada@{DOMAIN}", "active": "perhaps"},
    {"userName": f"ada@{DOMAIN}", "name": "Ada"},
    {"userName": ["ada"]},
    {"userName": f"ada@{DOMAIN}", "displayName": "a\x00b"},
    {"userName": "x" * 300},
]


def test_bad_users_are_refused(scim: Scim):
    for body in BAD_USERS:
        response = scim.call("POST", "Users", body)
        assert (response.status_code, response.json()["scimType"]) == (400, "invalidValue"), body
    assert not User.objects.filter(email__startswith="ada@").exists()


BAD_OPERATIONS: list[Any] = [{"op": "move", "path": "active"}, {"op": "remove"}, {"op": "replace", "path": "nothing", "value": 1},
     {"op": "replace", "value": "x"}, {"op": "replace", "path": 'emails[type eq "work"', "value": 1},
     {"op": "replace", "path": 'emails[type gt "work"].value', "value": "x"}, "x",
     {"op": "replace", "path": "active", "value": None}, {"op": "replace", "path": "name", "value": "x"}]  # fmt: skip


def test_bad_patches_change_nothing(scim: Scim):
    made = scim.user()
    good = {"op": "replace", "path": "displayName", "value": "Changed"}
    for operation in BAD_OPERATIONS:
        response = scim.patch(f"Users/{made['id']}", good, operation)
        assert response.status_code == 400, (operation, response.content)
    assert "displayName" not in scim.call("GET", f"Users/{made['id']}").json()


def test_unreadable_bodies_are_refused(scim: Scim):
    for body in (b"", b"{", b"[]", b"[" * 100_000, b'"x"'):
        response = scim.client.post(
            "/scim/v2/Users",
            body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {scim.token}"},
        )
        assert (response.status_code, response.json()["scimType"]) == (400, "invalidSyntax")


# --- who gets in ----------------------------------------------------------------------------------


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

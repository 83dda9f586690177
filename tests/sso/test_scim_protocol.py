"""SCIM as RFC 7644 has it: filters, pages, versions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenancy.models import User
from tests.sso.provider import DOMAIN
from tests.sso.scim_client import CORE, Scim

pytestmark = pytest.mark.django_db


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

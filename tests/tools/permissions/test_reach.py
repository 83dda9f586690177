"""A rule that matches no tool is told of where it is made, and later when what it named has gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.tools.models import ToolSource
from apps.tools.permissions.reach import grant_warning, grant_warnings
from apps.tools.permissions.services import grant_create
from apps.tools.toolkits.services import toolkit_set
from apps.tools.toolset.selectors import grant_list
from tenancy.models import ApiKey, User
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create, api_key_revoke, member_remove
from tests.cast import Cast
from tests.concurrency.rest import make_key
from tests.tools.sources.support import plugin_put, source_made

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("tool", "calculate", "calculat"),
        ("tool", "execute_tools", "execute"),
        ("group", "collections", "collection"),
        ("group", "code_mode", "code"),
        ("pattern", "search_*", "seek_*"),
    ],
)
def test_only_rules_that_match_nothing_are_told_of(cast: Cast, kind: str, right: str, wrong: str) -> None:
    actor = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        for target, is_told in ((right, False), (wrong, True)):
            grant = grant_create(
                tenant=cast.tenant, actor=actor, effect="allow", target_kind=kind, target=target
            )
            told = grant_warning(actor=actor, grant=grant)
            assert bool(told) == is_told, target
            assert not is_told or f"“{target}”" in told


@pytest.mark.parametrize("lose", ["removed", "deactivated", "revoked", "expired"])
def test_rules_about_who_is_gone_are_told_of_and_kept(cast: Cast, lose: str) -> None:
    actor = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        key, _ = api_key_create(tenant=cast.tenant, actor=actor, name="k", scopes=["run.read"])
        subjects = {
            "member": str(cast.member.user_id),
            "api_key": str(key.pk),
            "role": "viewer",
            "everyone": "",
        }
        grants = {
            kind: grant_create(
                tenant=cast.tenant,
                actor=actor,
                effect="allow",
                target_kind="tool",
                target="calculate",
                subject_kind=kind,
                subject=subject,
            )
            for kind, subject in subjects.items()
        }
        assert grant_warnings(actor=actor, grants=grants.values()) == {}
        if lose == "removed":
            member_remove(tenant=cast.tenant, actor=actor, member_id=cast.member.pk)
        elif lose == "deactivated":
            User.objects.filter(pk=cast.member.user_id).update(is_active=False)
        elif lose == "revoked":
            api_key_revoke(tenant=cast.tenant, actor=actor, key_id=key.pk)
        else:
            ApiKey.objects.filter(pk=key.pk).update(expires_at="2020-01-01T00:00:00Z")
        gone = "member" if lose in ("removed", "deactivated") else "api_key"
        told = grant_warnings(actor=actor, grants=grant_list(actor=actor))
        assert set(told) == {grants[gone].pk}
        assert "applies to no one" in told[grants[gone].pk]


def test_toolkit_matches_by_what_it_contains(cast: Cast) -> None:
    actor = cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        for names, is_told in ((["calculate", "gone"], False), (["gone"], True)):
            kit = toolkit_set(tenant=cast.tenant, actor=actor, name=f"kit {is_told}", tools=names)
            grant = grant_create(
                tenant=cast.tenant, actor=actor, effect="allow", target_kind="toolkit", toolkit=kit.pk
            )
            assert bool(grant_warning(actor=actor, grant=grant)) == is_told


def test_rest_portal_and_admin_tell_of_it_when_it_is_made_and_when_its_target_goes(
    cast: Cast, client: Client, tmp_path: Path, settings: Any
) -> None:
    settings.PLUGIN_DIR = tmp_path
    plugin_put(tmp_path)
    source = source_made(cast.tenant)
    client.force_login(cast.user("owner"))
    page, admin = f"/t/{cast.tenant.slug}/tools/permissions/rules/", "/admin/tools/toolgrant/"
    rest = "/api/v1/tool-grants"
    shop = {"effect": "allow", "target_kind": "group", "target": "shop"}
    typo = {"effect": "deny", "target_kind": "tool", "target": "shop_stok"}
    key = {"Authorization": f"Bearer {make_key(cast)}"}
    made = [
        client.post(rest, json.dumps(one), "application/json", headers=key).json() for one in (shop, typo)
    ]
    assert made[0]["warning"] == ""
    assert "“shop_stok”" in made[1]["warning"]
    with tenant_scope(cast.tenant.pk):
        ToolSource.objects.filter(pk=source.pk).update(is_enabled=False)
    listed = {one["target"]: one["warning"] for one in client.get(rest, headers=key).json()["results"]}
    assert "in the group “shop”" in listed["shop"]
    assert listed["collections"] == ""
    for where in (page, admin):
        shown = client.get(where)
        assert shown.status_code == 200, where
        assert shown.content.decode().count("currently matches no calls") == 2, where

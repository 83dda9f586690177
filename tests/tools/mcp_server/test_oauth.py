"""Tokens of applications that a member connects by OAuth: stolen, spent, shrunk, ended."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from basics.errors import Conflict, Denied
from tenancy.models import ApiKey, AuditEvent, Membership, OAuthToken, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import (
    api_key_rotate,
    connection_allow,
    member_remove,
    member_role_change,
)
from tests.cast import Cast
from tests.markup import flat
from tests.tools.mcp_server.application import CHALLENGE, HOME, LOCAL, App, is_refused
from tests.tools.mcp_server.conftest import message, post

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_rates")]


@pytest.fixture
def app(cast: Cast) -> App:
    return App(cast)


@pytest.mark.django_db(transaction=True)  # a call reads rights in another thread
def test_connected_application_acts_as_its_member_within_its_scopes(app: App) -> None:
    tokens = app.connect("tool.run", "search.run")
    assert (tokens["token_type"], tokens["scope"]) == ("Bearer", "search.run tool.run")
    assert tokens["expires_in"] == 900
    said = post(
        app.slug,
        message("tools/call", name="calculate", arguments={"expression": "6*7"}),
        tokens["access_token"],
    )
    assert "42" in said.content.decode()
    listed = post(app.slug, message("resources/list"), tokens["access_token"])
    assert listed.json()["result"]["resources"] == []  # without collection.read there is none
    with tenant_scope(app.cast.tenant.pk):
        row = ApiKey.objects.get()
        assert (row.name, row.user, row.scopes) == (
            "Robot",
            app.cast.user("member"),
            ["search.run", "tool.run"],
        )
        done = set(AuditEvent.objects.values_list("action", flat=True))
        assert {"connection.allow", "connection.begin"} <= done
        held = json.dumps(
            [*OAuthToken.objects.values(), *ApiKey.objects.values(), *AuditEvent.objects.values()],
            default=str,
        )
    assert tokens["access_token"] not in held
    assert tokens["refresh_token"] not in held


def test_code_shown_twice_ends_the_connection(app: App) -> None:
    code = app.code()
    tokens = app.redeem(code).json()
    assert app.works(tokens)
    assert is_refused(app.redeem(code))
    assert not app.works(tokens)
    assert is_refused(app.refresh(tokens["refresh_token"]))
    with tenant_scope(app.cast.tenant.pk):
        assert AuditEvent.objects.get(action="connection.end").data == {"reason": "code used twice"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"redirect_uri": LOCAL},
        {"redirect_uri": ""},
        {"client_id": "gwc_other"},
    ],
    ids=["verifier", "no verifier", "challenge as verifier", "address", "no address", "client"],
)
def test_stolen_code_opens_nothing_and_is_spent(app: App, wrong: dict[str, str]) -> None:
    code = app.code()
    assert is_refused(app.redeem(code, **wrong))
    assert is_refused(app.redeem(code))


def test_code_and_refresh_token_end_with_their_time(app: App) -> None:
    code, tokens = app.code(), app.connect()
    with tenant_scope(app.cast.tenant.pk):
        OAuthToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert is_refused(app.redeem(code))
    assert is_refused(app.refresh(tokens["refresh_token"]))
    assert not app.works(tokens)


def test_refresh_token_rotates_and_its_repetition_ends_the_family(app: App) -> None:
    first = app.connect()
    second = app.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert app.works(second)
    assert is_refused(app.refresh(second["refresh_token"], client_id="gwc_other"))
    assert app.works(second)
    assert is_refused(app.refresh(first["refresh_token"]))  # the thief's, or the victim's: both end
    assert not app.works(second)
    assert is_refused(app.refresh(second["refresh_token"]))


def test_token_is_for_its_workspace_and_for_mcp_alone(app: App, cast: Cast) -> None:
    tokens = app.connect("tool.run", "collection.read")
    other = cast.other_tenant.slug
    assert not app.works(tokens, other)
    assert is_refused(app.token(other, grant_type="refresh_token", refresh_token=tokens["refresh_token"]))
    assert is_refused(app.token("nowhere", grant_type="refresh_token", refresh_token=tokens["refresh_token"]))
    assert is_refused(
        app.refresh(tokens["refresh_token"], resource="http://testserver/t/x/mcp"), "invalid_target"
    )
    rest = Client(headers={"Authorization": f"Bearer {tokens['access_token']}"})
    assert rest.get("/api/v1/collections").status_code == 401
    assert not app.works({"access_token": tokens["refresh_token"]})
    assert app.works(tokens)


def test_rights_end_with_those_of_the_member(app: App, cast: Cast) -> None:
    tokens = app.connect("tool.run", "search.run")
    member: Membership = cast.member
    with platform_scope():
        User.objects.filter(pk=member.user_id).update(is_active=False)
    assert not app.works(tokens)
    with platform_scope():
        User.objects.filter(pk=member.user_id).update(is_active=True)
    assert app.works(tokens)
    member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=member.pk)
    assert not app.works(tokens)
    assert is_refused(app.refresh(tokens["refresh_token"]))


def test_rights_shrink_with_the_role(cast: Cast) -> None:
    from tenancy.selectors import access_token_authenticate

    app = App(cast)
    tokens = app.connect("document.write", "tool.run")

    def rights() -> frozenset[str]:
        found = access_token_authenticate(slug=app.slug, token=tokens["access_token"])
        assert found is not None
        return found[1].actions

    assert rights() == {"document.write", "tool.run"}
    member_role_change(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk, role="viewer")
    assert rights() == {"tool.run"}


def test_scopes_are_the_persons_own_and_known_ones(cast: Cast) -> None:
    viewer = App(cast, "viewer")
    page = viewer.browser.get(viewer.url(scope="document.write tool.run tool.manage offline_access"))
    assert page.status_code == 200
    assert "Add and change documents" not in page.content.decode()
    assert viewer.consent(("document.write",)).status_code == 403
    assert viewer.consent(("tool.manage",)).status_code == 400
    assert viewer.consent(()).status_code == 422
    assert viewer.browser.get(viewer.url(scope="tool.manage")).status_code == 400
    with pytest.raises(Denied):  # a key, that of another application for example, connects none
        connection_allow(
            tenant=cast.tenant,
            actor=_key_actor(cast),
            client_id="x",
            name="x",
            scopes=["tool.run"],
            redirect_uri=HOME,
            challenge=CHALLENGE,
        )


def _key_actor(cast: Cast) -> Any:
    from dataclasses import replace

    return replace(cast.actor("owner"), kind="api_key")


def test_member_disconnects_their_own_and_an_admin_any(app: App, cast: Cast) -> None:
    url = f"/t/{app.slug}/settings/connections/"
    mine, other = app.connect(), App(cast, "admin")
    theirs = other.connect()
    assert flat(other.browser.get(url).content.decode()).count("Disconnect<") == 2
    page = app.browser.get(url).content.decode()
    assert flat(page).count("Disconnect<") == 1
    with tenant_scope(cast.tenant.pk):
        rows = {row.user_id: row for row in ApiKey.objects.all()}
    own, foreign = rows[cast.member.user_id], rows[cast.admin.user_id]
    assert app.browser.post(url, {"connection": foreign.pk}).status_code == 404
    assert app.works(theirs)
    assert app.browser.post(url, {"connection": own.pk}).status_code == 302
    assert not app.works(mine)
    assert other.browser.post(url, {"connection": own.pk}, follow=True).status_code == 200
    with pytest.raises(Conflict, match="connected application"):
        api_key_rotate(tenant=cast.tenant, actor=cast.actor("admin"), key_id=foreign.pk)
    signed_out = Client().post(
        f"/t/{app.slug}/oauth/revoke", {"client_id": other.client_id, "token": theirs["refresh_token"]}
    )
    assert signed_out.status_code == 200
    assert not other.works(theirs)

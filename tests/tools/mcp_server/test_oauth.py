"""Applications that a member connects by OAuth: hostile ones first. Each test goes over HTTP, as an application does."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from basics.errors import Conflict, Denied
from basics.net_guard import PUBLIC
from tenancy.models import ApiKey, AuditEvent, Membership, OAuthToken, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import (
    api_key_rotate,
    connection_allow,
    member_remove,
    member_role_change,
    outgoing_hosts_set,
)
from tests.cast import Cast
from tests.markup import flat
from tests.tools.mcp_server.conftest import message, post
from web.oauth import clients
from web.windows import windows_clear

pytestmark = pytest.mark.django_db
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
HOME = "https://app.example/cb"
LOCAL = "http://127.0.0.1:7777/cb"
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(autouse=True)
def fresh_rates() -> Iterator[None]:
    """Forget how often this address has called."""
    cache.clear()
    yield
    cache.clear()


class App:
    """An application at one workspace's authorization server, and the browser of the member who uses it."""

    def __init__(self, cast: Cast, role: str = "member", *uris: str, name: str = "Robot") -> None:
        self.slug, self.cast, self.role = cast.tenant.slug, cast, role
        self.uris = uris or (HOME, LOCAL)
        self.browser = Client(raise_request_exception=False)
        self.browser.force_login(cast.user(role), backend=BACKEND)
        self.resource = f"http://testserver/t/{self.slug}/mcp"
        self.client_id = self.register(redirect_uris=list(self.uris), client_name=name).json()["client_id"]

    def register(self, **said: Any) -> Any:
        return Client().post(
            f"/t/{self.slug}/oauth/register", json.dumps(said), content_type="application/json"
        )

    def url(self, **given: str) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.uris[0],
            "state": "s&1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": self.resource,
            "scope": "tool.run search.run",
        }
        return f"/t/{self.slug}/oauth/authorize?{urlencode({**asked, **given})}"

    def consent(self, scopes: tuple[str, ...] = ("tool.run",), action: str = "allow", **given: str) -> Any:
        return self.browser.post(self.url(**given), {"action": action, "scope": scopes})

    def code(self, *scopes: str, **given: str) -> str:
        response = self.consent(scopes or ("tool.run",), **given)
        assert response.status_code == 303, response.content
        return str(dict(parse_qsl(urlsplit(response["Location"]).query))["code"])

    def token(self, slug: str = "", **sent: str) -> Any:
        data = {"client_id": self.client_id, **sent}
        return Client().post(
            f"/t/{slug or self.slug}/oauth/token",
            urlencode(data),
            content_type="application/x-www-form-urlencoded",
        )

    def redeem(self, code: str, **sent: str) -> Any:
        said = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.uris[0],
            "code_verifier": VERIFIER,
        }
        return self.token(**{**said, **sent})

    def refresh(self, token: str, **sent: str) -> Any:
        return self.token(**{"grant_type": "refresh_token", "refresh_token": token, **sent})

    def connect(self, *scopes: str) -> dict[str, Any]:
        response = self.redeem(self.code(*scopes))
        assert response.status_code == 200, response.content
        return dict(response.json())

    def works(self, tokens: dict[str, Any], slug: str = "") -> bool:
        """Tell whether the access token still opens the server."""
        response = post(slug or self.slug, message("tools/list"), tokens["access_token"])
        assert response.status_code in (200, 401), response.content
        return bool(response.status_code == 200)


@pytest.fixture
def app(cast: Cast) -> App:
    return App(cast)


def is_refused(response: Any, error: str = "invalid_grant") -> bool:
    assert response.status_code == 400, response.content
    return bool(response.json()["error"] == error)


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


TRICKS = (
    "https://app.example/cb/",
    "https://app.example/cb?x=1",
    "https://app.example/cb#x",
    "https://app.example/CB",
    "https://app.example.evil.example/cb",
    "https://app.example@evil.example/cb",
    "https://evil.example/cb",
    "http://app.example/cb",
    "https://app.example:8443/cb",
    "https://app.example/cb/../evil",
    "//evil.example/cb",
    "https://app.example\\@evil.example/cb",
    "javascript:alert(1)",
    "http://127.0.0.1:7777/other",
    "http://127.0.0.1.evil.example:7777/cb",
    "http://127.0.0.1:7777@evil.example/cb",
    "http://localhost:7777/cb",
    "http://[::1]:7777/cb",
    "https://127.0.0.1:7777/cb",
    "http://127.0.0.1:99999/cb",
    "",
)


def test_no_redirect_trick_sends_anybody_anywhere(app: App) -> None:
    for uri in TRICKS:
        for response in (app.browser.get(app.url(redirect_uri=uri)), app.consent(redirect_uri=uri)):
            assert response.status_code == 400, uri
            assert "Location" not in response, uri
    with tenant_scope(app.cast.tenant.pk):
        assert not ApiKey.objects.exists()


def test_program_on_the_persons_machine_may_choose_its_port(app: App) -> None:
    uri = "http://127.0.0.1:51234/cb"
    code = app.code(redirect_uri=uri)
    assert app.redeem(code, redirect_uri=uri).status_code == 200


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "/cb",
        "https:///cb",
        "https://u:p@app.example/cb",
        "https://app.example/cb#f",
        "https://*.example/cb",
        "https://app.example/c b",
        "https://app.example/\r\nX: y",
        "http://10.0.0.1/cb",
        "https://" + "a" * 600,
        "evil:/cb",
        "https://[/cb",
    ],
    ids=range(15),
)
def test_address_that_nobody_can_own_is_not_registered(app: App, uri: str) -> None:
    response = app.register(redirect_uris=[uri])
    assert is_refused(response, "invalid_redirect_uri")


def test_broken_registration_is_refused_in_words(app: App) -> None:
    broken: list[Any] = [[], "x", {}, *({"redirect_uris": uris} for uris in (HOME, [HOME] * 6, [5]))]
    for said in broken:
        response = Client().post(
            f"/t/{app.slug}/oauth/register", json.dumps(said), content_type="application/json"
        )
        assert response.status_code == 400, said
        assert response.json()["error_description"]
    for body in ("{", "[" * 100_000, "\udcff"):
        sent: Any = body.encode("utf-8", "surrogateescape")
        response = Client().post(f"/t/{app.slug}/oauth/register", sent, content_type="application/json")
        assert response.status_code in (400, 413)
    assert is_refused(app.register(redirect_uris=[HOME], grant_types=["implicit"]), "invalid_client_metadata")


def test_registration_is_rate_limited(app: App) -> None:
    windows_clear()  # the fixture has registered one
    seen = {app.register(redirect_uris=[HOME]).status_code for _ in range(20)}
    assert seen == {201}
    response = app.register(redirect_uris=[HOME])
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "http://testserver/t/other/mcp"}, "invalid_target"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"client_id": "gwc_forged:1:x"}, "invalid_client"),
        ({"client_id": "gwc_\x00"}, "invalid_client"),
        ({"client_id": "https://[bad/x"}, "invalid_client"),
        ({"client_id": "https://app.example/"}, "invalid_client"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"state": "s" * 2001}, "invalid_request"),
    ],
    ids=range(12),
)
def test_wrong_request_is_told_to_the_person_and_leads_nowhere(
    app: App, given: dict[str, str], error: str
) -> None:
    response = app.browser.get(app.url(**given))
    assert response.status_code == 400
    assert "Location" not in response
    assert error in response.content.decode()


def test_parameter_sent_twice_is_refused(app: App) -> None:
    response = app.browser.get(app.url() + "&redirect_uri=https://evil.example/")
    assert response.status_code == 400
    twice = "grant_type=refresh_token&refresh_token=a&refresh_token=b"
    url = f"/t/{app.slug}/oauth/token"
    said = Client().post(url, twice, content_type="application/x-www-form-urlencoded")
    assert is_refused(said, "invalid_request")
    assert is_refused(app.token(grant_type="password"), "unsupported_grant_type")
    assert Client().get(url).status_code == 405


def test_client_of_another_workspace_is_unknown(app: App, cast: Cast) -> None:
    theirs = Client()
    theirs.force_login(cast.user("outsider"), backend=BACKEND)
    url = app.url().replace(f"/t/{app.slug}/", f"/t/{cast.other_tenant.slug}/")
    assert theirs.get(url).status_code == 400
    assert theirs.get(app.url()).status_code == 404
    stranger = Client().get(app.url())
    assert (stranger.status_code, urlsplit(stranger["Location"]).path) == (302, "/accounts/login/")


def test_consent_cannot_be_forged_or_framed_and_its_form_leads_to_the_application_alone(app: App) -> None:
    page = app.browser.get(app.url(redirect_uri=LOCAL))
    policy = page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:7777;" in policy + ";"
    assert page["X-Frame-Options"] == "DENY"
    for words in ("Robot", app.cast.tenant.name, app.cast.user("member").email, "this computer"):
        assert words in page.content.decode()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(app.cast.user("member"), backend=BACKEND)
    assert strict.post(app.url(), {"action": "allow", "scope": "tool.run"}).status_code == 403
    assert not app.consent(action="deny")["Location"].count("code=")


def test_answer_names_state_and_issuer_and_a_no_is_a_no(app: App) -> None:
    issuer = f"http://testserver/t/{app.slug}"
    for action, expected in (("allow", "code"), ("deny", "error")):
        location = app.consent(action=action)["Location"]
        assert location.startswith(f"{HOME}?")
        said = parse_qs(urlsplit(location).query)
        assert set(said) == {expected, "state", "iss"}
        assert (said["state"], said["iss"]) == (["s&1"], [issuer])


def test_name_cannot_hide_or_break_out(cast: Cast) -> None:
    app = App(cast, name="<script>x</script>\u202eevil\x00" + "y" * 200)
    page = app.browser.get(app.url()).content.decode()
    assert "<script>x" not in page
    assert "\u202e" not in page
    assert "y" * 81 not in page


def test_documents_say_where_to_go_whether_there_is_a_workspace_or_not(app: App) -> None:
    def documents(slug: str) -> list[str]:
        paths = (f"oauth-protected-resource/t/{slug}/mcp", f"oauth-authorization-server/t/{slug}")
        return [Client().get(f"/.well-known/{p}").content.decode().replace(slug, "*") for p in paths]

    assert documents(app.slug) == documents("nowhere")
    resource, server = map(json.loads, documents(app.slug))
    assert resource["resource"] == "http://testserver/t/*/mcp"
    assert resource["authorization_servers"] == [server["issuer"]] == ["http://testserver/t/*"]
    assert server["code_challenge_methods_supported"] == ["S256"]
    for key in ("", "gwo_nonsense"):
        asked = post(app.slug, message("tools/list"), key)["WWW-Authenticate"]
        assert f"/.well-known/oauth-protected-resource/t/{app.slug}/mcp" in asked
        assert ('error="invalid_token"' in asked) == bool(key)


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


def test_client_that_is_a_document(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://tool.example/client.json"
    said: dict[str, Any] = {"client_id": url, "client_name": "Tool", "redirect_uris": [HOME]}
    monkeypatch.setattr(clients, "document_fetch", lambda asked, policy: json.dumps(said).encode())
    page = app.browser.get(app.url(client_id=url)).content.decode()
    assert "tool.example" in page
    app.client_id = url
    assert app.works(app.connect())
    for wrong in (
        {"client_id": "https://tool.example/other.json"},
        {"redirect_uris": ["https://evil.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_post"},
    ):
        monkeypatch.setattr(
            clients, "document_fetch", lambda asked, policy, wrong=wrong: json.dumps(said | wrong).encode()
        )
        assert app.browser.get(app.url()).status_code == 400, wrong
    monkeypatch.setattr(clients, "document_fetch", lambda asked, policy: b"<html>")
    assert app.browser.get(app.url()).status_code == 400


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/c",
        "https://169.254.169.254/c",
        "https://[::1]/c",
        "https://localhost/c",
        "https://u@x.example/c",
        "https://10.1.2.3:22/c",
    ],
    ids=range(6),
)
def test_document_in_our_own_network_is_not_fetched(url: str) -> None:
    with pytest.raises(clients.ClientRefused):
        clients.document_fetch(url, PUBLIC)


@pytest.fixture
def hung_up() -> Iterator[tuple[int, list[int]]]:
    """A port that hangs up on everybody; gives the port, and the list that grows with each caller."""
    callers: list[int] = []
    server = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        while True:
            try:
                caller, address = server.accept()
            except OSError:
                return
            callers.append(address[1])
            caller.close()

    thread = threading.Thread(target=hang_up, daemon=True)
    thread.start()
    yield server.getsockname()[1], callers
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.mark.servers
def test_document_is_asked_for_on_the_hosts_of_the_workspaces_list_alone(
    app: App, cast: Cast, hung_up: tuple[int, list[int]], settings: Any
) -> None:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]  # so that only the list may stop a request
    port, callers = hung_up
    asked = app.url(client_id=f"https://127.0.0.1:{port}/client.json")
    assert "could not be fetched" in app.browser.get(asked).content.decode()
    assert len(callers) == 1
    outgoing_hosts_set(tenant=cast.tenant, actor=cast.actor("owner"), hosts=["tool.example"])
    refused = app.browser.get(asked)
    assert refused.status_code == 400
    assert "not on this workspace&#x27;s list of outgoing hosts" in refused.content.decode()
    assert len(callers) == 1
    outgoing_hosts_set(tenant=cast.tenant, actor=cast.actor("owner"), hosts=["127.0.0.1"])
    assert "could not be fetched" in app.browser.get(asked).content.decode()
    assert len(callers) == 2

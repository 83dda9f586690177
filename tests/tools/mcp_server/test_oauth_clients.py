"""Which applications can ask for a connection, from where, and what the member is shown: hostile ones first."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from basics.net_policy import PUBLIC
from tenancy.models import ApiKey
from tenancy.scope import tenant_scope
from tenancy.services import (
    outgoing_hosts_set,
)
from tests.cast import Cast
from tests.tools.mcp_server.application import BACKEND, HOME, LOCAL, App, is_refused
from tests.tools.mcp_server.conftest import message, post
from web.models import AttemptWindow
from web.oauth import clients

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_rates")]


@pytest.fixture
def app(cast: Cast) -> App:
    return App(cast)


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
    AttemptWindow.objects.all().delete()  # the fixture has registered one
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

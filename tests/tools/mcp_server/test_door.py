"""Who gets in at a workspace's MCP server: hostile callers first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tenancy.models import ApiKey, RateLimit, Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_revoke
from tests.cast import Cast
from tests.tools.mcp_server.conftest import Send, key_of, message, post

pytestmark = pytest.mark.django_db
LIST = message("tools/list")


def refusal(response: Any) -> dict[str, Any]:
    """Return the error of a refused request: JSON-RPC, with words and what to quote."""
    said = json.loads(response.content)
    assert said["jsonrpc"] == "2.0"
    assert said["id"] is None
    assert said["error"]["message"]
    assert said["error"]["data"]["request_id"] == response["X-Request-ID"]
    return dict(said["error"])


@pytest.mark.parametrize("slug", ["own", "foreign", "nowhere"])
def test_without_a_valid_key_every_workspace_looks_the_same(cast: Cast, slug: str) -> None:
    named = {"own": cast.tenant.slug, "foreign": cast.other_tenant.slug, "nowhere": "no-such-one"}
    headers: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer gw_nonsense"},
        {"Authorization": "Basic eDp5"},
    ]
    for header in headers:
        response = post(named[slug], LIST, **header)
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Bearer")
        refusal(response)


def test_key_of_another_workspace_learns_nothing(cast: Cast) -> None:
    key = key_of(cast, "outsider")
    there, nowhere = post(cast.tenant.slug, LIST, key), post("no-such-one", LIST, key)
    assert there.status_code == nowhere.status_code == 404
    said = [refusal(r) for r in (there, nowhere)]
    for one in said:
        one["data"].pop("request_id")
    assert said[0] == said[1]
    assert cast.tenant.slug not in there.content.decode()


def test_signed_in_person_needs_a_key_too(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    response = client.post(f"/t/{cast.tenant.slug}/mcp", LIST, content_type="application/json")
    assert response.status_code == 401


def test_revoked_key_and_sleeping_workspace_are_shut_out(cast: Cast) -> None:
    key = key_of(cast)
    assert post(cast.tenant.slug, LIST, key).status_code == 200
    with platform_scope():
        Tenant.objects.filter(pk=cast.tenant.pk).update(is_active=False)
    assert post(cast.tenant.slug, LIST, key).status_code == 401
    with platform_scope():
        Tenant.objects.filter(pk=cast.tenant.pk).update(is_active=True)
    with tenant_scope(cast.tenant.pk):
        row = ApiKey.objects.get()
        api_key_revoke(tenant=cast.tenant, actor=cast.actor("owner"), key_id=row.pk)
    assert post(cast.tenant.slug, LIST, key).status_code == 401


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://testserver.evil.example", "http://testserver:81"]
)
def test_page_of_another_site_is_refused(cast: Cast, origin: str) -> None:
    key = key_of(cast)
    response = post(cast.tenant.slug, LIST, key, Origin=origin)
    assert response.status_code == 403
    assert refusal(response)["data"]["code"] == "origin_denied"


def test_own_page_and_a_trusted_one_are_let_in(cast: Cast, settings: Any) -> None:
    key = key_of(cast)
    settings.CSRF_TRUSTED_ORIGINS = ["https://app.example"]
    for origin in ("http://testserver", "https://app.example"):
        assert post(cast.tenant.slug, LIST, key, Origin=origin).status_code == 200


def test_host_that_is_not_ours_is_refused(cast: Cast, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["groundwork.example"]
    assert post(cast.tenant.slug, LIST, key_of(cast)).status_code == 400


def test_message_has_a_size(cast: Cast) -> None:
    key = key_of(cast)
    response = post(cast.tenant.slug, message("tools/list", padding="x" * 1_000_000), key)
    assert response.status_code == 413
    assert refusal(response)["data"]["code"] == "too_large"


def test_rate_limit_of_rest_holds_and_says_what_remains(cast: Cast) -> None:
    key = key_of(cast)
    with tenant_scope(cast.tenant.pk):
        RateLimit.objects.create(tenant=cast.tenant, kind="key", per_minute=2, burst=2)
    seen = [post(cast.tenant.slug, LIST, key) for _ in range(3)]
    assert [r.status_code for r in seen] == [200, 200, 429]
    assert [r["RateLimit-Remaining"] for r in seen] == ["1", "0", "0"]
    assert int(seen[2]["Retry-After"]) > 0
    said = refusal(seen[2])
    assert said["data"]["code"] == "rate_limited"
    assert "Try again in" in said["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_no_stream_is_opened_from_here(cast: Cast, method: str) -> None:
    key = key_of(cast)
    response = Client().generic(
        method,
        f"/t/{cast.tenant.slug}/mcp",
        headers={"Authorization": f"Bearer {key}", "Accept": "text/event-stream"},
    )
    assert response.status_code == 405
    assert "POST" in response["Allow"]


HALF = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "calculate", "arguments": {"expression": "\\ud800"}}}'
BROKEN = {
    "not JSON": "{",
    "a number": "7",
    "empty": "",
    "a batch": "[]",
    "deep": "[" * 100_000,
    "no method": '{"jsonrpc": "2.0", "id": 1}',
    "huge number": '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ' + "9" * 5000 + "}}",
    "half a character": HALF,
    "null byte": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a\\u0000b"}}',
    "bad bytes": "\udcff",
}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "1999-01-01"])
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_broken_message_is_refused_and_is_no_failure_of_the_server(
    cast: Cast, body: str, version: str
) -> None:
    key = key_of(cast)
    sent: Any = body.encode("utf-8", "surrogateescape")
    response = Client(raise_request_exception=False).post(
        f"/t/{cast.tenant.slug}/mcp",
        sent,
        content_type="application/json",
        headers={
            "Authorization": f"Bearer {key}",
            "Accept": "application/json",
            "MCP-Protocol-Version": version,
        },
    )
    assert response.status_code < 500, response.content
    assert b"Traceback" not in response.content


def test_unknown_method_and_wrong_parameters_are_errors_in_words(ask: Send) -> None:
    assert ask("nothing/here")["code"] == -32601
    assert ask("tools/call", name=5)["code"] == -32602
    assert ask("resources/list", cursor="%%%")["message"].startswith("This cursor is unknown")
    assert ask("tools/list", cursor="%%%")["message"].startswith("This cursor is unknown")
    unknown = ask("tools/call", name="calculat", arguments={})
    assert "Did you mean 'calculate'" in unknown["message"]

"""A workspace's list of outgoing hosts holds wherever something can be led somewhere; real servers must hear nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse
from mcp.server.mcpserver import MCPServer

from apps.collections.ingestion.sources.base import Entry, Problem, SourceLimits
from apps.collections.ingestion.sources.web import web_entries
from apps.tools.calls.services import call_parse, calls_execute
from apps.tools.connectors import http
from apps.tools.connectors.base import SourceError, kind_get
from apps.tools.connectors.mcp_sessions import session, sessions_close
from apps.tools.connectors.secrets import source_now
from apps.tools.models import ToolSource
from basics.errors import Denied, Invalid
from tenancy.models import AuditEvent, OutgoingHost
from tenancy.outgoing import outgoing_policy
from tenancy.scope import tenant_scope
from tenancy.services import outgoing_hosts_set
from tests.cast import Cast
from tests.collections.imports.support import start
from tests.factories import make_collection
from tests.tools.connectors.http_server import ApiServer, api_serving
from tests.tools.connectors.mcp_support import served
from tests.tools.sources.support import granted, source_made
from tests.webhooks.test_webhooks import deliveries, emit, make, work
from toolloop.mcp import McpError

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = "is not on this workspace's list of outgoing hosts"
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "Shop"},
    "paths": {"/stock": {"get": {"operationId": "stock"}}},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_serving() as one:
        yield one


@pytest.fixture(autouse=True)
def _loopback(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name leads to loopback, which the operator allows: only the list may stop a request."""
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(http, "resolver", lambda host, port: ["127.0.0.1"])


def listed(cast: Cast, *hosts: str) -> None:
    outgoing_hosts_set(tenant=cast.tenant, actor=cast.actor("owner"), hosts=hosts)


def execute(cast: Cast, name: str) -> Any:
    with tenant_scope(cast.tenant.pk):
        call = call_parse("a", name, "{}")
        return calls_execute(tenant=cast.tenant, actor=cast.actor("member"), calls=[call])


def test_call_of_an_api_goes_to_listed_hosts_alone_from_the_next_call_on(
    cast: Cast, server: ApiServer
) -> None:
    source_made(
        cast.tenant, "openapi", url=f"http://api.shop.example:{server.port}", document=json.dumps(DOCUMENT)
    )
    granted(cast.tenant, "shop")
    assert not execute(cast, "shop_stock").results[0].is_error
    listed(cast, "api.other.example")
    server.seen.clear()
    (refused,) = execute(cast, "shop_stock").results
    assert refused.is_error
    assert f"The host “api.shop.example” {REFUSED}" in refused.content
    assert server.seen == []
    listed(cast, "api.other.example", "*.shop.example")
    assert not execute(cast, "shop_stock").results[0].is_error
    assert len(server.seen) == 1


def test_document_is_read_from_listed_hosts_alone_after_each_redirect(cast: Cast, server: ApiServer) -> None:
    listed(cast, "docs.shop.example", "api.shop.example")
    there = f"http://docs.shop.example:{server.port}/openapi.json"
    away = f"http://cdn.evil.example:{server.port}/openapi.json"
    body = json.dumps(DOCUMENT | {"servers": [{"url": "https://api.shop.example"}]}).encode()
    with tenant_scope(cast.tenant.pk):
        source = ToolSource(tenant=cast.tenant, kind="openapi", name="shop", document_url=away)
        with pytest.raises(Invalid, match="outgoing hosts"):
            kind_get("openapi").check(source)
        source.document_url = there
        server.answer = (302, {"Location": away}, b"")
        with pytest.raises(SourceError, match=r"cdn\.evil\.example"):
            kind_get("openapi").read(source)
        assert [sent.headers["host"].split(":")[0] for sent in server.seen] == ["docs.shop.example"]
        server.answer = (200, {"Content-Type": "application/json"}, body)
        assert len(kind_get("openapi").read(source)) == 1
        source.url = ""
        server.answer = (200, {"Content-Type": "application/json"}, body.replace(b"api.shop", b"api.evil"))
        with pytest.raises(SourceError, match=r"api\.evil\.example"):
            kind_get("openapi").read(source)


async def test_session_with_an_mcp_server_ends_with_its_place_on_the_list(cast: Cast) -> None:
    official = MCPServer("own")
    heard: list[str] = []

    @official.tool()
    def look(x: int) -> str:
        """Look at something."""
        return "looked"

    with served(official, seen=lambda headers: heard.append(headers["host"])) as url:
        source = await sync_to_async(source_made)(cast.tenant, "mcp", "own", url=url)

        async def connected() -> None:
            def now() -> Any:
                with tenant_scope(cast.tenant.pk):
                    return source_now(cast.tenant.pk, source.pk)

            async with session(*await sync_to_async(now)()) as server:
                assert server.definition("look")

        try:
            await connected()
            await sync_to_async(listed)(cast, "mcp.example.org")
            heard.clear()
            with pytest.raises(McpError):  # though a live session with it is there
                await connected()
            assert heard == []
            await sync_to_async(listed)(cast, "127.0.0.1")
            await connected()
            assert heard
        finally:
            await sessions_close()


def test_webhook_is_sent_to_listed_hosts_alone(cast: Cast, server: ApiServer) -> None:
    hook, _ = make(cast, server.url)
    listed(cast, "hooks.example.org")
    emit(cast)
    work(cast)
    (delivery,) = deliveries(cast)
    assert (delivery.status, delivery.response_status) == ("queued", None)
    assert REFUSED in delivery.error
    assert server.seen == []
    with pytest.raises(Invalid, match="outgoing hosts"):
        make(cast, server.url)
    listed(cast, "127.0.0.1")
    work(cast)
    assert [row.status for row in deliveries(cast)] == ["delivered"]
    assert hook.url.startswith(server.url)


def test_web_pages_are_read_from_listed_hosts_alone_after_each_redirect(
    cast: Cast, server: ApiServer
) -> None:
    listed(cast, "docs.example.org")
    policy = outgoing_policy(cast.tenant.pk)
    page = f"http://docs.example.org:{server.port}/start"

    def fetched(url: str) -> Any:
        (item,) = web_entries(
            [url], limits=SourceLimits(), policy=policy, resolver=lambda host, port: ["127.0.0.1"]
        )
        return item

    away = f"http://evil.example.org:{server.port}/page"
    server.answer = (302, {"Location": away}, b"")
    found = fetched(page)
    assert isinstance(found, Problem)
    assert "“evil.example.org”" in found.message
    assert len(server.seen) == 1
    server.answer = (200, {"Content-Type": "text/html"}, b"<h1>Lamps</h1>")
    assert isinstance(fetched(page), Entry)
    with tenant_scope(cast.tenant.pk), pytest.raises(Invalid) as refused:
        start(cast, make_collection(cast.tenant, "Pages"), "url", urls=(page, away))
    assert REFUSED in refused.value.data["fields"]["urls"][0]


def test_list_is_the_owners_recorded_and_read_in_any_scope(cast: Cast) -> None:
    """Without its own scope the list would look empty, and everything be open."""
    listed(cast, "B.example.org", "a.example.org", "b.example.org")
    assert outgoing_policy(cast.tenant.pk).hosts == {"a.example.org", "b.example.org"}
    with tenant_scope(cast.other_tenant.pk):
        assert outgoing_policy(cast.tenant.pk).hosts == {"a.example.org", "b.example.org"}
    assert outgoing_policy(cast.other_tenant.pk).hosts == frozenset()
    with pytest.raises(Denied):
        outgoing_hosts_set(tenant=cast.tenant, actor=cast.actor("admin"), hosts=[])
    with pytest.raises(Invalid, match="isn't a host"):
        listed(cast, "https://c.example.org/")
    listed(cast, "a.example.org", "b.example.org")
    with tenant_scope(cast.tenant.pk):
        assert OutgoingHost.objects.count() == 2
        (event,) = AuditEvent.objects.filter(action="outgoing_hosts.set")
    assert event.data == {"before": [], "after": ["a.example.org", "b.example.org"]}


def test_owner_sets_the_list_on_the_page_over_rest_and_in_the_admin(cast: Cast) -> None:
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    page = reverse("web:settings-outgoing", args=[cast.tenant.slug])
    assert "every public host can be called" in client.get(page).content.decode()
    assert client.post(page, {"hosts": "api.example.org\r\n*.example.com "}).status_code == 302
    shown = client.get(page).content.decode()
    assert "2 entries can be called" in shown
    assert client.get("/api/v1/outgoing-hosts").json() == {"hosts": ["*.example.com", "api.example.org"]}
    wrong = client.post(page, {"hosts": "https://x.example.org"})
    assert wrong.status_code == 422
    assert "a host. Enter" in wrong.content.decode()
    sent = client.put("/api/v1/outgoing-hosts", {"hosts": ["*"]}, "application/json")
    assert (sent.status_code, sent.json()["code"]) == (400, "invalid")
    add = reverse("admin:tenancy_outgoinghost_add")
    assert "is too broad" in client.post(add, {"pattern": "*.com"}).content.decode()
    for _ in range(2):  # what is listed already stays as it is
        assert client.post(add, {"pattern": "Hooks.Example.org"}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = OutgoingHost.objects.get(pattern="hooks.example.org")
    change = reverse("admin:tenancy_outgoinghost_change", args=[row.pk])
    assert client.post(change, {"pattern": "api.example.org"}).status_code == 302
    assert client.get("/api/v1/outgoing-hosts").json()["hosts"] == ["*.example.com", "api.example.org"]
    with tenant_scope(cast.tenant.pk):
        row = OutgoingHost.objects.get(pattern="api.example.org")
    gone = reverse("admin:tenancy_outgoinghost_delete", args=[row.pk])
    assert client.post(gone, {"post": "yes"}).status_code == 302
    assert client.get("/api/v1/outgoing-hosts").json() == {"hosts": ["*.example.com"]}
    assert client.post(page, {"hosts": ""}).status_code == 302
    assert client.get("/api/v1/outgoing-hosts").json() == {"hosts": []}

"""No trick reaches a blocked address: not when a source is made, not when it is read, and not when a tool is called.

The corpus is that of ``tests.basics.test_net_guard``; as there, a real server on loopback must hear nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from pytest_socket import socket_allow_hosts

from apps.tools.connectors import http
from apps.tools.connectors.base import SourceError
from apps.tools.connectors.openapi import KIND, source_read
from apps.tools.models import ToolSource
from basics.errors import Invalid
from basics.net_guard_async import AsyncGuardedBackend, AsyncGuardedTransport
from basics.net_policy import AddressRefused, NetPolicy
from tests.basics.test_net_guard import TRICKS, resolver
from tests.tools.connectors import openapi_calls
from tests.tools.connectors.http_server import ApiServer, api_serving
from tests.tools.connectors.openapi_calls import call, secret, source_of
from tests.walked import each

GET: Any = {"get": {"operationId": "do"}}
DOCUMENT = b'{"openapi": "3.0.0", "info": {}, "servers": [{"url": "%s"}], "paths": {"/a": {"get": {}}}}'


@pytest.fixture(scope="module")
def victim() -> Iterator[ApiServer]:
    with api_serving("127.0.0.1") as server:
        yield server


@pytest.fixture
def outside() -> Iterator[ApiServer]:
    """Stands for a public server: its address is allowed."""
    with api_serving("127.0.0.2") as server:
        yield server


@pytest.fixture(autouse=True)
def _world(victim: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the victim's port and every host by name: only its address may stop a request."""
    socket_allow_hosts(["127.0.0.1", "::1", "localhost", "127.0.0.2"], allow_unix_socket=True)
    policy = NetPolicy(ports=frozenset({victim.port, 80, 443}), allow=(ip_network("127.0.0.2/32"),))
    monkeypatch.setattr(openapi_calls, "policy", lambda: policy)
    monkeypatch.setattr("apps.tools.connectors.openapi.outgoing_policy", lambda tenant_id: policy)
    monkeypatch.setattr(http, "resolver", resolver)
    monkeypatch.setattr(http, "host_check", lambda source, url: None)
    victim.seen.clear()


@each("trick", TRICKS)
def test_call_of_a_trick_reaches_nothing(trick: str, victim: ApiServer) -> None:
    """Even in a row that was stored before the rules knew the trick."""
    result = call(source_of(trick.format(port=victim.port)), GET, secrets=[secret("canary-secret")])
    assert result.is_error
    assert result.error_code == "tool_error"
    assert victim.seen == []


@each("trick", TRICKS)
def test_operation_with_a_trick_for_a_server_reaches_nothing(trick: str, victim: ApiServer) -> None:
    item = {**GET, "servers": [{"url": trick.format(port=victim.port)}]}
    result = call(source_of("http://127.0.0.2:9/"), item, secrets=[secret("canary-secret")])
    assert result.is_error
    assert victim.seen == []


def _checked_and_read(source: ToolSource) -> None:
    KIND.check(source)
    source_read(source)


@each("trick", TRICKS)
def test_document_at_a_trick_is_not_read(trick: str, victim: ApiServer) -> None:
    address = trick.format(port=victim.port)
    with pytest.raises(SourceError):
        http.document_fetch(source_of(""), address, [], openapi_calls.policy())
    source = source_of("https://api.example.org", document_url=address)
    with pytest.raises((Invalid, SourceError)):
        _checked_and_read(source)
    assert victim.seen == []


@each("trick", TRICKS)
def test_redirect_of_a_document_to_a_trick_reaches_nothing(
    trick: str, victim: ApiServer, outside: ApiServer
) -> None:
    target = trick.format(port=victim.port).replace("\r", "").replace("\n", "").strip()
    location = target.encode("utf-8").decode("latin-1")
    outside.answer = lambda sent: (
        (302, {"Location": location}, b"") if sent.path == "/start" else (404, {}, b"")
    )
    with pytest.raises(SourceError):
        http.document_fetch(
            source_of(outside.url), f"{outside.url}/start", [secret("canary-secret")], openapi_calls.policy()
        )
    assert victim.seen == []


@each("trick", TRICKS)
def test_document_that_names_a_trick_for_a_server_calls_nothing(
    trick: str, victim: ApiServer, outside: ApiServer
) -> None:
    address = trick.format(port=victim.port)
    outside.answer = (
        200,
        {},
        DOCUMENT % address.encode("unicode_escape").replace(b"\\x", b"\\u00").replace(b"\\\\", b"\\\\"),
    )
    source = source_of("", document_url=f"{outside.url}/openapi.json")
    try:
        source_read(source)
    except SourceError:
        assert victim.seen == []
        return
    result = call(source, GET)
    assert result.is_error or source.url.startswith(outside.url)
    assert victim.seen == []


@each("trick", TRICKS)
def test_argument_that_is_a_trick_changes_no_host(trick: str, victim: ApiServer, outside: ApiServer) -> None:
    parameters = [{"name": n, "in": p, "schema": {}} for n, p in (("id", "path"), ("q", "query"))]
    item = {"get": {"operationId": "do", "parameters": parameters}}
    value = trick.format(port=victim.port)
    outside.seen.clear()
    call(source_of(outside.url), item, {"id": value, "q": value}, path="/{id}")
    assert victim.seen == []
    assert len(outside.seen) == 1


def test_redirect_of_a_call_is_not_followed(victim: ApiServer, outside: ApiServer) -> None:
    outside.answer = (307, {"Location": victim.url}, b"")
    result = call(source_of(outside.url), {"post": {"operationId": "do"}}, secrets=[secret("canary-secret")])
    assert result.is_error
    assert "not followed" in result.content
    assert victim.seen == []


def test_redirect_of_a_document_takes_no_secret_along(outside: ApiServer) -> None:
    with api_serving("127.0.0.2") as other:
        other.answer = (200, {}, DOCUMENT % b"https://api.example.org")
        outside.answer = (302, {"Location": f"{other.url}/openapi.json"}, b"")
        source = source_of(outside.url)
        http.document_fetch(source, f"{outside.url}/start", [secret("canary-secret")], openapi_calls.policy())
        assert outside.seen[0].headers["authorization"] == "Bearer canary-secret"
        assert "authorization" not in other.seen[0].headers


def test_documents_that_redirect_in_a_circle_end(outside: ApiServer) -> None:
    outside.answer = (302, {"Location": "/again"}, b"")
    with pytest.raises(SourceError, match="redirects more than"):
        http.document_fetch(source_of(""), outside.url, [], openapi_calls.policy())
    assert len(outside.seen) == 4


def test_name_that_changes_its_answer_is_called_at_the_judged_address(
    victim: ApiServer, outside: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look of a DNS server with a short memory would be loopback."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    monkeypatch.setattr(http, "resolver", rebinding)
    first = call(source_of(f"http://rebind.test:{outside.port}"), GET)
    assert not first.is_error
    assert asked == ["rebind.test"]
    second = call(source_of(f"http://rebind.test:{victim.port}"), GET)
    assert second.is_error
    asked.clear()
    outside.answer = (200, {}, DOCUMENT % b"https://api.example.org")
    assert http.document_fetch(
        source_of(""), f"http://rebind.test:{outside.port}/d", [], openapi_calls.policy()
    )
    with pytest.raises(SourceError):
        http.document_fetch(source_of(""), f"http://rebind.test:{victim.port}/d", [], openapi_calls.policy())
    assert victim.seen == []


async def test_socket_of_this_machine_is_refused() -> None:
    with pytest.raises(AddressRefused):
        await AsyncGuardedBackend(NetPolicy(), resolver).connect_unix_socket("/run/docker.sock")


async def test_synchronous_request_is_a_mistake_of_ours() -> None:
    async with AsyncGuardedTransport(NetPolicy(), resolver=resolver) as wire:
        with pytest.raises(TypeError):
            await wire.handle_async_request(httpx2.Request("POST", "http://8.8.8.8/", content=iter([b"x"])))


def test_proxies_of_the_environment_are_not_used(
    victim: ApiServer, outside: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, victim.url)
    assert not call(source_of(outside.url), GET).is_error
    assert victim.seen == []


@pytest.mark.parametrize("field", ["url", "document_url"])
@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.1/",
        "ftp://a.example.org/",
        "https://u:p@a.example.org/",
        "http://a.example.org:22/",
        "x",
    ],
)
def test_address_that_cannot_be_used_is_refused_when_it_is_entered(
    field: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.tools.connectors.openapi.outgoing_policy", lambda tenant_id: NetPolicy())
    source = source_of("https://api.example.org", document="{}")
    setattr(source, field, address)
    with pytest.raises(Invalid) as refused:
        KIND.check(source)
    assert list(refused.value.data["fields"]) == [field]


def test_corpus_is_large_enough() -> None:
    assert len(TRICKS) >= 60

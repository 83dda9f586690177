"""An OpenAPI source from end to end: REST, the job, a real API; and a secret that nobody ever sees again."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_socket import socket_allow_hosts

from apps.tools.connectors.base import IN_DB
from apps.tools.connectors.making import source_tools
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.sources import services
from jobs.blocking import BlockingThreads
from jobs.models import Job
from jobs.runner import run_here
from tenancy.actors import Actor
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import platform_scope, tenant_scope
from tests.factories import actor_of
from tests.permissions.test_matrix import assert_error, key_client, signed_in
from tests.permissions.world import Side
from tests.tools.connectors.http_server import ApiServer, Sent, api_serving
from tests.tools.connectors.openapi_documents import large_document
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import Tool, ToolContext, Toolset
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-5d1e77aa-never-to-be-seen"
URL = "/api/v1/tool-sources"


@pytest.fixture(autouse=True)
def _loopback(settings: Any) -> None:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    socket_allow_hosts(["127.0.0.1", "127.0.0.2", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture
def side(transactional_db: None) -> Side:
    return Side()


@pytest.fixture
def client(side: Side) -> Client:
    return key_client(side, sorted(KEY_SCOPES))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_serving() as one:
        yield one


def document(api: ApiServer, **paths: Any) -> dict[str, Any]:
    stated = {
        "/lamps/{id}": {
            "get": {
                "operationId": "getLamp",
                "summary": "Get a lamp.",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            }
        },
        **paths,
    }
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "key"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lamps", "version": "1"},
        "servers": [{"url": f"{api.url}/v1"}],
        "components": {"securitySchemes": schemes},
        "security": [{"key": []}],
        "paths": stated,
    }


def send(client: Client, method: str, path: str, status: int = 200, **values: Any) -> Any:
    response = getattr(client, method)(f"{URL}{path}", values, content_type="application/json")
    assert response.status_code == status, response.content[:1000]
    return response.json() if response.content else None


def work(tenant_id: int) -> list[str]:
    with tenant_scope(tenant_id):
        jobs = list(Job.objects.filter(status="queued", kind="tools.source_refresh").order_by("pk"))
    return [run_here(tenant_id, job.pk).status for job in jobs]


def test_source_lives_through_the_rest_api(side: Side, client: Client, api: ApiServer) -> None:
    described = document(api)
    lamp = {"id": 7, "name": "Lamp"}

    def answer(sent: Sent) -> Any:
        value = described if sent.path.startswith("/openapi.json") else lamp
        return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()

    api.answer = answer
    made = send(client, "post", "", 201, kind="openapi", name="lamps", document_url=f"{api.url}/openapi.json")
    one = f"/{made['id']}"
    assert (made["status"], made["waiting"]) == ("new", 0)
    assert work(side.tenant.pk) == ["succeeded"]
    read = send(client, "get", one)
    assert (read["status"], read["title"], read["url"], read["waiting"]) == (
        "ready",
        "Lamps",
        f"{api.url}/v1",
        1,
    )
    assert read["settings"]["security"][0]["parameter"] == "key"
    send(client, "put", f"{one}/credentials", placement="query", parameter="key", secret=CANARY)
    (version,) = send(client, "get", f"{one}/versions?state=waiting")["results"]
    test = send(
        client,
        "put",
        f"{one}/contract-tests",
        tool_name="lamps_getLamp",
        name="One",
        arguments={"id": 7},
        expected={"type": "object", "required": ["name"], "properties": {"name": {"type": "integer"}}},
    )
    refused = send(client, "post", f"{one}/versions/accept", 409, versions=[version["id"]])
    assert refused["code"] == "contract_tests_failed"
    assert "expected integer" in refused["details"]["failures"][0]["problem"]
    assert api.seen[-1].path == f"/v1/lamps/7?key={CANARY}"
    lamp["name"] = 5
    ran = send(client, "post", f"{one}/contract-tests/{test['id']}/run")
    assert (ran["last_outcome"], ran["last_version"]) == ("passed", 1)
    (accepted,) = send(client, "post", f"{one}/versions/accept", versions=[version["id"]])
    assert accepted["state"] == "current"
    described["paths"]["/lamps/{id}"]["get"]["parameters"][0]["schema"] = {"type": "string"}
    assert send(client, "post", f"{one}/refresh", 202)["job"]
    assert work(side.tenant.pk) == ["succeeded"]
    (changed,) = send(client, "get", f"{one}/versions?state=waiting")["results"]
    detail = send(client, "get", f"{one}/versions/{changed['id']}")
    (parameter,) = detail["diff"]["parameters"]
    assert (parameter["type_old"], parameter["type_new"], parameter["breaks"]) == ("integer", "string", True)
    (rejected,) = send(client, "post", f"{one}/versions/reject", versions=[changed["id"]])
    assert rejected["state"] == "rejected"
    assert send(client, "patch", one, title="Our lamps", is_enabled=False)["title"] == "Our lamps"
    (secret,) = send(client, "get", f"{one}/credentials")["results"]
    assert secret["last_four"] == CANARY[-4:]
    send(client, "delete", f"{one}/credentials/{secret['id']}", 204)
    send(client, "delete", f"{one}/contract-tests/{test['id']}", 204)
    send(client, "delete", one, 204)
    assert_error(client.get(f"{URL}{one}"), 404)


def test_rows_of_another_source_are_not_there(side: Side, client: Client, api: ApiServer) -> None:
    for name in ("one", "two"):
        send(client, "post", "", 201, kind="openapi", name=name, document=json.dumps(document(api)))
    assert work(side.tenant.pk) == ["succeeded"] * 2
    second, first = (row["id"] for row in send(client, "get", "")["results"])
    (version,) = send(client, "get", f"/{first}/versions")["results"]
    secret = send(client, "put", f"/{first}/credentials", placement="bearer", secret=CANARY)
    test = send(
        client, "put", f"/{first}/contract-tests", tool_name="one_getLamp", name="T", arguments={"id": 1}
    )
    for method, path in (
        ("get", f"versions/{version['id']}"),
        ("delete", f"credentials/{secret['id']}"),
        ("delete", f"contract-tests/{test['id']}"),
        ("post", f"contract-tests/{test['id']}/run"),
    ):
        send(client, method, f"/{second}/{path}", 404)
    for verb in ("accept", "reject"):
        send(client, "post", f"/{second}/versions/{verb}", 404, versions=[version["id"]])
    send(client, "put", f"/{second}/contract-tests", 404, tool_name="one_getLamp", name="T", arguments={})


@pytest.mark.parametrize(
    "values",
    [
        {"document": ""},
        {"document": "x", "url": "http://10.0.0.1/"},
        {"document_url": "http://169.254.169.254/latest"},
        {"document": "x", "settings": {"a": "b" * 60_000}},
        {"document": "x", "allowed_hosts": ["a/b"]},
        {"document": "x", "name": "A b"},
        {"document": "x", "kind": "soap"},
    ],
    ids=["nothing", "private", "metadata", "settings", "hosts", "name", "kind"],
)
def test_source_that_cannot_be_used_is_refused(client: Client, values: dict[str, Any]) -> None:
    found = send(client, "post", "", 400, **{"kind": "openapi", "name": "shop", **values})
    assert found["details"]["fields"]


def test_values_that_postgres_cannot_keep_are_no_error_of_ours(
    side: Side, client: Client, api: ApiServer
) -> None:
    send(
        client,
        "post",
        "",
        201,
        kind="openapi",
        name="shop",
        document=json.dumps(document(api)),
        settings={"a\x00": "b\x00"},
    )
    assert work(side.tenant.pk) == ["succeeded"]
    (row,) = send(client, "get", "")["results"]
    send(
        client,
        "put",
        f"/{row['id']}/contract-tests",
        tool_name="shop_getLamp",
        name="T",
        arguments={"id": "\x00"},
    )
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    send(
        client, "put", f"/{row['id']}/contract-tests", 400, tool_name="shop_getLamp", name="T", arguments=deep
    )


def test_document_with_nul_and_odd_characters_is_stored(side: Side, client: Client, api: ApiServer) -> None:
    odd = document(api, **{"/odd": {"get": {"operationId": "odd", "summary": "a\x00b\ud800"}}})
    api.answer = (200, {}, json.dumps(odd).encode())
    send(client, "post", "", 201, kind="openapi", name="shop", document_url=api.url)
    assert work(side.tenant.pk) == ["succeeded"]
    (row,) = send(client, "get", "")["results"]
    assert (row["status"], row["waiting"]) == ("ready", 2)
    send(client, "post", f"/{row['id']}/refresh", 202)
    work(side.tenant.pk)
    assert len(send(client, "get", f"/{row['id']}/versions")["results"]) == 2


def test_secret_of_a_source_is_nowhere(
    side: Side, client: Client, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that repeats all it is sent; then every table, log, page of the admin and answer is searched."""
    caplog.set_level(0)
    described = json.dumps(document(api)).encode()

    def echo(sent: Sent) -> Any:
        if sent.path.startswith("/v1/openapi.json"):
            return 200, {}, described
        said = json.dumps({"headers": sent.headers, "path": sent.path}).encode()
        status = 500 if "lamps/5" in sent.path else 200
        return status, {"Content-Type": "application/json", "X-Echo": sent.path}, said

    api.answer = echo
    answers: list[Any] = []
    made = send(
        client,
        "post",
        "",
        201,
        kind="openapi",
        name="lamps",
        url=f"{api.url}/v1",
        document_url=f"{api.url}/v1/openapi.json",
    )
    one = f"/{made['id']}"
    places: list[dict[str, Any]] = [
        {"placement": "query", "parameter": "key"},
        {"placement": "bearer"},
        {"placement": "header", "parameter": "X-Key"},
        {"placement": "basic", "parameter": "anna"},
    ]
    answers += [send(client, "put", f"{one}/credentials", secret=CANARY, **p) for p in places]
    send(client, "put", f"{one}/credentials", 400, secret=f"{CANARY}\n{CANARY}", placement="bearer")
    work(side.tenant.pk)
    assert CANARY in str(api.seen[0].headers) + api.seen[0].path  # the document's own server got it
    (version,) = send(client, "get", f"{one}/versions")["results"]
    answers += [
        send(
            client,
            "put",
            f"{one}/contract-tests",
            tool_name="lamps_getLamp",
            name=f"T{n}",
            arguments={"id": n},
            expected={"const": 1},
        )
        for n in (1, 5)
    ]
    answers.append(send(client, "post", f"{one}/versions/accept", 409, versions=[version["id"]]))
    assert CANARY in api.seen[-1].path
    pages = ("", "/credentials", "/versions", f"/versions/{version['id']}", "/contract-tests")
    answers += [send(client, "get", f"{one}{page}") for page in pages]
    with tenant_scope(side.tenant.pk):
        source = ToolSource.objects.get()
    services.source_update(
        tenant=side.tenant, actor=admin_of(side), pk=source.pk, document_url=f"{api.url}/v1/none"
    )
    api.answer = lambda sent: (404, {}, sent.path.encode())
    assert work(side.tenant.pk) == ["failed"]
    shown = {
        "answers": json.dumps(answers),
        "logs": _logs(caplog),
        "tables": _tables(),
        "admin": _admin(side),
    }
    for place, text in shown.items():
        for form in (CANARY, "5d1e77aa", "YW5uYTpjYW5hcnk"):
            assert form not in text, place
    assert "[secret]" in shown["tables"]


def admin_of(side: Side) -> Actor:
    return actor_of(side.people["admin"])


def _logs(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(f"{r.getMessage()} {r.__dict__}" for r in caplog.records)


def _tables() -> str:
    """Return every row of every table of this database as text."""
    found: list[str] = []
    with platform_scope():
        for model in apps.get_models():
            if model._meta.managed and not model._meta.proxy:
                names = [f.attname for f in model._meta.concrete_fields]
                found += [str(row) for row in model._base_manager.values_list(*names)]
    return "\n".join(found)


def _admin(side: Side) -> str:
    """Return the admin's pages of tool sources, where there are such."""
    client = signed_in(side, "owner")
    names = ("toolsource", "toolversion", "toolcredential", "contracttest")
    pages = [client.get(f"/admin/tools/{name}/", follow=True) for name in names]
    return "\n".join(page.content.decode() for page in pages)


def test_run_that_holds_an_old_source_calls_the_present_one(
    side: Side, client: Client, api: ApiServer
) -> None:
    """Otherwise a secret that was entered for the new address would go to the old one."""
    made = send(client, "post", "", 201, kind="openapi", name="lamps", document=json.dumps(document(api)))
    work(side.tenant.pk)
    with tenant_scope(side.tenant.pk):
        version = ToolVersion.objects.select_related("source").get()
    (held,) = source_tools(version.source, [version])
    with api_serving("127.0.0.2") as moved:
        send(client, "patch", f"/{made['id']}", url=moved.url)
        send(client, "put", f"/{made['id']}/credentials", placement="bearer", secret=CANARY)
        assert not _called(side, held).is_error
        assert moved.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    send(client, "patch", f"/{made['id']}", is_enabled=False)
    assert "switched off" in _called(side, held).content
    assert api.seen == []


def _called(side: Side, tool: Tool) -> ToolResult:
    threads = BlockingThreads()

    async def in_db(function: Any, *args: Any) -> Any:
        return await threads.run(lambda: function(*args))

    prepared = call_prepare(ToolCall("1", tool.name, {"id": 1}), Toolset([tool]))
    assert isinstance(prepared, CheckedCall)
    try:
        with tenant_scope(side.tenant.pk):
            return asyncio.run(call_run(prepared, ToolContext({IN_DB: in_db}), timeout_s=10))
    finally:
        threads.close()


def test_export_of_a_workspace_has_no_secret(side: Side, client: Client, api: ApiServer) -> None:
    made = send(client, "post", "", 201, kind="openapi", name="lamps", url=f"{api.url}/v1", document="{}")
    send(client, "put", f"/{made['id']}/credentials", secret=CANARY, placement="bearer")
    out = io.StringIO()
    with platform_scope():
        call_command("dumpdata", "tools", stdout=out)
    assert "toolcredential" in out.getvalue()
    assert CANARY not in out.getvalue()


def test_large_document_is_read_and_stored(side: Side, api: ApiServer) -> None:
    """150 operations; benchmarks/openapi_import.py measures how long they take."""
    text = json.dumps(large_document(150, api.url))
    source = services.source_create(
        tenant=side.tenant, actor=admin_of(side), kind="openapi", name="biz", document=text
    )
    assert work(side.tenant.pk) == ["succeeded"]
    with tenant_scope(side.tenant.pk):
        assert ToolVersion.objects.filter(source=source, state="waiting").count() == 150
    services.source_refresh(tenant=side.tenant, actor=admin_of(side), pk=source.pk)
    with connection.execute_wrapper(_no_version_written):
        assert work(side.tenant.pk) == ["succeeded"]


def _no_version_written(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
    text = str(sql).upper()
    assert not ("TOOLS_TOOLVERSION" in text and text.startswith(("INSERT", "UPDATE")))
    return execute(sql, params, many, context)

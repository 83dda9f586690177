"""One credential through a whole chat: its server gets it, and nobody and nothing else ever does.

The API repeats all it was sent, in answers and in errors; the model repeats all it was told. Then everything that a person,
a program, the operator or another server can read is searched.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.conversations.turns.conversations import conversation_create
from apps.tools.models import ToolGrant, ToolSource
from apps.tools.sources.credentials import credential_set
from runs import remote_models
from runs.models import ToolCall, UsageRecord
from tenancy.models import TenantModel
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask, fresh
from tests.fake_provider import FakeProvider, running
from tests.permissions.test_admin_matrix import SCOPED, url
from tests.tools.call_log.test_pages import body_of
from tests.tools.connectors.http_server import ApiServer, Sent, api_serving
from tests.tools.connectors.test_openapi import _logs, _tables
from tests.tools.sources.support import source_made
from tests.webhooks.test_webhooks import make, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
STEM = "canary-77e1c0de"
CANARY = f'{STEM}/9+"k&z=='  # no two ways of writing it down are the same text
MODEL = "fake-canary"
LAMP: Any = {"parameters": [{"name": "id", "in": "query", "required": True, "schema": {"type": "integer"}}]}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Lamps"},
    "paths": {"/lamp": {"get": {"operationId": "look", **LAMP}, "post": {"operationId": "order", **LAMP}}},
}
PROGRAM = """
print(lamps_look(id=2))
try:
    lamps_look(id=500)
except Exception as error:
    print("failed", error)
"""


def echo(sent: Sent) -> Any:
    said = json.dumps({"you sent": dict(sent.headers), "path": sent.path}).encode()
    status = 500 if "500" in sent.path else 200
    return status, {"Content-Type": "application/json", "X-Echo": "yes"}, said


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_serving() as one:
        one.answer = echo
        yield one


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[list[str]]:
    """Give what a real model server, over HTTP, was sent: it calls tools, and then says all that it was told."""
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    remote_models._known.clear()
    received: list[str] = []

    def reply(body: dict[str, Any]) -> Any:
        received.append(json.dumps(body))
        told = [m["content"] for m in body["messages"] if m["role"] == "tool"]
        if not told:
            return [
                {"name": "lamps_look", "arguments": {"id": 1}},
                {"name": "lamps_look", "arguments": {"id": 500}},
                {"name": "lamps_order", "arguments": {"id": 500}},
                {"name": "execute_tools", "arguments": {"code": PROGRAM}},
            ]
        return "I was told: " + json.dumps(told)

    fake: FakeProvider
    with running() as (address, fake):
        fake.replies[MODEL] = reply
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", address)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", MODEL)
        yield received


def prepared(cast: Cast, api: ApiServer) -> Any:
    source: ToolSource = source_made(
        cast.tenant, "openapi", "lamps", url=api.url, document=json.dumps(DOCUMENT)
    )
    owner: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    credential_set(**owner, source=source.pk, placement="bearer", secret=CANARY)
    credential_set(**owner, source=source.pk, placement="query", parameter="key", secret=CANARY)
    with tenant_scope(cast.tenant.pk):
        for group in ("lamps", "code_mode"):
            ToolGrant.objects.create(tenant=cast.tenant, effect="allow", target_kind="group", target=group)
        conversation = conversation_create(
            tenant=cast.tenant, actor=cast.actor("owner"), model=f"compatible/{MODEL}"
        )
    return ask(cast, "Look at the lamps.", role="owner", conversation=conversation)


def pages(cast: Cast, turn: Any) -> dict[str, str]:
    """Return what the portal, the REST API and the admin show an owner, by address."""
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    slug, talk, run = cast.tenant.slug, turn.conversation_id, turn.run_id
    with tenant_scope(cast.tenant.pk):
        calls = list(ToolCall.objects.filter(run_id=run).values_list("pk", flat=True))
        source = ToolSource.objects.get().pk
    portal: list[tuple[str, list[Any]]] = [
        ("conversations:detail", [talk]),
        ("conversations:run-trace", [talk, run]),
        ("conversations:export", [talk]),
        ("tools:catalog", []),
        ("tools:tool", ["lamps_look"]),
        ("tools:source", [source]),
        ("tools:calls", []),
        ("tools:calls-file", []),
        ("web:settings-audit", []),
        ("web:settings-webhooks", []),
        ("usage:page", []),
        *(("tools:call", [pk]) for pk in calls),
        *(("conversations:run-output", [talk, run, pk]) for pk in calls),
    ]
    addresses = [reverse(name, args=[slug, *args]) for name, args in portal]
    addresses += [f"{reverse('conversations:export', args=[slug, talk])}?form=json"]
    addresses += [f"{reverse('tools:calls-file', args=[slug])}?form=jsonl"]
    rest = (
        f"runs/{run}",
        f"conversations/{talk}",
        f"conversations/{talk}/export",
        "tool-calls",
        "tools",
        "tool-sources",
        f"tool-sources/{source}",
        f"tool-sources/{source}/credentials",
        f"tool-sources/{source}/versions",
        *(f"tool-calls/{pk}" for pk in calls),
    )
    addresses += [f"/api/v1/{path}" for path in rest]
    for one in SCOPED:
        addresses.append(url(one, "changelist"))
        if issubclass(one, TenantModel):
            with tenant_scope(cast.tenant.pk):
                rows = list(one._base_manager.order_by("-pk").values_list("pk", flat=True)[:4])
            addresses += [url(one, "change", pk) for pk in rows]
    found: dict[str, str] = {}
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, (address, response.status_code)
        found[address] = body_of(response) if response.streaming else response.content.decode()
    return found


async def test_credential_reaches_its_own_server_and_nothing_else(
    cast: Cast, api: ApiServer, model: list[str], lane_threads: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    with api_serving() as receiver:
        await sync_to_async(make)(cast, f"{receiver.url}/hook")
        turn = await sync_to_async(prepared)(cast, api)
        await answer(turn, lane_threads)
        run = (await sync_to_async(fresh)(turn)).run
        assert run.status == "completed", run.error_message
        await sync_to_async(work)(cast)
    # It was really sent, really repeated, and really hidden.
    assert len(api.seen) == 5
    assert all(sent.headers["authorization"] == f"Bearer {CANARY}" for sent in api.seen)
    assert all(STEM in sent.path for sent in api.seen)
    assert "[secret]" in model[-1]
    assert "[secret]" in run.answer
    with tenant_scope(cast.tenant.pk):
        calls = [row async for row in ToolCall.objects.filter(run=run)]
        used = [row async for row in UsageRecord.objects.filter(run_id=run.pk)]
    assert sorted(row.status for row in calls) == ["failed"] * 3 + ["succeeded"] * 3
    assert all(row.duration_ms is not None for row in used)

    def dumped() -> str:
        out = io.StringIO()
        with platform_scope():
            call_command("dumpdata", "tools", "runs", "conversations", "webhooks", "tenancy", stdout=out)
        return out.getvalue()

    shown = await sync_to_async(pages)(cast, turn)
    shown |= {
        "model server": "\n".join(model),
        "webhook": "\n".join(f"{sent.headers} {sent.body!r}" for sent in receiver.seen),
        "tables: journal, events, audit, call log": await sync_to_async(_tables)(),
        "dump": await sync_to_async(dumped)(),
        "logs": _logs(caplog),
    }
    assert len(receiver.seen) == 1
    assert [place for place, text in shown.items() if STEM in text] == []

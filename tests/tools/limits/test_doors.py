"""Limits of tool calls in code mode and over MCP; limits and the retention rule over REST and in the admin."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.tools.models import ToolGrant, ToolLimit, ToolLimitUse
from runs.models import RunRetention, ToolCall
from runs.retention import retention_own
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask, fresh
from tests.tools.calls.test_calls import execute
from tests.tools.limits.test_counting import SUM, limit
from tests.tools.mcp_server.conftest import key_of, message, post
from toolloop.providers.scripted import ScriptedCall, says

pytestmark = pytest.mark.django_db(transaction=True)
PROGRAM = """
for _ in range(4):
    try:
        print(calculate(expression="6*7"))
    except Exception as error:
        print("refused", error)
"""


def owner(cast: Cast) -> Client:
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    return client


async def test_limit_holds_within_a_program(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Any:
        limit(cast, 2, target_kind="tool", target="calculate")
        with tenant_scope(cast.tenant.pk):
            ToolGrant.objects.create(
                tenant=cast.tenant, effect="allow", target_kind="group", target="code_mode"
            )
        return ask(cast, "Do it.")

    turn = await sync_to_async(start)()
    program = ScriptedCall("execute_tools", {"code": PROGRAM}, "p")
    await answer(turn, lane_threads, monkeypatch, [says("", program), says("Done.")])
    run = (await sync_to_async(fresh)(turn)).run
    with tenant_scope(cast.tenant.pk):
        calls = [row async for row in ToolCall.objects.filter(run=run, name="calculate")]
        shown = await ToolCall.objects.aget(run=run, name="execute_tools")
        used = await ToolLimitUse.objects.aget()
    assert sorted(row.status for row in calls) == ["failed", "failed", "succeeded", "succeeded"]
    assert {row.error_code for row in calls} == {"", "rate_limited"}
    assert "0 are left; the count starts again in" in shown.content
    assert used.used == 2
    assert run.status == "completed"


def test_limit_holds_over_mcp_and_says_when_to_come_again(cast: Cast) -> None:
    limit(cast, 1, kind="key", target_kind="tool", target="calculate")
    key = key_of(cast)
    call = message("tools/call", name=SUM[0], arguments=SUM[1])

    def called() -> Any:
        return json.loads(post(cast.tenant.slug, call, key).content)["result"]

    assert not called().get("isError")
    refused = called()
    assert refused["isError"]
    assert refused["_meta"]["groundwork/error_code"] == "rate_limited"
    text = refused["content"][0]["text"]
    assert "This API key has made its 1 call of calculate for this day. 0 are left" in text
    # The count is one for all doors.
    client = Client(headers={"authorization": f"Bearer {key}"})
    body = {"tool_calls": [{"id": "a", "function": {"name": SUM[0], "arguments": json.dumps(SUM[1])}}]}
    answered = client.post("/api/v1/tools/execute", body, "application/json")
    assert (answered.status_code, answered.json()["details"]["remaining"]) == (429, 0)


def test_limits_are_set_read_and_removed_over_rest(cast: Cast) -> None:
    client = owner(cast)
    body = {"kind": "member", "period": "month", "calls": 3, "target_kind": "tool", "target": "calculate"}
    made = client.post("/api/v1/tool-limits", body, "application/json")
    assert made.status_code == 201
    row = made.json()
    assert (row["used"], row["remaining"], row["calls"], row["user"]) == (0, 3, 3, None)
    execute(cast, SUM, SUM)
    shown = client.get(f"/api/v1/tool-limits/{row['id']}").json()
    assert (shown["used"], shown["remaining"]) == (2, 1)
    assert shown["resets_at"].endswith("-01T00:00:00Z")
    again = client.post("/api/v1/tool-limits", body | {"calls": 9}, "application/json").json()
    assert (again["id"], again["remaining"]) == (row["id"], 7)
    wrong = client.post("/api/v1/tool-limits", body | {"target": ""}, "application/json")
    assert (wrong.status_code, list(wrong.json()["details"]["fields"])) == (400, ["target"])
    nobody = client.post("/api/v1/tool-limits", body | {"user": cast.user("outsider").pk}, "application/json")
    assert nobody.status_code == 404
    assert client.delete(f"/api/v1/tool-limits/{row['id']}").status_code == 204
    assert client.get("/api/v1/tool-limits").json()["results"] == []


def test_owner_sets_limits_in_the_admin_by_the_rules_of_the_service(cast: Cast) -> None:
    client, add = owner(cast), reverse("admin:tools_toollimit_add")
    form = {
        "kind": "tenant",
        "target_kind": "all",
        "target": "",
        "period": "day",
        "calls": 5,
        "uses-TOTAL_FORMS": 0,
        "uses-INITIAL_FORMS": 0,
    }
    assert "Name the tool or group" in client.post(add, form | {"target": "x"}).content.decode()
    assert client.post(add, form).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = ToolLimit.objects.get()
    page = reverse("admin:tools_toollimit_change", args=[row.pk])
    changed = {"calls": 7, "uses-TOTAL_FORMS": 0, "uses-INITIAL_FORMS": 0}
    assert client.post(page, changed).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert ToolLimit.objects.get().calls == 7
        assert AuditEvent.objects.filter(action="tool_limit.set").count() == 2
    gone = reverse("admin:tools_toollimit_delete", args=[row.pk])
    assert client.post(gone, {"post": "yes"}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.filter(action="tool_limit.remove").exists()


def test_retention_rule_is_set_over_rest_and_in_the_admin(cast: Cast, settings: Any) -> None:
    settings.RETENTION_DAYS = 90
    client = owner(cast)
    assert client.get("/api/v1/retention").json() == {"days": None, "default_days": 90}
    put = client.put("/api/v1/retention", {"days": 30}, "application/json")
    assert put.json() == {"days": 30, "default_days": 90}
    assert client.put("/api/v1/retention", {"days": 9999}, "application/json").status_code == 400
    with tenant_scope(cast.tenant.pk):
        row = RunRetention.objects.get()
    page = reverse("admin:runs_runretention_change", args=[row.pk])
    assert client.post(page, {"days": 9999}).status_code == 200
    assert client.post(page, {"days": 14}).status_code == 302
    gone = reverse("admin:runs_runretention_delete", args=[row.pk])
    with tenant_scope(cast.tenant.pk):
        assert retention_own(cast.tenant) == 14
    assert client.post(gone, {"post": "yes"}).status_code == 302
    assert client.post(reverse("admin:runs_runretention_add"), {"days": 0}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        events = AuditEvent.objects.filter(action="retention.set").order_by("pk")
        told = [(e.data["before"], e.data["after"]) for e in events]
    assert told == [(None, 30), (30, 14), (14, None), (None, 0)]

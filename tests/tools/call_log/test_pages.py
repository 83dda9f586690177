"""The call log: who sees which calls, what narrows it, its pages and files."""

from __future__ import annotations

import csv
import datetime
import io
import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from basics.errors import Denied, Invalid, Missing
from runs import call_log as log
from runs.call_export import COLUMNS, calls_export
from runs.call_log import CallChoice, call_choice, call_get
from runs.models import Run, ToolCall
from tenancy.actors import Actor
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from toolloop.masking import MASK

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "hunter2-canary"


def make_call(cast: Cast, role: str = "member", **values: Any) -> ToolCall:
    user = cast.actor(role).user_id
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(
            tenant=cast.tenant, user_id=user, kind="t", model="extractive", status="completed"
        )
        given = {
            "call_id": "c",
            "name": "look",
            "arguments": {"what": "a"},
            "status": "succeeded",
            "content": "seen",
            **values,
        }
        return ToolCall.objects.create(tenant=cast.tenant, run=run, user_id=user, step=0, **given)


def found(cast: Cast, role: str = "owner", **choice: Any) -> list[int]:
    with tenant_scope(cast.tenant.pk):
        rows = log.call_log(actor=cast.actor(role), choice=CallChoice(**choice))
        return list(rows.values_list("pk", flat=True))


def page(cast: Cast, name: str, *args: Any, role: str = "owner", **query: Any) -> str:
    client = Client()
    client.force_login(getattr(cast, role).user, "django.contrib.auth.backends.ModelBackend")
    response = client.get(reverse(name, args=[cast.tenant.slug, *args]), query)
    assert response.status_code == 200
    return response.content.decode()


def test_people_see_their_own_calls_and_admins_everybodys(cast: Cast) -> None:
    own, other = make_call(cast), make_call(cast, "owner")
    assert found(cast, "member") == [own.pk]
    assert found(cast, "admin") == [other.pk, own.pk]
    with tenant_scope(cast.tenant.pk):
        assert call_get(actor=cast.actor("member"), pk=own.pk) == own
        with pytest.raises(Missing):
            call_get(actor=cast.actor("member"), pk=other.pk)
        nobody = Actor("api_key", cast.tenant.pk, frozenset({"run.read"}))
        assert not log.call_log(actor=nobody).exists()
        with pytest.raises(Denied):
            log.call_log(actor=Actor("api_key", cast.tenant.pk, frozenset()))
    with tenant_scope(cast.other_tenant.pk):
        stranger = cast.actor("outsider")
        assert not log.call_log(actor=stranger).exists()


def test_each_filter_narrows(cast: Cast) -> None:
    day = datetime.timedelta(days=1)
    now = timezone.now()
    today = timezone.localdate(now)  # of the calls' own times: midnight may come before they are looked for
    old = make_call(cast, started_at=now - 3 * day)
    denied = make_call(
        cast,
        name="pay",
        status="denied",
        decision="deny",
        decision_why="above the limit",
        path="mcp",
        started_at=now,
    )
    failed = make_call(
        cast, "owner", status="failed", error_code="timeout", content="no answer", started_at=now
    )
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"who": failed.user_id}, [failed.pk]),
        ({"tool": "pay"}, [denied.pk]),
        ({"run": old.run_id}, [old.pk]),
        ({"status": "failed"}, [failed.pk]),
        ({"decision": "deny"}, [denied.pk]),
        ({"path": "mcp"}, [denied.pk]),
        ({"since": today - day, "until": today}, [failed.pk, denied.pk]),
        ({"until": today - 2 * day}, [old.pk]),
        ({"text": "ABOVE the"}, [denied.pk]),
        ({"text": "timeout"}, [failed.pk]),
        ({"text": "no answer"}, [failed.pk]),
        ({"text": '"what": "a"', "tool": "pay"}, [denied.pk]),
        ({"text": "100%"}, []),
    ]
    for choice, expected in cases:
        assert found(cast, **choice) == expected, choice


def test_masked_secret_is_neither_shown_nor_found(cast: Cast) -> None:
    call = make_call(cast, arguments={"password": SECRET}, arguments_masked={"password": MASK})
    assert found(cast, text=SECRET) == []
    assert found(cast, text="hun") == []
    for shown in (page(cast, "tools:calls"), page(cast, "tools:call", call.pk)):
        assert SECRET not in shown
    assert MASK in page(cast, "tools:call", call.pk)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("who", "x"),
        ("who", "9" * 30),
        ("run", "-1"),
        ("status", "gone"),
        ("decision", "no"),
        ("since", "today"),
        ("since", "2026-02-31"),
        ("text", "x" * 201),
        ("text", "a\0b"),
    ],
)
def test_filter_that_means_nothing_is_refused(cast: Cast, name: str, value: str) -> None:
    with pytest.raises(Invalid) as refused:
        call_choice({name: value})
    assert name in refused.value.data["fields"]
    assert "Remove the filters" in page(cast, "tools:calls", **{name: value})


def test_days_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(Invalid):
        call_choice({"since": "2026-11-02", "until": "2026-11-01"})
    choice = call_choice({"since": "2026-11-01", "until": "2026-11-01", "who": "5", "text": " x "})
    assert call_choice(choice.to_query()) == choice


def test_list_goes_on_behind_its_last_call(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.tools.call_log.views.PAGE_SIZE", 2)
    calls = [make_call(cast, name=f"tool_{number}") for number in range(3)]
    first = page(cast, "tools:calls")
    assert f"before={calls[1].pk}" in first
    assert ">tool_0</b>" not in first
    second = page(cast, "tools:calls", before=calls[1].pk)
    assert ">tool_0</b>" in second
    assert "Newest" in second


def test_call_page_tells_rule_cost_parent_and_what_it_made(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        from apps.tools.models import ToolGrant

        rule = ToolGrant.objects.create(tenant=cast.tenant, effect="allow", target_kind="tool", target="look")
    outer = make_call(
        cast,
        name="execute_tools",
        call_id="p",
        decision="allow",
        rule_id=rule.pk,
        decision_why="said so",
        cost_usd="0.25",
    )
    with tenant_scope(cast.tenant.pk):
        inner = ToolCall.objects.create(
            tenant=cast.tenant,
            run=outer.run,
            user_id=outer.user_id,
            step=0,
            call_id="p.1",
            parent_call_id="p",
            name="look",
            path="code",
            status="succeeded",
        )
    shown = page(cast, "tools:call", outer.pk)
    assert "Everyone can call “look”." in shown
    assert "$0.250000" in shown
    assert reverse("tools:call", args=[cast.tenant.slug, inner.pk]) in shown
    assert "made by execute_tools" in page(cast, "tools:call", inner.pk)
    assert "Everyone can call" not in page(cast, "tools:call", outer.pk, role="member")


def body_of(response: Any) -> str:
    assert isinstance(response, StreamingHttpResponse)

    async def read() -> bytes:
        return b"".join([part async for part in response])

    return async_to_sync(read)().decode()


def test_files_hold_every_call_and_no_secret(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "EXPORT_BATCH", 2)
    calls = [
        make_call(cast, name="=1+1", arguments={"token": SECRET}, arguments_masked={"token": MASK})
        for _ in range(5)
    ]
    make_call(cast, name="other")
    choice = CallChoice(tool="=1+1")
    with tenant_scope(cast.tenant.pk):
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner"), "choice": choice}
        as_csv, as_lines = (body_of(calls_export(**who, form=form)) for form in ("csv", "jsonl"))
        taken = list(
            AuditEvent.objects.filter(action="call.export").order_by("pk").values_list("data", flat=True)
        )
    assert SECRET not in as_csv + as_lines
    rows = list(csv.DictReader(io.StringIO(as_csv)))
    lines = [json.loads(line) for line in as_lines.splitlines()]
    newest_first = [call.pk for call in reversed(calls)]
    assert [int(row["id"]) for row in rows] == [line["id"] for line in lines] == newest_first
    assert list(rows[0]) == list(lines[0]) == list(COLUMNS)
    assert rows[0]["tool"] == "'=1+1"  # A spreadsheet would run it.
    assert lines[0]["tool"] == "=1+1"
    assert lines[0]["arguments"] == {"token": MASK}
    assert [one["form"] for one in taken] == ["csv", "jsonl"]


def test_file_of_a_person_holds_their_own_calls(cast: Cast) -> None:
    own = make_call(cast)
    make_call(cast, "owner")
    client = Client()
    client.force_login(cast.member.user, "django.contrib.auth.backends.ModelBackend")
    url = reverse("tools:calls-file", args=[cast.tenant.slug])
    response = client.get(url, {"form": "jsonl"})
    assert response["Content-Disposition"].endswith('.jsonl"')
    assert [json.loads(line)["id"] for line in body_of(response).splitlines()] == [own.pk]
    assert client.get(url, {"form": "xls"}).status_code == 400


def test_rest_lists_pages_and_shows(cast: Cast) -> None:
    call = make_call(cast, content="x" * 5000, rule_id=7, decision="allow")
    make_call(cast, name="other")
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    listed = client.get("/api/v1/tool-calls", {"tool": "look"}).json()
    assert [row["id"] for row in listed["results"]] == [call.pk]
    assert listed["results"][0]["user_name"] == cast.member.user.email
    one = client.get(f"/api/v1/tool-calls/{call.pk}").json()
    assert (one["rule"], one["decision"], len(one["result"])) == (7, "allow", 4000)
    assert client.get("/api/v1/tool-calls", {"status": "gone"}).status_code == 400
    assert client.get("/api/v1/tool-calls/999999999").status_code == 404
    first = client.get("/api/v1/tool-calls", {"page_size": 1}).json()
    assert client.get(first["next"]).json()["results"][0]["id"] == call.pk
    file = client.get("/api/v1/tool-calls/file", {"form": "jsonl", "tool": "look"})
    assert [json.loads(line)["id"] for line in body_of(file).splitlines()] == [call.pk]


def test_admin_shows_and_exports_ones_own_workspace_masked(cast: Cast) -> None:
    call = make_call(cast, arguments={"token": SECRET}, arguments_masked={"token": MASK})
    theirs = make_call(make_cast())
    client = Client()
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    shown = client.get(reverse("admin:runs_toolcall_change", args=[call.pk])).content.decode()
    assert SECRET not in shown
    assert MASK in shown
    listed = reverse("admin:runs_toolcall_changelist")
    guessed = client.get(listed, {"arguments__icontains": SECRET})
    assert guessed.status_code in (302, 400)
    sent = {"action": "export_jsonl", "_selected_action": [call.pk, theirs.pk]}
    lines = body_of(client.post(listed, sent)).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [call.pk]
    assert SECRET not in lines[0]


def test_queries_do_not_grow_with_calls(cast: Cast) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            page(cast, "tools:calls")
        return len(queries)

    make_call(cast)
    few = cost()
    for number in range(10):
        make_call(cast, ("member", "owner", "admin")[number % 3], name=f"tool_{number}")
    assert cost() == few

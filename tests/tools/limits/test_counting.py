"""Limits of tool calls: counted exactly, in every path, and said clearly when they are used up."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.tools.limits.counting import calls_take
from apps.tools.limits.services import tool_limit_remove, tool_limit_set
from apps.tools.models import ToolLimit, ToolLimitUse
from apps.tools.policy.engine import Subject
from basics.errors import Denied, Invalid, Missing
from runs.models import ToolCall
from tenancy.actors import Actor
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import actor_of
from tests.tools.approvals.test_approvals import decide, parked
from tests.tools.calls.test_calls import _tools, _work, execute, paid  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db(transaction=True)
SUM = ("calculate", {"expression": "6*7"})


def limit(cast: Cast, calls: int, **values: Any) -> ToolLimit:
    made: Any = {"kind": "member", "period": "day", **values}
    return tool_limit_set(tenant=cast.tenant, actor=cast.actor("admin"), calls=calls, **made)


def codes(done: Any) -> list[str]:
    return [result.error_code for result in done.results]


def take(cast: Cast, role: str = "member", tool: str = "calculate", **values: Any) -> bool:
    subject = Subject(role, cast.user(role).pk, values.get("key"))
    with tenant_scope(cast.tenant.pk):
        return calls_take(cast.tenant.pk, subject, tool, values.get("groups", [])) is None


def test_calls_beyond_the_limit_are_refused_with_what_remains_and_when(cast: Cast) -> None:
    limit(cast, 2, target_kind="tool", target="calculate")
    done = execute(cast, SUM, SUM, SUM, ("wait_a_little", {}))
    assert sorted(codes(done)) == ["", "", "", "rate_limited"]
    (refused,) = [r for r in done.results if r.error_code]
    assert "has made its 2 calls of calculate for this day. 0 are left" in refused.content
    assert refused.payload["remaining"] == 0
    assert 0 < refused.payload["retry_after"] <= 86_400
    with tenant_scope(cast.tenant.pk):
        assert ToolLimitUse.objects.get().used == 2
        statuses = ToolCall.objects.filter(run=done.run).values_list("status", flat=True)
        assert sorted(statuses) == ["failed", "succeeded", "succeeded", "succeeded"]
    # Others have their own count.
    assert codes(execute(cast, SUM, role="viewer")) == [""]


def test_rest_answers_429_when_no_call_may_run(cast: Cast) -> None:
    limit(cast, 1, kind="tenant", period="month")
    _, key = api_key_create(tenant=cast.tenant, actor=actor_of(cast.admin), name="k", scopes=["tool.run"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    call = {"id": "a", "function": {"name": SUM[0], "arguments": json.dumps(SUM[1])}}
    first = client.post("/api/v1/tools/execute", {"tool_calls": [call]}, "application/json")
    assert first.status_code == 200
    second = client.post("/api/v1/tools/execute", {"tool_calls": [call]}, "application/json")
    body = second.json()
    assert (second.status_code, body["code"]) == (429, "tool_rate_limited")
    details = body["details"]
    assert (details["limit"], details["remaining"], details["period"]) == (1, 0, "month")
    assert second["Retry-After"] == str(details["retry_after"])
    assert 0 < details["reset"] <= 31 * 86_400


def test_period_that_is_over_counts_from_the_beginning(cast: Cast) -> None:
    limit(cast, 1, period="day")  # a minute may be over between two calls
    assert [take(cast), take(cast)] == [True, False]
    with tenant_scope(cast.tenant.pk):
        ToolLimitUse.objects.update(starts_at=F("starts_at") - timedelta(days=1))
    assert [take(cast), take(cast)] == [True, False]


def test_every_limit_about_a_call_counts_and_none_when_one_is_used_up(cast: Cast) -> None:
    limit(cast, 1, target_kind="tool", target="calculate")
    limit(cast, 3, kind="tenant", target_kind="group", target="math")
    assert [take(cast, groups=["math", "math.sums"]) for _ in range(3)] == [True, False, False]
    assert take(cast, tool="other", groups=["math"])
    with tenant_scope(cast.tenant.pk):
        used = dict(ToolLimitUse.objects.values_list("subject", "used"))
    assert used == {f"member:{cast.user('member').pk}": 1, "tenant": 2}


def test_limit_of_one_person_takes_the_place_of_that_of_each(cast: Cast) -> None:
    limit(cast, 1)
    limit(cast, 3, user=cast.user("owner").pk)
    assert [take(cast) for _ in range(2)] == [True, False]
    assert [take(cast, "owner") for _ in range(4)] == [True, True, True, False]


def test_key_counts_for_itself_and_for_its_person(cast: Cast) -> None:
    limit(cast, 1, kind="key")
    limit(cast, 3)
    assert [take(cast, key=1), take(cast, key=1), take(cast, key=2)] == [True, False, True]
    assert [take(cast), take(cast)] == [True, False]


def test_limits_of_another_workspace_do_not_count(cast: Cast) -> None:
    tool_limit_set(
        tenant=cast.other_tenant, actor=cast.actor("outsider"), kind="tenant", period="day", calls=1
    )
    assert [take(cast), take(cast)] == [True, True]


def test_calls_at_one_moment_never_take_more_than_there_is(cast: Cast) -> None:
    limit(cast, 20, kind="tenant")
    limit(cast, 25, target_kind="tool", target="calculate")
    taken: list[bool] = []

    def caller() -> None:
        try:
            taken.extend(take(cast) for _ in range(6))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=caller) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(taken), sum(taken)) == (36, 20)
    with tenant_scope(cast.tenant.pk):
        assert sorted(ToolLimitUse.objects.values_list("used", flat=True)) == [20, 20]


async def test_approved_call_is_counted_when_it_runs_and_not_when_it_is_asked_about(
    cast: Cast, lane_threads: Executor
) -> None:
    await sync_to_async(limit)(cast, 1, target_kind="tool", target="pay")
    run, (row,) = await parked(cast, lane_threads, 5, approver_kind="role", approver="admin")
    with tenant_scope(cast.tenant.pk):
        assert not await ToolLimitUse.objects.aexists()
    await sync_to_async(decide)(cast, row, "admin")
    await _work(run, lane_threads)
    assert paid == [5]
    late, (second,) = await parked(cast, lane_threads, 6)
    await sync_to_async(decide)(cast, second, "admin")
    await _work(late, lane_threads)
    assert paid == [5]
    with tenant_scope(cast.tenant.pk):
        call = await ToolCall.objects.aget(run=late)
    assert call.error_code == "rate_limited"


def test_counting_takes_one_statement_and_unlimited_tools_none(cast: Cast) -> None:
    for number in range(20):
        limit(cast, 100, target_kind="tool", target=f"t{number}")
    with tenant_scope(cast.tenant.pk), CaptureQueriesContext(connection) as queries:
        take(cast, tool="t3")
    statements = [q["sql"] for q in queries if "tool" in q["sql"]]
    assert len(statements) == 1
    execute(cast, SUM)
    with tenant_scope(cast.tenant.pk):
        assert ToolLimitUse.objects.count() == 1


def test_refusal_is_told_only_when_no_call_ran(cast: Cast) -> None:
    limit(cast, 1)
    assert execute(cast, SUM, SUM).refusal() is None
    refused = execute(cast, SUM, SUM).refusal()
    assert refused is not None
    assert refused.data["scope"] == "member"


def test_setting_a_limit_again_replaces_it_and_is_recorded(cast: Cast) -> None:
    first = limit(cast, 5)
    assert limit(cast, 9).pk == first.pk
    other = limit(cast, 5, user=cast.user("viewer").pk)
    assert other.pk != first.pk
    tool_limit_remove(tenant=cast.tenant, actor=cast.actor("admin"), pk=first.pk)
    with tenant_scope(cast.tenant.pk):
        assert list(ToolLimit.objects.values_list("pk", "calls")) == [(other.pk, 5)]
        actions = AuditEvent.objects.filter(action__startswith="tool_limit.")
        assert actions.count() == 4


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "team"},
        {"period": "hour"},
        {"calls": 0},
        {"target_kind": "tool"},
        {"target": "x"},
        {"kind": "tenant", "user": 1},
        {"kind": "member", "api_key": 1},
        {"calls": 10**10},
    ],
    ids=str,
)
def test_limit_that_makes_no_sense_is_refused(cast: Cast, values: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        limit(cast, **{"calls": 1, **values})


def test_limits_are_the_admins_business_and_stay_within_the_workspace(cast: Cast) -> None:
    made: Any = {"tenant": cast.tenant, "kind": "tenant", "period": "day", "calls": 1}
    with pytest.raises(Denied):
        tool_limit_set(actor=cast.actor("member"), **made)
    with pytest.raises(Missing):
        limit(cast, 1, user=cast.user("outsider").pk)
    with pytest.raises(Missing):
        limit(cast, 1, kind="key", api_key=999_999)
    row = limit(cast, 1)
    with pytest.raises(Missing):
        tool_limit_remove(tenant=cast.other_tenant, actor=cast.actor("outsider"), pk=row.pk)
    stranger = Actor("user", cast.tenant.pk, frozenset(), user_id=1)
    with pytest.raises(Denied):
        tool_limit_remove(tenant=cast.tenant, actor=stranger, pk=row.pk)

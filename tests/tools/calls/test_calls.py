"""Calls from outside of a conversation: side by side, recorded, parked when asked about, run once when approved."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.conversations.toolset import bundle as conversation_tools
from apps.tools.calls import tasks
from apps.tools.calls.services import call_parse, calls_execute
from apps.tools.catalog.services import entry_set
from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create, grant_delete
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from apps.tools.toolset.selectors import guard_for
from basics.errors import Denied, Invalid, Missing
from jobs.runner import _finish
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run
from runs.models import ToolCall as Row
from tenancy.actors import Actor
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import make_library
from tests.factories import make_collection
from tests.patience import PATIENCE_S
from tests.runs.support import take
from toolloop.deferred import Decision
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
paid: list[int] = []


@tool(side_effects=True)
async def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: how much.
    """
    paid.append(amount)
    return f"paid {amount}"


@tool
async def wait_a_little() -> str:
    """Wait."""
    await asyncio.sleep(0)
    return "waited"


together = asyncio.Barrier(5)


@tool
async def meet() -> str:
    """Wait for the other four: one after another none would end."""
    async with asyncio.timeout(PATIENCE_S):
        await together.wait()
    return "met"


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    paid.clear()
    toolset = Toolset([*conversation_tools.TOOLSET, pay, wait_a_little, meet])
    monkeypatch.setattr(conversation_tools, "TOOLSET", toolset)


def execute(cast: Cast, *calls: tuple[str, Any], role: str = "member", **values: Any) -> Any:
    made = [call_parse(f"c{i}", n, json.dumps(a)) for i, (n, a) in enumerate(calls)]
    with tenant_scope(cast.tenant.pk):
        return calls_execute(tenant=cast.tenant, actor=cast.actor(role), calls=made, **values)


def test_calls_run_side_by_side_and_are_recorded_in_their_order(cast: Cast) -> None:
    done = execute(cast, *[("meet", {})] * 5, ("calculate", {"expression": "6*7"}), ("nothing", {}))
    assert ["42" in r.content for r in done.results] == [False] * 5 + [True, False]
    assert done.results[6].error_code == "unknown_tool"
    with tenant_scope(cast.tenant.pk):
        rows = list(Row.objects.filter(run=done.run).order_by("pk"))
        assert [r.status for r in rows] == ["succeeded"] * 6 + ["failed"]
        assert Run.objects.get(pk=done.run.pk).status == "completed"
        assert AuditEvent.objects.filter(action="tool.execute", object_id=str(done.run.pk)).exists()


def _work(run: Run, lane: Executor) -> Any:
    async def work() -> None:
        def begin() -> Any:
            with tenant_scope(run.tenant_id):
                job = Run.objects.select_related("job").get(pk=run.pk).job
                return job, take(job, "w1", lane)

        job, ctx = await sync_to_async(begin)()
        with tenant_scope(run.tenant_id):
            await tasks.calls_run(ctx, **job.payload)
            await ctx.in_db(_finish, ctx, job, None)

    return work()


async def test_asked_call_waits_and_runs_once_when_it_is_approved(cast: Cast, lane_threads: Executor) -> None:
    calls = (("pay", {"amount": 5}), ("calculate", {"expression": "1+1"}))
    done = await sync_to_async(execute, thread_sensitive=False)(cast, *calls)
    assert [r is None for r in done.results] == [True, False]
    await _work(done.waiting, lane_threads)
    assert paid == []

    def decide() -> str:
        with tenant_scope(cast.tenant.pk):
            run = Run.objects.get(pk=done.waiting.pk)
            assert run.status == "parked"
            waiting = PendingDecision.objects.get(run=run)
            assert "asks about this call" in waiting.reason
            call_decide(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                run=run,
                decision_id=waiting.pk,
                decision=Decision("approve", arguments={"amount": 7}),
            )
        return str(run.status)

    await sync_to_async(decide)()
    await _work(done.waiting, lane_threads)
    assert paid == [7]
    with tenant_scope(cast.tenant.pk):
        run = await sync_to_async(Run.objects.get)(pk=done.waiting.pk)
    assert run.status == "completed"


async def test_approved_call_does_not_run_when_it_was_denied_meanwhile(
    cast: Cast, lane_threads: Executor
) -> None:
    done = await sync_to_async(execute, thread_sensitive=False)(cast, ("pay", {"amount": 5}))
    await _work(done.waiting, lane_threads)

    def decide() -> None:
        with tenant_scope(cast.tenant.pk):
            run = Run.objects.get(pk=done.waiting.pk)
            waiting = PendingDecision.objects.get(run=run)
            who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
            condition = [{"kind": "above", "argument": "amount", "value": 1}]
            grant_create(**who, effect="deny", target_kind="tool", target="pay", arguments=condition)
            call_decide(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                run=run,
                decision_id=waiting.pk,
                decision=Decision("approve"),
            )

    await sync_to_async(decide)()
    await _work(done.waiting, lane_threads)
    assert paid == []


def test_documents_of_a_denied_collection_are_left_out_and_cannot_be_named(cast: Cast) -> None:
    make_library(cast, "Open", "open.txt")
    closed = make_library(cast, "Closed", "closed.txt")
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    grant_create(
        **who,
        effect="deny",
        target_kind="group",
        target="collections",
        subject_kind="role",
        subject="member",
        collection=closed.collection.pk,
    )
    calls: Any = (
        ("list_documents", {}),
        ("list_documents", {"collections": ["Closed"]}),
        ("get_chunk", {"chunk_id": f"c{closed.chunks[0].pk}"}),
    )
    listed, named, chunk = execute(cast, *calls).results
    assert '"Open"' in listed.content
    assert '"Closed"' not in listed.content
    assert (named.is_error, chunk.is_error) == (True, True)
    assert closed.chunks[0].text not in chunk.content
    assert '"Closed"' in execute(cast, calls[0], role="admin").results[0].content


def test_key_needs_the_right_and_a_person(cast: Cast) -> None:
    calls = [call_parse("a", "calculate", '{"expression": "1"}')]
    for actions in (frozenset(), frozenset({"tool.run"})):
        with pytest.raises(Denied), tenant_scope(cast.tenant.pk):
            calls_execute(tenant=cast.tenant, actor=Actor("api_key", cast.tenant.pk, actions), calls=calls)


def test_tools_are_listed_as_functions_and_those_denied_are_not(cast: Cast) -> None:
    client = Client(headers={"x-tenant": cast.tenant.slug})
    client.force_login(cast.user("member"), backend="django.contrib.auth.backends.ModelBackend")
    names = {t["function"]["name"] for t in client.get("/api/v1/tools").json()["tools"]}
    assert {"calculate", "search_documents", "pay"} <= names
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    grant_create(**who, effect="deny", target_kind="pattern", target="pa*")
    entry_set(**who, name="calculate", is_enabled=False)
    now = {t["function"]["name"] for t in client.get("/api/v1/tools").json()["tools"]}
    assert names - now == {"pay", "calculate"}
    assert client.get("/api/v1/tools?collection=999999").status_code == 404
    assert client.get("/api/v1/tools?collection=x").status_code == 400


@pytest.mark.parametrize(
    "values",
    [
        {"effect": "permit"},
        {"target": ""},
        {"target_kind": "toolkit"},
        {"subject": "x"},
        {"calls": "none"},
        {"subject_kind": "role", "subject": "boss"},
        {"subject_kind": "member", "subject": "07"},
        {"arguments": [{"kind": "newer"}]},
        {"toolkit": 1},
        {"subject_kind": "team"},
    ],
)
def test_grant_that_says_nothing_is_refused(cast: Cast, values: dict[str, Any]) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    with pytest.raises(Invalid):
        grant_create(**who, **{"effect": "allow", "target_kind": "tool", "target": "x", **values})


def test_grants_are_the_admins_business_and_stay_within_the_workspace(cast: Cast) -> None:
    values: Any = {"effect": "allow", "target_kind": "tool", "target": "x"}
    with pytest.raises(Denied):
        grant_create(tenant=cast.tenant, actor=cast.actor("member"), **values)
    foreign = make_collection(cast.other_tenant).pk
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("admin")}
    with pytest.raises(Missing):
        grant_create(**who, **values, collection=foreign)
    outsider = str(cast.user("outsider").pk)
    with pytest.raises(Missing):
        grant_create(**who, **values, subject_kind="member", subject=outsider)
    row = grant_create(**who, **values)
    grant_delete(**who, pk=row.pk)
    with pytest.raises(Missing):
        grant_delete(**who, pk=row.pk)
    with tenant_scope(cast.tenant.pk):
        actions = AuditEvent.objects.filter(action__startswith="tool_grant.")
        assert sorted(actions.values_list("action", flat=True)) == ["tool_grant.create", "tool_grant.delete"]


def test_toolkit_is_granted_as_one_and_kept_while_a_grant_uses_it(cast: Cast) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    kit = toolkit_set(**who, name="Money", tools=["pay"])
    grant_create(**who, effect="deny", target_kind="toolkit", toolkit=kit.pk)
    assert execute(cast, ("pay", {"amount": 1})).results[0].is_error
    with pytest.raises(Invalid, match="used in rules"):
        toolkit_delete(**who, pk=kit.pk)
    toolkit_set(**who, name="Money", tools=[])
    assert execute(cast, ("pay", {"amount": 1})).waiting is not None


def test_number_of_queries_does_not_grow_with_grants_or_tools(cast: Cast) -> None:
    def count() -> int:
        with tenant_scope(cast.tenant.pk), CaptureQueriesContext(connection) as queries:
            guard_for(actor=cast.actor("member"), scope={1: "a"})
            return len(queries)

    before = count()
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.bulk_create(
            ToolGrant(tenant=cast.tenant, effect="allow", target_kind="tool", target=f"t{i}")
            for i in range(300)
        )
    assert count() == before == 1

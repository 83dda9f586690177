"""What the row of a call says: how it came, the tool's version, the policy's decision and rule, and no secret."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.display.cards import tool_cards
from apps.conversations.toolset import bundle as conversation_tools
from apps.tools.calls import tasks
from apps.tools.calls.services import call_parse, calls_execute
from apps.tools.models import ToolGrant
from apps.tools.toolset.selectors import guard_for
from jobs.runner import _finish
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run, RunEvent
from runs.models import ToolCall as Row
from runs.sandbox import code_mode_for
from runs.services import run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask
from tests.runs.support import make_run, take
from toolloop.deferred import Decision
from toolloop.limits import Limits
from toolloop.masking import MASK
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "hunter2-canary"


@tool(version="3")
async def look(what: str, password: str = "", note: str = "") -> str:
    """Look at something.

    Args:
        what: what.
        password: opens it.
        note: by the schema a secret too.
    """
    return what * 1000


@tool(side_effects=True)
async def pay(amount: int, api_key: str = "") -> str:
    """Pay.

    Args:
        amount: how much.
        api_key: whose account.
    """
    return f"paid {amount}"


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = json.loads(json.dumps(look.parameters))
    schema["properties"]["note"]["format"] = "password"
    shown = [replace(look, parameters=schema), pay]
    toolset = Toolset([*conversation_tools.TOOLSET, *shown])
    monkeypatch.setattr(conversation_tools, "TOOLSET", toolset)


def rows(cast: Cast, run: Run) -> list[Row]:
    with tenant_scope(cast.tenant.pk):
        return list(Row.objects.filter(run=run).order_by("pk"))


def grant(cast: Cast, effect: str, target: str) -> int:
    """Make this the only grant, so that it is the one that decides."""
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.all().delete()
        row = ToolGrant.objects.create(
            tenant=cast.tenant, effect=effect, target_kind="tool", target=target, note=f"{effect} it"
        )
        return row.pk


def execute(cast: Cast, *calls: tuple[str, Any], **values: Any) -> Any:
    made = [call_parse(f"c{i}", n, json.dumps(a)) for i, (n, a) in enumerate(calls)]
    with tenant_scope(cast.tenant.pk):
        return calls_execute(tenant=cast.tenant, actor=cast.actor("member"), calls=made, **values)


def test_direct_call_says_who_how_and_by_which_rule(cast: Cast) -> None:
    rule = grant(cast, "allow", "look")
    with tenant_scope(cast.tenant.pk):
        denied = ToolGrant.objects.create(
            tenant=cast.tenant,
            effect="deny",
            target_kind="tool",
            target="look",
            arguments=[{"kind": "equals", "argument": "what", "value": "b"}],
        )
    done = execute(cast, ("look", {"what": "a", "password": SECRET}), ("look", {"what": "b"}), path="mcp")
    ok, refused = rows(cast, done.run)
    assert (ok.decision, ok.rule_id, ok.tool_version, ok.path) == ("allow", rule, "3", "mcp")
    assert (ok.user_id, ok.result_size) == (cast.actor("member").user_id, 1000)
    assert ok.arguments is not None
    assert ok.arguments["password"] == SECRET
    assert ok.arguments_shown == {"what": "a", "password": MASK}
    assert (refused.decision, refused.rule_id, refused.status) == ("deny", denied.pk, "denied")
    assert refused.decision_why
    assert refused.arguments_masked is None


async def test_call_of_a_chat_hides_its_secrets_from_events_and_cards(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = await sync_to_async(grant)(cast, "allow", "look")
    turn = await sync_to_async(ask)(cast)
    given = {"what": "a", "password": SECRET, "note": SECRET}
    script = [says("", ScriptedCall("look", given, "x")), says("Done.")]
    await answer(turn, lane_threads, monkeypatch, script)
    (row,) = await sync_to_async(rows)(cast, turn.run)
    assert (row.path, row.decision, row.rule_id, row.tool_version) == ("chat", "allow", rule, "3")
    assert (row.parent_call_id, row.result_size) == ("", 1000)
    assert row.arguments == given
    assert row.arguments_shown == {"what": "a", "password": MASK, "note": MASK}

    def shown() -> str:
        with tenant_scope(cast.tenant.pk):
            events = list(RunEvent.objects.filter(run=turn.run).values_list("data", flat=True))
        card: Any = row
        card.content_shown, card.own_summary = row.content, None
        return json.dumps(events) + str(tool_cards([card]))

    assert SECRET not in await sync_to_async(shown)()


async def test_approved_call_stays_one_that_was_asked_about(cast: Cast, lane_threads: Executor) -> None:
    def begin() -> tuple[Any, int]:
        rule = grant(cast, "ask", "pay")
        return execute(cast, ("pay", {"amount": 5, "api_key": SECRET})), rule

    done, rule = await sync_to_async(begin, thread_sensitive=False)()

    async def work() -> None:
        def start() -> Any:
            with tenant_scope(cast.tenant.pk):
                job = Run.objects.select_related("job").get(pk=done.waiting.pk).job
                return job, take(job, "w1", lane_threads)

        job, ctx = await sync_to_async(start)()
        with tenant_scope(cast.tenant.pk):
            await tasks.calls_run(ctx, **job.payload)
            await ctx.in_db(_finish, ctx, job, None)

    await work()
    (row,) = await sync_to_async(rows)(cast, done.waiting)
    assert (row.status, row.decision, row.rule_id, row.path) == ("waiting", "ask", rule, "rest")

    def decide() -> str:
        with tenant_scope(cast.tenant.pk):
            run = Run.objects.get(pk=done.waiting.pk)
            waiting = PendingDecision.objects.get(run=run)
            events = json.dumps(list(RunEvent.objects.filter(run=run).values_list("data", flat=True)))
            call_decide(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                run=run,
                decision_id=waiting.pk,
                decision=Decision("approve", arguments={"amount": 7, "api_key": MASK}),
            )
        return events

    assert SECRET not in await sync_to_async(decide)()
    await work()
    (row,) = await sync_to_async(rows)(cast, done.waiting)
    assert (row.status, row.decision, row.rule_id) == ("succeeded", "ask", rule)
    assert row.arguments == {"amount": 7, "api_key": SECRET}  # The mask was left as it was.
    assert row.arguments_shown == {"amount": 7, "api_key": MASK}
    assert SECRET not in row.content


async def test_calls_of_a_program_are_in_the_log_under_their_parent(
    cast: Cast, lane_threads: Executor
) -> None:
    def start() -> Any:
        grant(cast, "allow", "look")
        run, job = make_run(cast)
        with tenant_scope(cast.tenant.pk):
            guard = guard_for(actor=cast.actor("member"), scope={})
        return run, take(job, "w1", lane_threads), guard

    run, ctx, guard = await sync_to_async(start)()
    inner = guard.toolset(conversation_tools.TOOLSET, conversation_tools.BUNDLE)
    program = f"print(look(what='a', password='{SECRET}'))\nprint(look(what='b'))"
    script = [says("", ScriptedCall("execute_tools", {"code": program}, "p.1")), says("Done.")]
    with tenant_scope(cast.tenant.pk):
        await run_execute(
            ctx,
            run,
            toolset=code_mode_for(run, inner).toolset(),
            provider=ScriptedProvider(script),
            system="",
            history=[UserMessage("Do it.")],
            limits=Limits(max_tool_output_chars=500),
        )
    outer, first, second = await sync_to_async(rows)(cast, run)
    assert (outer.name, outer.path, outer.parent_call_id) == ("execute_tools", "job", "")
    assert outer.result_size is not None
    assert outer.result_size > len(outer.content)
    for call in (first, second):
        assert (call.name, call.path, call.parent_call_id) == ("look", "code", "p.1")
        assert (call.decision, call.status, call.result_size) == ("allow", "succeeded", 1000)
    assert first.arguments_shown == {"what": "a", "password": MASK}

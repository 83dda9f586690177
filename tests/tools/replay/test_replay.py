"""Replays: equal when nothing has changed, and where they diverge when something has. No tool ever runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.conversations.toolset import bundle as conversation_tools
from apps.tools.models import ToolGrant
from apps.tools.replay.services import recorded_call_replay, recorded_run_replay
from apps.tools.replay.views import shown
from basics.errors import Conflict, Missing
from runs.models import Run, ToolCall, UsageRecord
from runs.services import Replay, ReplayRow
from runs.services import replay as replay_service
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask
from toolloop.masking import MASK
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedTurn, says
from toolloop.tools import ToolError, Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
ran: list[str] = []
SECRET = "hunter2-canary"


@tool(version="1")
async def look(what: str, password: str = "") -> str:
    """Look at something.

    Args:
        what: what.
        password: opens it.
    """
    ran.append(what)
    if what == "nothing":
        raise ToolError("There is nothing.")
    return f"seen {what}"


@tool(version="2")
async def look_changed(where: str) -> str:
    """Look somewhere.

    Args:
        where: where.
    """
    ran.append(where)
    return "other"


SCRIPT = [
    says(
        "Let me look.",
        ScriptedCall("look", {"what": "a", "password": SECRET}, "x"),
        ScriptedCall("look", {"what": "nothing"}, "y"),
    ),
    says("It is a."),
]


BASE = tuple(conversation_tools.TOOLSET)


def offered(monkeypatch: pytest.MonkeyPatch, *tools: Any) -> None:
    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset([*BASE, *tools]))


async def recorded(cast: Cast, lane: Executor, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a finished run of a conversation with two calls."""
    offered(monkeypatch, look)
    turn = await sync_to_async(ask)(cast)
    await answer(turn, lane, monkeypatch, SCRIPT)
    ran.clear()

    def ended() -> Run:
        with tenant_scope(cast.tenant.pk):
            run = Run.objects.get(pk=turn.run_id)
        assert run.status == "completed"
        return run

    return await sync_to_async(ended)()


async def replayed(cast: Cast, run: Run, *, ask_model: bool = False, role: str = "member") -> Replay:
    def go() -> Replay:
        with tenant_scope(cast.tenant.pk):
            return recorded_run_replay(
                tenant=cast.tenant, actor=cast.actor(role), pk=run.pk, ask_model=ask_model
            )[1]

    return await sync_to_async(go, thread_sensitive=False)()


def texts(rows: Sequence[ReplayRow]) -> list[tuple[str, bool]]:
    return [(row.kind, row.is_equal) for row in rows]


async def test_replay_is_equal_when_nothing_has_changed_and_runs_no_tool(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)
    found = await replayed(cast, run)
    assert ran == []
    assert found.is_equal, found.rows
    assert found.diverged_at is None
    assert [row.kind for row in found.rows] == ["says", "calls", "calls", "result", "result", "says", "ends"]
    assert SECRET not in str(found)
    assert MASK in found.rows[1].recorded

    def recorded_rows() -> tuple[int, int, int]:
        with tenant_scope(cast.tenant.pk):
            audits = AuditEvent.objects.filter(action="run.replay", object_id=str(run.pk)).count()
            return (
                ToolCall.objects.filter(run=run).count(),
                audits,
                UsageRecord.objects.filter(kind="replay").count(),
            )

    assert await sync_to_async(recorded_rows)() == (2, 1, 0)


async def test_replay_shows_where_a_changed_tool_diverges(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)
    offered(monkeypatch, replace(look_changed, name="look"))
    found = await replayed(cast, run)
    assert not found.is_equal
    assert found.diverged_at == 3
    assert "where" in found.rows[3].replayed
    offered(monkeypatch)
    found = await replayed(cast, run)
    assert found.missing == ["look"]

    def brought_by_the_run() -> None:
        with tenant_scope(cast.tenant.pk):
            ToolCall.objects.filter(run=run).update(decision="")

    await sync_to_async(brought_by_the_run)()
    found = await replayed(cast, run)
    assert found.missing == [], "a tool that no rule was asked about came with the run"
    assert all(row.is_equal for row in found.rows)
    assert ran == []


@pytest.mark.parametrize(
    ("script", "equal"),
    [
        (SCRIPT, True),
        (
            [
                says(
                    "Let me look.",
                    ScriptedCall("look", {"what": "nothing"}, "n1"),
                    ScriptedCall("look", {"what": "a", "password": SECRET}, "n2"),
                ),
                says("It is a."),
            ],
            False,
        ),
        ([says("Let me look.", ScriptedCall("look", {"what": "b"}, "n1")), says("It is b.")], False),
        ([says("I know: it is a.")], False),
    ],
    ids=["the same", "another order", "another call", "no call"],
)
async def test_model_asked_anew_gets_recorded_outputs_and_its_usage_is_kept(
    cast: Cast,
    lane_threads: Executor,
    monkeypatch: pytest.MonkeyPatch,
    script: list[ScriptedTurn],
    equal: bool,
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)
    provider = ScriptedProvider(script)
    monkeypatch.setattr(replay_service, "provider_for", lambda tenant, model: provider)
    monkeypatch.setattr(replay_service, "loop_model", lambda provider, model: (model, None))
    found = await replayed(cast, run, ask_model=True)
    assert ran == []
    assert found.is_equal is equal, found.rows
    assert provider.closed
    results = [row.replayed for row in found.rows if row.kind == "result" and row.replayed]
    if len(script) == 2 and len(script[0].calls) == 2:
        assert sorted(results) == ["There is nothing.", "seen a"]
    elif len(script) == 2:
        assert results == [replay_service.NOT_RECORDED]

    def used() -> int:
        with tenant_scope(cast.tenant.pk):
            return UsageRecord.objects.filter(kind="replay", run_id=run.pk, step=None).count()

    assert await sync_to_async(used)() == len(script)


async def test_replay_is_refused_where_it_cannot_be(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)
    with pytest.raises(Missing):
        await replayed(cast, run, role="owner")

    async def with_(**values: Any) -> str:
        def change() -> None:
            with tenant_scope(cast.tenant.pk):
                Run.objects.filter(pk=run.pk).update(**values)

        await sync_to_async(change)()
        with pytest.raises(Conflict) as refused:
            await replayed(cast, run)
        return refused.value.code

    assert await with_(request={}) == "nothing_to_replay"
    assert await with_(status="parked") == "run_active"
    assert await with_(status="completed", pruned_at="2026-01-01T00:00Z") == "run_pruned"


async def test_call_is_held_against_todays_tool_and_rules(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)

    def judged(role: str = "owner") -> list[tuple[str, bool]]:
        with tenant_scope(cast.tenant.pk):
            pk = ToolCall.objects.get(run=run, call_id="x").pk
            return texts(recorded_call_replay(actor=cast.actor(role), pk=pk)[1].rows)

    same = await sync_to_async(judged)()
    assert same == [("tool", True), ("arguments", True), ("policy", True)]

    def asked() -> None:
        with tenant_scope(cast.tenant.pk):
            ToolGrant.objects.create(
                tenant=cast.tenant,
                effect="deny",
                target_kind="tool",
                target="look",
                arguments=[{"kind": "equals", "argument": "what", "value": "a"}],
            )

    await sync_to_async(asked)()
    assert (await sync_to_async(judged)())[2] == ("policy", False)
    offered(monkeypatch, replace(look_changed, name="look"))
    assert await sync_to_async(judged)() == [("tool", False), ("arguments", False)]
    offered(monkeypatch)
    assert await sync_to_async(judged)() == [("tool", False)]
    with pytest.raises(Missing):
        await sync_to_async(judged)("viewer")
    assert ran == []


async def test_pages_and_rest_show_the_replay(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await recorded(cast, lane_threads, monkeypatch)

    def ask_all() -> None:
        with tenant_scope(cast.tenant.pk):
            pk = ToolCall.objects.get(run=run, call_id="x").pk
        client = Client(headers={"X-Tenant": cast.tenant.slug})
        client.force_login(cast.member.user, "django.contrib.auth.backends.ModelBackend")
        page = client.post(reverse("tools:run-replay", args=[cast.tenant.slug, run.pk]))
        assert page.status_code == 200, page.content[:500]
        assert "as recorded" in page.content.decode()
        assert SECRET not in page.content.decode()
        one = client.post(reverse("tools:call-replay", args=[cast.tenant.slug, pk]))
        assert "as recorded" in one.content.decode()
        told = client.post(f"/api/v1/runs/{run.pk}/replay", {}, "application/json").json()
        assert (told["is_equal"], told["diverged_at"], len(told["rows"])) == (True, None, 7)
        assert client.post(f"/api/v1/tool-calls/{pk}/replay").json()["is_equal"]
        assert client.post("/api/v1/runs/999999999/replay", {}, "application/json").status_code == 404

    await sync_to_async(ask_all, thread_sensitive=False)()


def test_difference_is_marked_word_by_word() -> None:
    row = shown(ReplayRow(0, "says", "It is a dog.", "It is a cat.", False))
    assert [t for t in row.recorded if t[1]] == [("dog.", True)]
    assert [t for t in row.replayed if t[1]] == [("cat.", True)]
    assert shown(ReplayRow(0, "says", "a", "", False)).recorded == [("a", True)]

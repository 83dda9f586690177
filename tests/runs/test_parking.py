"""A run that waits for a person holds no worker, goes on exactly once, and only by its own person's decision."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from basics.errors import Conflict, DomainError, Invalid, Missing
from jobs.models import Job, JobStatus
from jobs.sweeper import sweep
from runs.approvals import parking
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run, ToolCall
from runs.selectors import decision_list
from runs.services import run_execute, run_stop
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.runs.support import kinds_of, make_run, take, transcript
from toolloop.deferred import Decision, ParkCall
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tools import ToolContext, Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)

sent: list[str] = []


@tool(side_effects=True, needs_approval=True)
async def send(to: str) -> str:
    """Send a letter.

    Args:
        to: whom.
    """
    sent.append(to)
    return f"sent to {to}"


@tool(external=True)
async def ask_person(question: str) -> str:
    """Ask a person.

    Args:
        question: what.
    """
    raise AssertionError("never run here")


@tool(side_effects=True)
async def careful(context: ToolContext) -> str:
    """Begin, then ask."""
    if context.decision is None:
        raise ParkCall("approval", "Really?", {"half": 1})
    sent.append(f"careful {context.decision.kind} {context.decision.state}")
    return "done"


SCRIPT = [
    says("I write. ", ScriptedCall("send", {"to": "Ann"}, "a"), ScriptedCall("send", {"to": "Bob"}, "b")),
    says("Both are answered."),
]


@pytest.fixture(autouse=True)
def _clean() -> None:
    sent.clear()


async def _carry(run: Run, lane: Executor, script: Any = SCRIPT, worker: str = "w1") -> Any:
    job = await sync_to_async(lambda: _fresh(run).job)()
    ctx = await sync_to_async(take)(job, worker, lane)
    with tenant_scope(run.tenant_id):
        row = await ctx.in_db(Run.objects.get, pk=run.pk)
        return await run_execute(
            ctx,
            row,
            toolset=Toolset([send, ask_person, careful]),
            provider=ScriptedProvider(script, by_history=True),
            system="",
            history=[UserMessage("Write.")],
        )


async def _parked(cast: Cast, lane: Executor, script: Any = SCRIPT) -> Run:
    run, _ = await sync_to_async(make_run)(cast)
    finished = await _carry(run, lane, script)
    assert finished.status == "parked"
    return run


def _fresh(run: Run) -> Run:
    with tenant_scope(run.tenant_id):
        row: Run = Run.objects.select_related("job").get(pk=run.pk)
        return row


def _waiting(run: Run) -> list[PendingDecision]:
    with tenant_scope(run.tenant_id):
        return decision_list(_fresh(run))


def _decide(cast: Cast, run: Run, pk: int, decision: Decision, role: str = "member") -> Any:
    with tenant_scope(cast.tenant.pk):
        return call_decide(
            tenant=cast.tenant, actor=cast.actor(role), run=run, decision_id=pk, decision=decision
        )


def _jobs(run: Run) -> list[Job]:
    with tenant_scope(run.tenant_id):
        return list(Job.objects.filter(kind="test.run").order_by("pk"))


def _refused(call: Callable[[], Any]) -> str:
    with pytest.raises(DomainError) as caught:
        call()
    return caught.value.code


async def test_no_worker_is_held_while_a_run_waits(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads)
    row = await sync_to_async(_fresh)(run)
    assert (row.status, row.job.status) == ("parked", JobStatus.SUCCEEDED)
    assert row.usage["requests"] == 1
    assert sent == []
    seen = await sync_to_async(transcript)(run)
    assert (seen.phase, seen.running, seen.finished) == ("parked", {}, None)
    first, second = await sync_to_async(_waiting)(run)
    assert list(seen.waiting) == [first.pk, second.pk]
    assert seen.waiting[first.pk]["arguments"] == {"to": "Ann"}
    # Nothing to do for a worker that comes by.
    again = await sync_to_async(take)(row.job, "w2", lane_threads)
    with tenant_scope(run.tenant_id):
        assert (
            await run_execute(
                again, row, toolset=Toolset([send]), provider=ScriptedProvider(SCRIPT), system="", history=[]
            )
            is None
        )


async def test_run_goes_on_once_when_all_is_decided(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads)
    first, second = await sync_to_async(_waiting)(run)
    edited = Decision("approve", arguments={"to": "Anna"})
    await sync_to_async(_decide)(cast, run, first.pk, edited)
    assert (await sync_to_async(_fresh)(run)).status == "parked"
    assert len(await sync_to_async(_jobs)(run)) == 1
    await sync_to_async(_decide)(cast, run, second.pk, Decision("reject", reason="Not him."))
    row = await sync_to_async(_fresh)(run)
    assert (row.status, row.job.status) == ("queued", JobStatus.QUEUED)
    assert len(await sync_to_async(_jobs)(run)) == 2
    finished = await _carry(run, lane_threads, worker="w2")
    assert finished.status == "completed"
    assert sent == ["Anna"]
    with tenant_scope(run.tenant_id):
        rows = await sync_to_async(lambda: list(ToolCall.objects.filter(run=run).order_by("pk")))()
    assert [(r.status, r.error_code, r.arguments) for r in rows] == [
        ("succeeded", "", {"to": "Anna"}),
        ("denied", "rejected", {"to": "Bob"}),
    ]
    assert "Not him." in rows[1].content
    assert (await sync_to_async(_fresh)(run)).usage["requests"] == 2
    assert "decided" in await sync_to_async(kinds_of)(run)


async def test_one_of_two_wins_when_both_decide_at_once(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads)
    waiting = await sync_to_async(_waiting)(run)
    outcomes: list[str] = []
    gate = threading.Barrier(6)

    def decide(pk: int, decision: Decision) -> None:
        gate.wait()
        try:
            _decide(cast, run, pk, decision)
            outcomes.append("won")
        except Conflict as error:
            outcomes.append(error.code)
        finally:
            connections.close_all()

    def race() -> None:
        threads = [
            threading.Thread(target=decide, args=(row.pk, decision))
            for row in waiting
            for decision in (Decision("approve"), Decision("approve"), Decision("reject"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    await sync_to_async(race)()
    assert sorted(outcomes) == ["call_decided"] * 4 + ["won"] * 2
    assert len(await sync_to_async(_jobs)(run)) == 2, "sent on exactly once"


async def test_decision_is_refused_when_it_is_not_ones_own_to_take(
    cast: Cast, lane_threads: Executor
) -> None:
    run = await _parked(cast, lane_threads)
    (first, _) = await sync_to_async(_waiting)(run)
    yes = Decision("approve")

    def attempts() -> None:
        for role in ("owner", "admin", "viewer"):
            with pytest.raises(Missing):
                _decide(cast, run, first.pk, yes, role)
        with tenant_scope(cast.other_tenant.pk), pytest.raises(Missing):
            call_decide(
                tenant=cast.other_tenant,
                actor=cast.actor("outsider"),
                run=run,
                decision_id=first.pk,
                decision=yes,
            )
        other, _ = make_run(cast)
        with pytest.raises(Missing):  # another run's decision
            _decide(cast, other, first.pk, yes)
        with pytest.raises(Invalid):
            _decide(cast, run, first.pk, Decision("answer", content=" "))

    await sync_to_async(attempts)()
    assert len(await sync_to_async(_waiting)(run)) == 2


async def test_parked_run_ends_at_once_when_it_is_stopped(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads)
    (first, _) = await sync_to_async(_waiting)(run)

    def stop() -> None:
        with tenant_scope(run.tenant_id):
            run_stop(tenant=cast.tenant, actor=cast.actor("member"), run=run)

    await sync_to_async(stop)()
    row = await sync_to_async(_fresh)(run)
    assert (row.status, row.answer) == ("stopped", "I write. ")
    code = await sync_to_async(_refused)(lambda: _decide(cast, run, first.pk, Decision("approve")))
    assert code == "call_decided"
    with tenant_scope(run.tenant_id):
        states = await sync_to_async(lambda: set(PendingDecision.objects.values_list("status", flat=True)))()
        calls = await sync_to_async(lambda: set(ToolCall.objects.values_list("status", flat=True)))()
    assert (states, calls) == ({"cancelled"}, {"denied"})
    assert (await sync_to_async(transcript)(run)).waiting == {}
    assert sent == []


async def test_stop_wins_when_it_comes_while_the_run_parks(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await sync_to_async(make_run)(cast)
    store = parking.pending_store

    def asked_meanwhile(*args: Any) -> Any:
        Run.objects.filter(pk=run.pk).update(stop_requested_at=timezone.now())
        return store(*args)

    monkeypatch.setattr("runs.services.execute.pending_store", asked_meanwhile)
    await _carry(run, lane_threads)
    row = await sync_to_async(_fresh)(run)
    assert (row.status, row.job.status) == ("stopped", JobStatus.SUCCEEDED)
    kinds = await sync_to_async(kinds_of)(run)
    assert kinds[-2:] == ["parked", "finished"]


async def test_call_is_rejected_when_nobody_decides_in_time(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads)
    (first, second) = await sync_to_async(_waiting)(run)

    def pass_time() -> None:
        _decide(cast, run, first.pk, Decision("approve"))
        with tenant_scope(run.tenant_id):
            late = timezone.now() - timedelta(seconds=1)
            PendingDecision.objects.filter(pk=second.pk).update(expires_at=late)
        code = _refused(lambda: _decide(cast, run, second.pk, Decision("approve")))
        assert code == "call_decided"
        assert sweep() >= 1
        sweep()  # twice is the same as once

    await sync_to_async(pass_time)()
    assert len(await sync_to_async(_jobs)(run)) == 2
    await _carry(run, lane_threads, worker="w2")
    assert sent == ["Ann"]
    with tenant_scope(run.tenant_id):
        bob = await sync_to_async(ToolCall.objects.get)(run=run, call_id="b")
    assert "No one decided about this call in time." in bob.content


async def test_run_parks_again_when_edited_arguments_do_not_fit(cast: Cast, lane_threads: Executor) -> None:
    run = await _parked(cast, lane_threads, [SCRIPT[0].__class__(calls=SCRIPT[0].calls[:1]), SCRIPT[1]])
    script = [SCRIPT[0].__class__(calls=SCRIPT[0].calls[:1]), SCRIPT[1]]
    (first,) = await sync_to_async(_waiting)(run)
    wrong = Decision("approve", arguments={"too": "Ann"})
    await sync_to_async(_decide)(cast, run, first.pk, wrong)
    assert (await _carry(run, lane_threads, script, "w2")).status == "parked"
    (again,) = await sync_to_async(_waiting)(run)
    assert again.pk != first.pk
    assert "do not fit" in again.reason
    assert sent == []
    await sync_to_async(_decide)(cast, run, again.pk, Decision("approve"))
    assert (await _carry(run, lane_threads, script, "w3")).status == "completed"
    assert sent == ["Ann"]


async def test_answer_from_outside_is_the_result(cast: Cast, lane_threads: Executor) -> None:
    script = [says("", ScriptedCall("ask_person", {"question": "Why?"}, "q")), says("Because.")]
    run = await _parked(cast, lane_threads, script)
    (asked,) = await sync_to_async(_waiting)(run)
    code = await sync_to_async(_refused)(lambda: _decide(cast, run, asked.pk, Decision("approve")))
    assert code == "decision_invalid"
    await sync_to_async(_decide)(cast, run, asked.pk, Decision("answer", content="Ask Bob \x00"))
    await _carry(run, lane_threads, script, "w2")
    with tenant_scope(run.tenant_id):
        row = await sync_to_async(ToolCall.objects.get)(run=run)
    assert (row.status, row.content) == ("succeeded", "Ask Bob \ufffd")


async def test_tool_that_parked_itself_goes_on_with_its_state(cast: Cast, lane_threads: Executor) -> None:
    script = [says("", ScriptedCall("careful", {}, "c")), says("Done.")]
    run = await _parked(cast, lane_threads, script)
    (asked,) = await sync_to_async(_waiting)(run)
    assert asked.reason == "Really?"
    await sync_to_async(_decide)(cast, run, asked.pk, Decision("approve", state="forged"))
    assert (await _carry(run, lane_threads, script, "w2")).status == "completed"
    assert sent == ["careful approve {'half': 1}"]

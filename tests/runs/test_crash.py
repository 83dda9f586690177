"""A run of ten calls goes on from any two writes between which its process dies: nothing is done or counted twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor

import pytest
from asgiref.sync import sync_to_async

from jobs.models import Job
from runs import pace
from runs.models import Run, RunStep, ToolCall, UsageRecord
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.nightly import NIGHTLY
from tests.runs.crash import ANSWER, SCRIPTS, USAGE_A_TURN, Process, When, World, carry
from tests.runs.support import events_of, transcript

pytestmark = pytest.mark.django_db(transaction=True)

WHENS: list[When] = ["before", "inside", "after"]
APART = 3
"""By day every third write has its death in one of the three ways, at night each write in all.

A call is four writes, so each of the four meets each death, in one or another of the ten calls, which are alike.
"""


def _check(run: Run, world: World, script: str, at: str) -> None:
    """Hold a run that has ended to everything that must be true, wherever its processes died."""
    steps = len(SCRIPTS[script])
    assert (run.status, run.error_code) == ("completed", ""), (at, run.error_message)
    assert run.answer.endswith(ANSWER), at
    assert world.twice() == [], at
    events = events_of(run)
    assert [seq for seq, _, _ in events] == list(range(1, run.last_seq + 1)), at
    assert [kind for _, kind, _ in events].count("finished") == 1, at
    seen = transcript(run)
    assert (seen.text, seen.running, seen.waiting) == (run.answer, {}, {}), at
    with tenant_scope(run.tenant_id):
        assert RunStep.objects.filter(run=run).count() == steps, at
        rows = list(ToolCall.objects.filter(run=run))
        used = list(UsageRecord.objects.filter(run_id=run.pk).order_by("step"))
        assert not Job.objects.filter(runs=run).exclude(status="succeeded").exists(), at
    assert len(rows) == 10, at
    for row in rows:
        assert isinstance(row.arguments, dict), at
        done = world.done[row.name, row.arguments["number"]]
        if row.status == "succeeded":
            assert done >= 1, (at, row.name)
        else:  # it may have had its effect or not, nobody knows, and the model was told so
            assert (row.status, row.has_side_effects) == ("unknown", True), (at, row.name)
            assert "outcome is unknown" in row.content, at
    assert [row.step for row in used] == list(range(steps)), at
    assert sum(row.input_tokens for row in used) == run.usage["input_total"], at
    assert run.usage["input_total"] == steps * USAGE_A_TURN[0], at
    assert sum(row.output_tokens for row in used) == steps * USAGE_A_TURN[1], at


def only(attempt: int, victim: Process) -> Callable[[int], Process]:
    """Return what makes each attempt's process: one of them is the victim."""
    return lambda number: victim if number == attempt else Process()


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("script", list(SCRIPTS))
async def test_run_goes_on_when_its_process_dies_between_any_two_writes(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch, script: str, when: When
) -> None:
    run, world, attempts = await carry(
        cast, lane_threads, monkeypatch, SCRIPTS[script], lambda _: Process(), eager=True
    )
    await sync_to_async(_check)(run, world, script, f"{script}, nothing dies")
    # Of all attempts: a parked run goes through decisions and resumes, which die too.
    writes = [(number, point) for number, process in enumerate(attempts) for point in range(process.count)]
    assert len(writes) >= 2 * 10, "a call has begun, and has ended"
    died = 0
    chosen = writes if NIGHTLY else writes[APART * WHENS.index(when) :: APART * len(WHENS)]
    for attempt, point in chosen:
        victim = Process(point, when)
        run, world, _ = await carry(
            cast, lane_threads, monkeypatch, SCRIPTS[script], only(attempt, victim), eager=True
        )
        at = f"{script}, attempt {attempt}, {when} write {point}"
        await sync_to_async(_check)(run, world, script, at)
        died += victim.dead
    # Calls side by side may have what they did written together, and then there are fewer writes than there were.
    assert died == len(chosen) or (died and script != "plain"), (died, len(chosen))


@pytest.mark.parametrize("script", list(SCRIPTS))
async def test_run_goes_on_when_facts_are_written_together_and_its_process_dies(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """By day at every second write, half of the times before it and half after it; at night at each, both ways."""
    monkeypatch.setattr(pace, "FLUSH_S", 0.0)
    whens: tuple[When, ...] = ("before", "after")
    for place, when in enumerate(whens):
        for point in range(100) if NIGHTLY else range(2 * place, 100, 2 * len(whens)):
            victim = Process(point, when)
            run, world, _ = await carry(
                cast, lane_threads, monkeypatch, SCRIPTS[script], only(0, victim), eager=False
            )
            await sync_to_async(_check)(run, world, script, f"{script}, {when} write {point}")
            if not victim.dead:
                break
        assert point >= 3


async def test_run_ends_when_process_after_process_dies(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(20)
    for round_ in range(6):
        script = dice.choice(list(SCRIPTS))
        run, world, used = await carry(
            cast,
            lane_threads,
            monkeypatch,
            SCRIPTS[script],
            lambda number: Process(
                dice.randrange(1, 7) if number < 20 else -1, dice.choice(["before", "after"])
            ),
            eager=bool(round_ % 2),
        )
        await sync_to_async(_check)(run, world, script, f"round {round_}, {script}")
        assert sum(process.dead for process in used) >= 3

"""What runs of one workspace say is written together, and still each behind its own fence and on its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, DataError, connection, transaction

from jobs.context import JobContext, LeaseLost
from jobs.notify import notify
from runs.hub import hub, stops
from runs.models import Run
from runs.pace import FLUSH_S, LOADED, Pace
from runs.recorder import Recorder
from runs.stopping import stop_tell
from runs.transcript import TEXT, Transcript
from runs.writes import Batch, RunWrite, runs_write
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.patience import PATIENCE_S
from tests.runs.clock import Clock
from tests.runs.support import events_of, make_run, take
from tests.servers import wait_for
from tests.statements import statements_noted

pytestmark = pytest.mark.django_db(transaction=True)


def said(ctx: JobContext, run: Run, *texts: str, first: int = 0, kind: str = TEXT) -> RunWrite:
    return RunWrite(ctx, run.pk, Batch([(kind, {"step": 0, "text": text}) for text in texts]), first)


def working(cast: Cast, number: int) -> list[tuple[JobContext, Run]]:
    """Return so many runs whose jobs one worker holds."""
    made = [make_run(cast) for _ in range(number)]
    return [(take(job, "w1"), run) for run, job in made]


def texts_of(run: Run) -> list[str]:
    return [data["text"] for _, _, data in events_of(run)]


def test_several_runs_are_one_statement_and_each_has_its_own_text(cast: Cast) -> None:
    runs = working(cast, 3)
    with tenant_scope(cast.tenant.pk), statements_noted() as sent:
        told = runs_write([said(ctx, run, f"a{run.pk}", f"b{run.pk}") for ctx, run in runs])
    assert told == [False, False, False]
    assert len(sent) == 1
    for _, run in runs:
        assert [(seq, data["text"]) for seq, _, data in events_of(run)] == [
            (1, f"a{run.pk}"),
            (2, f"b{run.pk}"),
        ]


def test_who_was_asked_to_stop_is_told_and_nobody_else(cast: Cast) -> None:
    runs = working(cast, 2)
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=runs[1][1].pk).update(stop_requested_at="2026-01-01T00:00:00Z")
        assert runs_write([said(ctx, run, "x") for ctx, run in runs]) == [False, True]


def test_a_run_that_was_taken_over_writes_nothing_and_learns_of_it(cast: Cast) -> None:
    runs = working(cast, 3)
    ctx, lost = runs[1]
    with tenant_scope(cast.tenant.pk):
        take(lost.job, "w2")
        told = runs_write([said(ctx, run, "x") for ctx, run in runs])
    assert told[0] is False
    assert told[2] is False
    assert isinstance(told[1], LeaseLost)
    assert ctx.lost.is_set()
    assert [texts_of(run) for _, run in runs] == [["x"], [], ["x"]]


def test_a_late_write_of_the_worker_before_misses_among_others(cast: Cast) -> None:
    runs = working(cast, 2)
    ctx, late = runs[1]
    with tenant_scope(cast.tenant.pk):
        runs_write([said(ctx, late, "one")])
        told = runs_write([said(*runs[0], "x"), said(ctx, late, "one again")])
    assert told[0] is False
    assert isinstance(told[1], LeaseLost)
    assert texts_of(late) == ["one"]


def test_what_the_database_refuses_of_one_run_is_its_failure_alone(cast: Cast) -> None:
    runs = working(cast, 3)
    with tenant_scope(cast.tenant.pk):
        told = runs_write([said(*runs[0], "x"), said(*runs[1], "x", kind="k" * 500), said(*runs[2], "x")])
    assert (told[0], told[2]) == (False, False)
    assert isinstance(told[1], DataError)
    assert [texts_of(run) for _, run in runs] == [["x"], [], ["x"]]


def test_a_run_whose_row_is_locked_holds_up_no_other(cast: Cast, lane_threads: Executor) -> None:
    runs = working(cast, 3)
    locked = runs[1][1]

    def write() -> list[Any]:
        with tenant_scope(cast.tenant.pk):
            return runs_write([said(ctx, run, "x") for ctx, run in runs])

    with tenant_scope(cast.tenant.pk):
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=locked.pk)
            writing = lane_threads.submit(write)
            # The others' text is there before the lock is gone; only then does its own run wait.
            wait_for(lambda: waiting_for_rows() == 1, "the locked run's own statement")
            assert [texts_of(run) for _, run in runs] == [["x"], [], ["x"]]
        assert writing.result(PATIENCE_S) == [False, False, False]
    assert texts_of(locked) == ["x"]


def waiting_for_rows() -> int:
    """Count who waits for a row of this database.

    By locks alone: a transaction sees pg_stat_activity as it was when it looked first, without who has connected since.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' "
            "AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return int(cursor.fetchone()[0])


def test_two_writes_of_one_run_come_in_their_order(cast: Cast) -> None:
    (ctx, run), other = working(cast, 2)
    with tenant_scope(cast.tenant.pk):
        told = runs_write([said(ctx, run, "1"), said(*other, "x"), said(ctx, run, "2", first=1)])
    assert told == [False, False, False]
    assert texts_of(run) == ["1", "2"]


def test_another_workspace_s_run_is_out_of_reach_in_a_shared_statement(cast: Cast) -> None:
    (mine,), (ctx, theirs) = working(cast, 1), working(make_cast(), 1)[0]
    with tenant_scope(cast.tenant.pk):
        told = runs_write(
            [said(*mine, "x"), said(ctx, theirs, "from outside"), said(mine[0], theirs, "forged")]
        )
    assert told[0] is False
    assert isinstance(told[1], LeaseLost)
    assert isinstance(told[2], LeaseLost)
    assert texts_of(theirs) == []


def test_a_connection_that_breaks_in_mid_statement_writes_nothing_and_says_so_to_each(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = working(cast, 2)
    with tenant_scope(cast.tenant.pk), monkeypatch.context() as patch:
        patch.setattr(
            "runs.writes._RESULT", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(600), 2, 3"
        )
        told = runs_write([said(ctx, run, "x") for ctx, run in runs])
    assert all(isinstance(error, DatabaseError) for error in told)
    connection.close()
    assert [texts_of(run) for _, run in runs] == [[], []]


async def test_recorders_of_many_runs_write_in_a_few_statements_and_readers_hear_each(
    cast: Cast, lane_threads: Executor
) -> None:
    made = [await sync_to_async(make_run)(cast) for _ in range(20)]
    runs = [(await sync_to_async(take)(job, "w1", lane_threads), run) for run, job in made]
    with tenant_scope(cast.tenant.pk):
        recorders = [Recorder(ctx, run.pk, Transcript(), asyncio.Event()) for ctx, run in runs]
        for recorder in recorders:
            recorder.open()
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as heard:
            ready = [asyncio.Event() for _ in runs]
            for (_, run), is_ready in zip(runs, ready, strict=True):
                heard.create_task(_hears(run, is_ready))
            for is_ready in ready:
                await is_ready.wait()
            with statements_noted() as sent:
                for recorder in recorders:
                    recorder.delta(TEXT, 0, "one ")
                    recorder.delta(TEXT, 0, "two")
                await asyncio.gather(*(recorder.flush() for recorder in recorders))
        for recorder in recorders:
            await recorder.close()
    assert len(sent) <= 3  # one that came first, all others, and what came while these were written
    for _, run in runs:
        assert "".join(await sync_to_async(texts_of)(run)) == "one two"


async def _hears(run: Run, is_ready: asyncio.Event) -> None:
    async with hub.subscribe(run.tenant_id, f"run:{run.pk}") as waker:
        await waker.wait(0)  # the connection's own
        is_ready.set()
        while not await waker.wait(PATIENCE_S):
            pass


async def test_a_worker_that_listens_for_stops_sleeps_through_what_is_written(cast: Cast) -> None:
    tenant = cast.tenant.pk
    async with stops.subscribe(tenant, "run:1") as writes, stops.subscribe(tenant, "run-stop:1") as told:
        for waker in (writes, told):
            await waker.wait(0)  # the connection's own
        await sync_to_async(notify)(tenant, "run:1")
        await sync_to_async(stop_tell)(tenant, 1, "stop")
        assert await told.wait(PATIENCE_S)
        assert not await writes.wait(0)  # told before, so it would have come before
    await stops.here.aclose()


async def test_runs_of_two_workspaces_share_no_statement(cast: Cast, lane_threads: Executor) -> None:
    other = await sync_to_async(make_cast)()
    recorders = []
    for whose in (cast, other):
        run, job = await sync_to_async(make_run)(whose)
        ctx = await sync_to_async(take)(job, "w1", lane_threads)
        with tenant_scope(whose.tenant.pk):
            recorders.append((whose, run, Recorder(ctx, run.pk, Transcript(), asyncio.Event())))
    with statements_noted() as sent:
        flushes = []
        for whose, _, recorder in recorders:
            with tenant_scope(whose.tenant.pk):
                recorder.delta(TEXT, 0, f"of {whose.tenant.slug}")
                flushes.append(asyncio.create_task(recorder.flush()))
        await asyncio.gather(*flushes)
    assert len(sent) == 2
    for whose, run, _ in recorders:
        assert await sync_to_async(texts_of)(run) == [f"of {whose.tenant.slug}"]


@pytest.mark.parametrize(("speaking", "every"), [(1, FLUSH_S), (7, FLUSH_S), *LOADED])
def test_the_pace_follows_how_many_speak(speaking: int, every: float) -> None:
    clock = Clock()
    pace = Pace(clock)  # type: ignore[arg-type]
    for _ in range(20):
        clock.now += 0.05
        for run in range(speaking):
            pace.spoken(run)
    due = pace.next_after(clock.now)
    assert 0 < due - clock.now <= 1.5 * every + 1e-9
    clock.now = due
    assert pace.next_after(due) == pytest.approx(due + every)
    clock.now += 10
    pace.spoken(1)
    assert pace.next_after(clock.now) == pytest.approx(clock.now + FLUSH_S)  # the others have fallen silent


def test_a_word_now_and_then_is_written_at_once_however_many_runs_say_one() -> None:
    clock = Clock()
    pace = Pace(clock)  # type: ignore[arg-type]
    for _ in range(3):
        for run in range(40):
            clock.now += 0.02
            pace.spoken(run)
            assert pace.next_after(clock.now - 10) < clock.now
    for run in range(40):
        pace.spoken(run)  # each again, within the half second of twenty-four others
    clock.now += 0.1
    pace.spoken(39)
    assert pace.next_after(clock.now - 10) > clock.now


def test_all_runs_of_a_loaded_process_are_due_in_the_same_moment() -> None:
    clock = Clock()
    pace = Pace(clock)  # type: ignore[arg-type]
    rung: list[int] = []
    for _ in range(20):
        clock.now += 0.013
        for run in range(30):
            pace.spoken(run)
    for run in range(30):
        clock.now += 0.001
        pace.call_at(pace.next_after(clock.now - 0.1), lambda run=run: rung.append(run))  # type: ignore[misc]
    assert len(clock.timers) <= 2  # the thirty milliseconds may lie around such a moment
    clock.turn(1.0)
    assert sorted(rung) == list(range(30))

"""What becomes of a job in one process: claims, ends, retries, the sweeper."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.utils import timezone
from django_q.models import OrmQ

from basics.errors import Conflict
from basics.processes import process_mark
from jobs import lane as lane_module
from jobs import registry, runner
from jobs.broker import CHANNEL
from jobs.context import JobCancelled, JobContext, LeaseLost
from jobs.heartbeat import worker_is_dead, worker_name
from jobs.models import Job, JobStatus
from jobs.runner import claim, run_here
from jobs.services import job_cancel, job_enqueue, job_new, wake_with
from jobs.sweeper import sweep, sweep_orphaned
from tenancy.database.direct import direct_connection
from tenancy.inserting import rows_insert
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S
from tests.servers import wait_for
from tests.statements import statements_noted

pytestmark = pytest.mark.django_db(transaction=True)


def _enqueue(cast: Cast, kind: str, notes: Path, **extra: int) -> Job:
    with tenant_scope(cast.tenant.pk):
        return job_enqueue(
            tenant=cast.tenant, actor=cast.actor("member"), kind=kind, payload={"path": str(notes), **extra}
        )


def _fresh(job: Job) -> Job:
    with tenant_scope(job.tenant_id):
        return Job.objects.get(pk=job.pk)


def _expire(job: Job) -> None:
    with tenant_scope(job.tenant_id):
        past = timezone.now() - timedelta(seconds=1)
        Job.objects.filter(pk=job.pk).update(lease_expires_at=past)


def test_job_succeeds_and_knows_for_whom_it_ran(cast: Cast, notes: Path) -> None:
    job = run_here(cast.tenant.pk, _enqueue(cast, "tests.note", notes).pk)
    assert job.status == JobStatus.SUCCEEDED
    assert job.user_id == cast.member.user_id
    assert notes.read_text().startswith("ran 1 ")


def test_job_fails_at_once_with_its_reason_when_the_handler_refuses(cast: Cast, notes: Path) -> None:
    job = run_here(cast.tenant.pk, _enqueue(cast, "tests.refuse", notes).pk)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "bad_input")
    assert job.error_message == "This input cannot be used."
    assert notes.read_text() == "ended failed bad_input\n"


def test_job_ends_when_its_reason_holds_what_postgres_does_not_take(cast: Cast, notes: Path) -> None:
    job = run_here(cast.tenant.pk, _enqueue(cast, "tests.refuse_unstorable", notes).pk)
    assert (job.status, job.error_message) == (JobStatus.FAILED, "No row: “a\ufffdb\ufffd”.")


def test_job_is_retried_then_failed_when_the_handler_crashes(cast: Cast, notes: Path) -> None:
    job = run_here(cast.tenant.pk, _enqueue(cast, "tests.crash", notes).pk)
    assert job.status == JobStatus.QUEUED
    assert job.run_after > timezone.now()
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(pk=job.pk).update(run_after=timezone.now())
    job = run_here(cast.tenant.pk, job.pk)
    assert (job.status, job.error_code, job.attempts) == (JobStatus.FAILED, "internal_error", 2)
    assert "RuntimeError" in job.error_message
    assert "a bug" not in job.error_message
    assert notes.read_text() == "ran 1\nran 2\nended failed internal_error\n"


def test_only_one_claim_wins(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.note", notes)
    assert claim(cast.tenant.pk, job.pk) is not None
    assert claim(cast.tenant.pk, job.pk) is None
    with pytest.raises(LeaseLost):
        run_here(cast.tenant.pk, job.pk)


def test_claim_is_refused_when_the_scope_is_another_tenant(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.note", notes)
    assert claim(cast.other_tenant.pk, job.pk) is None


def test_expired_lease_sends_the_job_back_and_the_old_worker_can_write_nothing(
    cast: Cast, notes: Path
) -> None:
    job = _enqueue(cast, "tests.note", notes)
    held = claim(cast.tenant.pk, job.pk)
    assert held is not None
    _expire(job)
    assert sweep() == 1
    assert _fresh(job).status == JobStatus.QUEUED
    again = claim(cast.tenant.pk, job.pk)
    assert again is not None
    assert again.attempts == 2
    with tenant_scope(cast.tenant.pk):
        old = JobContext(held)
        with pytest.raises(LeaseLost), transaction.atomic():
            old.hold()
        with pytest.raises(LeaseLost), transaction.atomic():
            old.complete()
        with transaction.atomic():
            JobContext(again).complete()
    assert _fresh(job).status == JobStatus.SUCCEEDED


def test_job_fails_with_worker_lost_when_its_workers_die(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.sleep", notes, seconds=1)
    for _ in range(2):
        assert claim(cast.tenant.pk, job.pk) is not None
        _expire(job)
        sweep()
    ended = _fresh(job)
    assert (ended.status, ended.error_code) == (JobStatus.FAILED, "worker_lost")
    assert notes.read_text() == "ended failed worker_lost\n"


def _die(cast: Cast, job: Job, *, advances: bool = False) -> Job:
    """Claim a job, finish a step of it or not, and let its worker die."""
    held = claim(cast.tenant.pk, job.pk)
    assert held is not None
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        if advances:
            JobContext(held).advanced()
    _expire(job)
    sweep()
    return _fresh(job)


def test_deaths_count_only_while_the_same_step_is_under_way(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.wait", notes, milliseconds=1)
    for _ in range(4):
        assert _die(cast, job, advances=True).deaths == 1
        assert _die(cast, job).deaths == 2
    assert _die(cast, job, advances=True).deaths == 1
    again = _die(cast, job)
    assert (again.status, again.deaths) == (JobStatus.QUEUED, 2)
    ended = _die(cast, job)
    assert (ended.status, ended.error_code, ended.deaths) == (JobStatus.FAILED, "worker_lost", 3)
    assert "crashed 3 times in a row in the same step" in ended.error_message


def test_step_that_kills_its_worker_ends_however_many_errors_its_kind_may_raise(
    cast: Cast, notes: Path
) -> None:
    job = _enqueue(cast, "tests.patient", notes)
    for _ in range(3):
        _die(cast, job)
    assert (_fresh(job).status, _fresh(job).attempts) == (JobStatus.FAILED, 3)


def test_deaths_and_errors_do_not_use_up_each_other(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.crash", notes)  # two errors
    _die(cast, job)
    tried = run_here(cast.tenant.pk, job.pk)
    assert (tried.status, tried.failures, tried.deaths) == (JobStatus.QUEUED, 1, 1)


def test_worker_that_lost_its_job_cannot_say_that_it_got_on(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.note", notes)
    _die(cast, job)
    held = claim(cast.tenant.pk, job.pk)
    assert held is not None
    old = JobContext(held)
    _expire(job)
    sweep()
    with tenant_scope(cast.tenant.pk), pytest.raises(LeaseLost), transaction.atomic():
        old.advanced()
    assert _fresh(job).deaths == 2


def test_job_of_a_dead_process_is_taken_back_before_its_lease_expires(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.note", notes)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = worker_name().rsplit(":", 2)[0] + f":{process_mark(child.pid)}:{child.pid}"
    with tenant_scope(cast.tenant.pk):
        claim(cast.tenant.pk, job.pk)
        Job.objects.filter(pk=job.pk).update(worker=name)
    assert not worker_is_dead(name)
    assert sweep() == 0
    with statements_noted() as sent:  # as each worker does twice a second
        assert sweep_orphaned() == 0
    assert len(sent) == 1
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still there as a zombie
    assert worker_is_dead(name)
    assert sweep() == 1
    child.wait()
    assert worker_is_dead(name)
    assert _fresh(job).status == JobStatus.QUEUED


@pytest.mark.parametrize("name", ["w1", "", "host:17", "host::1", "host:0123456789ab.5:999999999", "a:b:c"])
def test_worker_that_cannot_be_seen_from_here_is_not_taken_for_dead(name: str) -> None:
    assert not worker_is_dead(name)


def test_worker_whose_pid_another_process_has_by_now_is_dead() -> None:
    host, mark, pid = worker_name().rsplit(":", 2)
    place = mark.partition(".")[0]
    assert worker_is_dead(f"{host}:{place}.1:{pid}")
    assert not worker_is_dead(worker_name())


def test_job_that_waits_for_room_on_the_lane_is_not_claimed(
    cast: Cast, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lane_module.Lane(1)
    monkeypatch.setattr(runner, "lane", lambda: here)
    job = _enqueue(cast, "tests.wait", notes, milliseconds=1)
    here.reserve()

    def take() -> None:
        runner.run_loop(cast.tenant.pk, job.pk)
        connections.close_all()

    caller = threading.Thread(target=take)
    caller.start()
    caller.join(0.3)
    assert caller.is_alive()
    assert (_fresh(job).status, _fresh(job).attempts) == (JobStatus.QUEUED, 0)
    here.release()
    caller.join(30)
    wait_for(lambda: _fresh(job).status == JobStatus.SUCCEEDED)
    here.drain(30)


def test_job_that_follows_another_is_done_in_its_slot_and_queued_when_its_worker_ends(
    cast: Cast, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lane_module.Lane(1)
    monkeypatch.setattr(runner, "lane", lambda: here)

    def follower(number: int, milliseconds: int) -> Job:
        first = _enqueue(cast, "tests.followed", notes, milliseconds=milliseconds)
        OrmQ.objects.all().delete()  # the entry that is handed out
        runner.run_loop(cast.tenant.pk, first.pk)
        wait_for(lambda: notes.read_text().count("began") == number)
        assert _fresh(first).status == JobStatus.SUCCEEDED
        with tenant_scope(cast.tenant.pk):
            found: Job = Job.objects.filter(kind="tests.wait").latest("pk")
        return found

    done = follower(1, 1)
    assert (done.worker, done.attempts, done.user_id) == (worker_name(), 1, cast.member.user_id)
    wait_for(lambda: _fresh(done).status == JobStatus.SUCCEEDED)
    assert OrmQ.objects.count() == 0
    cut = follower(2, 60_000)
    assert cut.status == JobStatus.RUNNING
    here.drain(30)
    cut = _fresh(cut)
    assert (cut.status, cut.worker, cut.attempts) == (JobStatus.QUEUED, "", 0)
    assert [entry.func() for entry in OrmQ.objects.all()] == ["jobs.runner.run_loop"]
    OrmQ.objects.all().delete()
    # Who runs a job without a worker waits for no other: that one goes into the queue.
    run_here(cast.tenant.pk, _enqueue(cast, "tests.followed", notes, milliseconds=1).pk)
    with tenant_scope(cast.tenant.pk):
        assert Job.objects.filter(kind="tests.wait").latest("pk").status == JobStatus.QUEUED


def test_entry_is_stored_with_its_job(
    cast: Cast, notes: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store() -> Job:
        job = job_new(
            tenant=cast.tenant, actor=cast.actor("member"), kind="tests.note", payload={"path": str(notes)}
        )
        job.pk = Job.objects.latest("pk").pk + 1
        rows_insert([job], beside=wake_with([job]))
        return job

    with tenant_scope(cast.tenant.pk):
        _enqueue(cast, "tests.note", notes)
        OrmQ.objects.all().delete()
        with direct_connection() as line:
            line.execute(f"LISTEN {CHANNEL}")
            with transaction.atomic():
                store()
                transaction.set_rollback(True)
            assert (OrmQ.objects.count(), list(line.notifies(timeout=0))) == (0, [])
            with statements_noted() as noted, transaction.atomic():
                job = store()
            assert [entry.task["args"] for entry in OrmQ.objects.all()] == [(cast.tenant.pk, job.pk)]
            assert [one.channel for one in line.notifies(timeout=PATIENCE_S, stop_after=1)] == [CHANNEL]
        assert sum("INSERT" in statement for statement in noted) == 1
        # Another queue is told when the job can be found.
        told: list[object] = []
        settings.BROKER = "redis"
        monkeypatch.setattr("jobs.services.async_task", lambda *entry: told.append(entry))
        with transaction.atomic():
            job = store()
            assert told == []
        assert told == [(f"jobs.runner.run_{job.lane}", cast.tenant.pk, job.pk)]


def test_same_key_gives_the_active_job(cast: Cast, notes: Path) -> None:
    def enqueue() -> Job:
        with tenant_scope(cast.tenant.pk):
            return job_enqueue(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                kind="tests.note",
                payload={"path": str(notes)},
                dedupe_key="one",
            )

    first, second = enqueue(), enqueue()
    assert first.pk == second.pk
    run_here(cast.tenant.pk, first.pk)
    assert enqueue().pk != first.pk


def test_waiting_job_is_cancelled_at_once(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.note", notes)
    with tenant_scope(cast.tenant.pk):
        job_cancel(tenant=cast.tenant, actor=cast.actor("member"), job=job)
        assert _fresh(job).status == JobStatus.CANCELLED
        with pytest.raises(Conflict):
            job_cancel(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    assert notes.read_text() == "ended cancelled cancelled\n"


def test_check_raises_when_cancelled(cast: Cast, notes: Path) -> None:
    held = claim(cast.tenant.pk, _enqueue(cast, "tests.note", notes).pk)
    assert held is not None
    context = JobContext(held)
    context.check()
    context.cancelled.set()
    with pytest.raises(JobCancelled):
        context.check()


def test_sweep_looks_again_after_its_time_or_while_there_is_more_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, found, seen = 1_000.0, [5, 10, 3, 0], []
    monkeypatch.setattr(registry, "_sweeps", {})
    monkeypatch.setattr(registry, "monotonic", lambda: now)

    def hook() -> int:
        seen.append(now)
        return found.pop(0)

    for _ in range(2):  # a second registration is none
        registry.on_sweep(hook, every_s=300, batch=10)
    told = []
    for passes in (0, 299, 1, 3, 3, 297):
        now += passes
        told.append(registry.run_sweeps())
    assert told == [5, 0, 10, 3, 0, 0]
    assert seen == [1_000.0, 1_300.0, 1_303.0, 1_603.0]


@pytest.mark.parametrize("error", [OSError("disk full"), Conflict("taken", "Taken.")])
def test_a_sweep_that_fails_is_logged_and_keeps_no_other_from_running(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_sweeps", {})
    logged: list[str] = []
    monkeypatch.setattr(
        registry.log, "exception", lambda event, **said: logged.append(f"{event} {said['hook']}")
    )

    def planted() -> int:
        raise error

    registry.on_sweep(planted)
    registry.on_sweep(lambda: 4)
    assert registry.run_sweeps() == 4
    assert len(logged) == 1
    assert logged[0].startswith("sweep_failed ")
    assert "planted" in logged[0]


def test_a_sweep_without_a_database_leaves_the_connection_to_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_sweeps", {})

    def away() -> int:
        raise OperationalError("the connection is lost")

    registry.on_sweep(away)
    with pytest.raises(OperationalError):
        registry.run_sweeps()


@pytest.mark.parametrize(("kind", "run"), [("tests.note", "run_cpu"), ("tests.step", "run_loop")])
def test_worker_that_ends_hands_on_what_its_queue_still_gives_it(
    cast: Cast, notes: Path, monkeypatch: pytest.MonkeyPatch, kind: str, run: str
) -> None:
    """It gave the job back itself a moment ago, perhaps: taken up again, it would hold up the end of the worker."""
    job = _enqueue(cast, kind, notes)
    OrmQ.objects.all().delete()  # the entry that was handed out
    ending = threading.Event()
    ending.set()
    monkeypatch.setattr(runner, "stop_flag", ending)
    monkeypatch.setattr(runner, "HAND_ON_S", 0)
    getattr(runner, run)(job.tenant_id, job.pk)
    assert (_fresh(job).status, _fresh(job).attempts, notes.read_text()) == (JobStatus.QUEUED, 0, "")
    assert [entry.func() for entry in OrmQ.objects.all()] == [f"jobs.runner.{run}"]
    with tenant_scope(job.tenant_id):
        Job.objects.filter(pk=job.pk).update(status=JobStatus.CANCELLED)
    getattr(runner, run)(job.tenant_id, job.pk)
    assert OrmQ.objects.count() == 1, "nothing is put back of what has ended"

"""A real worker command on the real queue, which ends: kill -9, stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.models import Job, JobStatus, Worker
from jobs.registry import MAX_DEATHS
from jobs.services import job_enqueue
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.jobs.conftest import Begun
from tests.patience import PATIENCE_S
from tests.servers import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
Start = Callable[..., Begun]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def _enqueue(cast: Cast, kind: str, notes: Path, **extra: int) -> Job:
    with tenant_scope(cast.tenant.pk):
        return job_enqueue(
            tenant=cast.tenant, actor=cast.actor("member"), kind=kind, payload={"path": str(notes), **extra}
        )


def _status(job: Job) -> str:
    with tenant_scope(job.tenant_id):
        return str(Job.objects.get(pk=job.pk).status)


def _ready(process: Begun) -> None:
    wait_for(lambda: Worker.objects.exists() or process.poll() is not None)
    assert process.poll() is None


def test_loop_job_goes_on_elsewhere_when_its_worker_is_killed(
    cast: Cast, notes: Path, start_worker: Start
) -> None:
    """At once: the lease would hold the job for ten minutes, but its worker is seen to be dead."""
    _ready(start_worker(GROUNDWORK_JOB_LEASE_S="600"))
    job = _enqueue(cast, "tests.wait", notes, milliseconds=1500)
    wait_for(lambda: "began 1" in notes.read_text())
    os.kill(int(notes.read_text().split()[2]), signal.SIGKILL)
    wait_for(lambda: _status(job) == JobStatus.SUCCEEDED)
    assert "done 2" in notes.read_text()


def test_one_process_takes_chat_while_a_long_job_holds_its_slot(
    cast: Cast, notes: Path, start_worker: Start
) -> None:
    _ready(start_worker(GROUNDWORK_WORKERS="1"))
    long = _enqueue(cast, "tests.stubborn", notes)  # never gives way
    wait_for(lambda: "began 1" in notes.read_text())
    process = notes.read_text().split()[2]
    next_one = _enqueue(cast, "tests.sleep", notes, seconds=0)
    chat = _enqueue(cast, "tests.wait", notes, milliseconds=1)
    wait_for(lambda: _status(chat) == JobStatus.SUCCEEDED)
    assert f"done 1 {process}" in notes.read_text()
    assert [_status(long), _status(next_one)] == [JobStatus.RUNNING, JobStatus.QUEUED]
    notes.with_suffix(".go").touch()
    wait_for(lambda: _status(next_one) == JobStatus.SUCCEEDED)
    assert _status(long) == JobStatus.SUCCEEDED


def test_stopped_worker_gives_its_jobs_back_and_leaves_no_process(
    cast: Cast, notes: Path, start_worker: Start
) -> None:
    process = start_worker()
    _ready(process)
    slow = _enqueue(cast, "tests.sleep", notes, seconds=30)
    chat = _enqueue(cast, "tests.wait", notes, milliseconds=30_000)
    wait_for(lambda: notes.read_text().count("began") == 2)
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)
    with tenant_scope(cast.tenant.pk):
        for job in Job.objects.filter(pk__in=[slow.pk, chat.pk]):
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)
    assert not Worker.objects.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_worker_stops_in_order_when_the_whole_group_is_told_to(
    cast: Cast, notes: Path, start_worker: Start
) -> None:
    process = start_worker()
    _ready(process)
    slow = _enqueue(cast, "tests.sleep", notes, seconds=30)
    chat = _enqueue(cast, "tests.wait", notes, milliseconds=30_000)
    wait_for(lambda: notes.read_text().count("began") == 2)
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(PATIENCE_S)
    assert [_status(slow), _status(chat)] == [JobStatus.QUEUED, JobStatus.QUEUED]


def test_no_process_survives_when_the_command_is_killed(cast: Cast, notes: Path, start_worker: Start) -> None:
    process = start_worker()
    _ready(process)
    process.kill()
    process.wait(PATIENCE_S)

    def gone() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(gone)


def test_a_job_that_hangs_in_the_slot_of_one_process_ends_it_and_fails_in_the_end(
    cast: Cast, notes: Path, start_worker: Start
) -> None:
    _ready(start_worker(GROUNDWORK_WORKERS="1", TESTS_TASK_TIMEOUT="1"))
    job = _enqueue(cast, "tests.stubborn", notes)
    wait_for(lambda: _status(job) == JobStatus.FAILED)
    processes = [line.split()[2] for line in notes.read_text().splitlines()]
    assert len(set(processes)) == len(processes) == MAX_DEATHS

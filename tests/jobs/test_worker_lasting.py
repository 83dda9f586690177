"""A real worker command that lasts, on the real queue: wake-up, both lanes, the death of one of its processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.models import Job, JobStatus
from jobs.services import job_cancel
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.jobs.conftest import begin, end
from tests.jobs.test_worker import _enqueue, _status
from tests.servers import wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.servers,
    pytest.mark.usefixtures("lasting"),
]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture(scope="module")
def lasting(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """One worker for all of these tests: its start costs more than they do."""
    with django_db_blocker.unblock():
        worker = begin()
        yield
        end(worker)


def _cancel(cast: Cast, job: Job) -> None:
    """Cancel a job, and wait until it has heard of it."""
    with tenant_scope(cast.tenant.pk):
        job_cancel(tenant=cast.tenant, actor=cast.actor("member"), job=job)
    wait_for(lambda: _status(job) == JobStatus.CANCELLED)


def test_many_waits_run_at_once_beside_a_busy_cpu_job(cast: Cast, notes: Path) -> None:
    busy = _enqueue(cast, "tests.sleep", notes, seconds=600)
    wait_for(lambda: "began" in notes.read_text())
    waits = [_enqueue(cast, "tests.wait", notes, milliseconds=1000) for _ in range(30)]
    wait_for(lambda: all(_status(j) == JobStatus.SUCCEEDED for j in waits))
    assert "done 1\n" not in notes.read_text(), "the cpu job should still run"
    _cancel(cast, busy)


def test_job_goes_on_elsewhere_when_its_worker_is_killed(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.sleep", notes, seconds=2)
    wait_for(lambda: "began 1" in notes.read_text())
    os.kill(int(notes.read_text().split()[2]), signal.SIGKILL)
    wait_for(lambda: _status(job) == JobStatus.SUCCEEDED)
    lines = [line.split()[:2] for line in notes.read_text().splitlines()]
    assert lines == [["began", "1"], ["began", "2"], ["done", "2"]]


def test_running_job_is_cancelled(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.sleep", notes, seconds=30)
    wait_for(lambda: "began 1" in notes.read_text())
    _cancel(cast, job)

"""Who gets the next slice, when a slice is over, and what a job that waits is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs import fairness, runner, slots
from jobs.context import JobContext, JobYielded
from jobs.fairness import SMALL_BYTES, next_turn, slice_of
from jobs.models import Job, JobStatus
from jobs.queue import ProcessLock
from jobs.runner import claim
from jobs.services import job_cancel, job_enqueue
from jobs.waits import Place, Wait, tenant_waits, waits
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db
has_threads = pytest.mark.django_db(transaction=True)
MB = 1_000_000


@pytest.fixture
def enqueue(cast: Cast, notes: Path) -> Callable[..., Job]:
    """Put a job into the queue of one of the two workspaces; ``age`` is in seconds."""

    def call(tenant: Tenant, weight: int | None, *, age: float = 0, kind: str = "tests.note") -> Job:
        with tenant_scope(tenant.pk):
            job = job_enqueue(
                tenant=tenant,
                actor=cast.actor("member"),
                kind=kind,
                payload={"path": str(notes)},
                weight=weight,
            )
            made = timezone.now() - timedelta(seconds=age)
            Job.objects.filter(pk=job.pk).update(created_at=made, run_after=made)
            return job

    return call


def set_had(job: Job, seconds: float, *, ago: float = 0, status: str = "succeeded") -> None:
    """Let a job have had so many seconds of a slot, so long ago."""
    with tenant_scope(job.tenant_id):
        Job.objects.filter(pk=job.pk).update(
            status=status,
            worked_s=seconds,
            recent_s=seconds,
            turn_at=timezone.now() - timedelta(seconds=ago),
            started_at=timezone.now() - timedelta(seconds=ago),
        )


def following(**options: Any) -> int | None:
    turn = next_turn(**options)
    return None if turn is None else turn.job_id


def test_next_slice_goes_to_the_workspace_that_had_least(cast: Cast, enqueue: Callable[..., Job]) -> None:
    set_had(enqueue(cast.tenant, MB), 30)
    set_had(enqueue(cast.other_tenant, MB), 20)
    enqueue(cast.tenant, 10, age=100)
    theirs = enqueue(cast.other_tenant, 50 * MB)
    assert following() == theirs.pk, "size and age count only inside a workspace"


def test_what_a_workspace_had_long_ago_counts_little(cast: Cast, enqueue: Callable[..., Job]) -> None:
    set_had(enqueue(cast.tenant, MB), 1000, ago=500)
    set_had(enqueue(cast.other_tenant, MB), 20)
    mine = enqueue(cast.tenant, 10)
    enqueue(cast.other_tenant, 10, age=60)
    assert following() == mine.pk


def test_slice_that_runs_now_counts(cast: Cast, enqueue: Callable[..., Job]) -> None:
    set_had(enqueue(cast.tenant, MB), 0, ago=5, status="running")
    enqueue(cast.tenant, 10, age=60)
    theirs = enqueue(cast.other_tenant, 10)
    assert following() == theirs.pk


def test_small_file_comes_before_the_large_one_of_the_same_upload(
    cast: Cast, enqueue: Callable[..., Job]
) -> None:
    large = enqueue(cast.tenant, 50 * MB, age=1)
    small = enqueue(cast.tenant, 1000)
    assert following() == small.pk
    claim(cast.tenant.pk, small.pk)
    assert following() == large.pk


def test_large_file_is_not_overtaken_for_ever(cast: Cast, enqueue: Callable[..., Job]) -> None:
    large = enqueue(cast.tenant, 10 * MB, age=10 * MB / fairness.BYTES_A_SECOND + 1)
    enqueue(cast.tenant, 1000)
    assert following() == large.pk


def test_slot_for_small_jobs_takes_no_others(cast: Cast, enqueue: Callable[..., Job]) -> None:
    enqueue(cast.tenant, SMALL_BYTES + 1)
    enqueue(cast.tenant, None)
    long_one = enqueue(cast.tenant, 1000)
    set_had(long_one, fairness.SLICE_S, status="queued")
    assert following(is_small=True) is None, "one that has used up a slice is not small"
    small = enqueue(cast.tenant, SMALL_BYTES)
    assert following(is_small=True) == small.pk


def test_job_that_may_not_start_yet_has_no_turn(cast: Cast, enqueue: Callable[..., Job]) -> None:
    later = enqueue(cast.tenant, 1000)
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(pk=later.pk).update(run_after=timezone.now() + timedelta(seconds=60))
    assert following() is None


class Clock:
    """The time that slices are measured by."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_slice_is_over_only_when_somebody_else_comes_next(
    cast: Cast, enqueue: Callable[..., Job], clock: Clock
) -> None:
    mine = claim(cast.tenant.pk, enqueue(cast.tenant, 10 * MB).pk)
    assert mine is not None
    is_over = slice_of(mine, clock=clock)
    enqueue(cast.tenant, 20 * MB)
    assert not is_over(), "the slice has only begun"
    clock.advance(fairness.SLICE_S)
    assert not is_over(), "the other one is larger, so this one would come next again"
    small = enqueue(cast.tenant, 1000)
    assert not is_over(), "it does not ask the database each time"
    clock.advance(1)
    assert is_over()
    claim(cast.tenant.pk, small.pk)
    clock.advance(1)
    assert not is_over()
    enqueue(cast.other_tenant, 50 * MB)
    clock.advance(1)
    assert is_over(), "the other workspace had nothing yet"


def test_slice_ends_after_a_minute_when_nobody_waits(
    cast: Cast, enqueue: Callable[..., Job], clock: Clock
) -> None:
    mine = claim(cast.tenant.pk, enqueue(cast.tenant, 10 * MB).pk)
    assert mine is not None
    is_over = slice_of(mine, clock=clock)
    clock.advance(fairness.LONGEST_SLICE_S - 1)
    assert not is_over()
    clock.advance(1)
    assert is_over()


@has_threads
def test_yielded_job_waits_again_and_its_slice_is_no_attempt(
    cast: Cast, enqueue: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, notes: Path
) -> None:
    """Two jobs of slices take turns; each goes on where it was, and both end."""
    large = enqueue(cast.tenant, 2 * MB, kind="tests.slices")
    theirs = enqueue(cast.other_tenant, 2 * MB, kind="tests.slices")
    monkeypatch.setattr(fairness, "SLICE_S", 0.0)
    monkeypatch.setattr(fairness, "_LOOK_EVERY_S", 0.0)
    runner.run_cpu(cast.tenant.pk, large.pk)
    lines = [line.split() for line in notes.read_text().splitlines()]
    assert {line[2] for line in lines} == {"1"}, "each slice is attempt 1"
    order = [int(line[0]) for line in lines]
    assert sorted(order) == sorted([large.pk, theirs.pk] * 3)
    assert order != sorted(order), "they took turns"
    steps = {pk: [line[1] for line in lines if int(line[0]) == pk] for pk in (large.pk, theirs.pk)}
    assert set(map(tuple, steps.values())) == {("1", "2", "3")}
    for job in (large, theirs):
        with tenant_scope(job.tenant_id):
            job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 1)
        assert job.worked_s > 0
        assert job.recent_s > 0


def test_job_cancelled_during_its_slice_does_not_wait_for_another(
    cast: Cast, enqueue: Callable[..., Job]
) -> None:
    held = claim(cast.tenant.pk, enqueue(cast.tenant, 10 * MB).pk)
    assert held is not None
    with tenant_scope(cast.tenant.pk):
        job_cancel(tenant=cast.tenant, actor=cast.actor("member"), job=held)
        runner._finish(JobContext(held), held, JobYielded("its slice is over"))
        held.refresh_from_db()
    assert held.status == JobStatus.CANCELLED


def test_job_without_slices_never_yields(cast: Cast, enqueue: Callable[..., Job]) -> None:
    held = claim(cast.tenant.pk, enqueue(cast.tenant, 10 * MB).pk)
    assert held is not None
    enqueue(cast.other_tenant, 10)
    JobContext(held).give_way()
    with pytest.raises(JobYielded):
        JobContext(held, turn=lambda: True).give_way()


@has_threads
def test_small_job_is_done_beside_a_regular_slot_that_is_taken(
    cast: Cast, enqueue: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, notes: Path
) -> None:
    monkeypatch.setattr(slots, "_regular", [])  # as if others held all of them
    monkeypatch.setattr(slots, "small", slots.ThreadSlot("small-slot", ProcessLock()))
    large = enqueue(cast.tenant, 10 * MB)
    small = [enqueue(tenant, 1000) for tenant in (cast.tenant, cast.other_tenant)]
    runner.run_cpu(cast.tenant.pk, large.pk)
    slots.small.join()
    assert notes.read_text().count("ran 1") == len(small)
    with tenant_scope(cast.tenant.pk):
        large.refresh_from_db()
    assert large.status == JobStatus.QUEUED


def test_what_waits_is_told_what_comes_first() -> None:
    own = [
        Place(1, 40, is_running=True),
        Place(2, 1, is_small=True),
        Place(3, 2, is_small=True),
        Place(4, 100),
        Place(5, 9, later_s=30),
    ]
    told = waits(own, [], {2, 3, 4, 5})
    assert told[2] == Wait((), 0), "a small one waits for small ones alone"
    assert told[3] == Wait((2,), 1)
    assert told[4] == Wait((1, 2, 3), 43)
    assert told[5] == Wait((), 30, is_later=True)
    assert 1 not in waits(own, [], {1})


def test_other_workspaces_hold_up_by_no_more_than_their_share() -> None:
    own = [Place(1, 10), Place(2, 5)]
    told = waits(own, [(0, 1000), (0, 3)], {1, 2})
    assert told[1] == Wait((), fairness.SLICE_S * 2)
    assert told[2] == Wait((1,), 10 + (10 + fairness.SLICE_S) + 3)


def test_waits_of_a_workspace_name_none_of_another(cast: Cast, enqueue: Callable[..., Job]) -> None:
    enqueue(cast.other_tenant, 10 * MB, age=60)
    first, second = enqueue(cast.tenant, 4 * MB, age=2), enqueue(cast.tenant, 4 * MB)
    told = tenant_waits(cast.tenant.pk, {first.pk, second.pk})
    assert told[first.pk].before == ()
    assert told[second.pk].before == (first.pk,)
    assert 0 < told[first.pk].seconds < told[second.pk].seconds

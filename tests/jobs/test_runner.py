"""What becomes of a job in one process: claims, ends, retries, the sweeper."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from basics.errors import Conflict
from jobs.context import JobCancelled, JobContext, LeaseLost
from jobs.models import Job, JobStatus
from jobs.runner import claim, run_here
from jobs.services import job_cancel, job_enqueue
from jobs.sweeper import sweep
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def _enqueue(cast: Cast, kind: str, notes: Path, **extra: int) -> Job:
    with tenant_scope(cast.tenant.pk):
        return job_enqueue(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            kind=kind,
            payload={"path": str(notes), **extra},
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


def test_job_fails_at_once_with_its_reason_when_the_handler_refuses(
    cast: Cast, notes: Path
) -> None:
    job = run_here(cast.tenant.pk, _enqueue(cast, "tests.refuse", notes).pk)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "bad_input")
    assert job.error_message == "This input cannot be used."
    assert notes.read_text() == "ended failed bad_input\n"


def test_job_ends_when_its_reason_holds_what_postgres_does_not_take(
    cast: Cast, notes: Path
) -> None:
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
        from django.db import transaction

        with pytest.raises(LeaseLost), transaction.atomic():
            old.hold()
        with pytest.raises(LeaseLost), transaction.atomic():
            old.complete()
        with transaction.atomic():
            JobContext(again).complete()
    assert _fresh(job).status == JobStatus.SUCCEEDED


def test_job_fails_with_worker_lost_when_its_attempts_are_used_up(cast: Cast, notes: Path) -> None:
    job = _enqueue(cast, "tests.sleep", notes, seconds=1)
    for _ in range(2):
        assert claim(cast.tenant.pk, job.pk) is not None
        _expire(job)
        sweep()
    ended = _fresh(job)
    assert (ended.status, ended.error_code) == (JobStatus.FAILED, "worker_lost")
    assert notes.read_text() == "ended failed worker_lost\n"


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

"""Find jobs that nobody works on any more: expired leases, due retries, lost wake-ups; and what else waits for a time."""

from __future__ import annotations

import structlog
from django.db import transaction
from django.utils import timezone

from jobs import registry
from jobs.models import Job, JobStatus
from jobs.services import job_end, job_requeue, wake
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)
LOST_WAKE_UP_S = 60


def sweep(limit: int = 100) -> int:
    """Bring stuck jobs on; returns how many. Safe to run in several processes at once (rows are locked, others skipped)."""
    with platform_scope():
        expired = list(
            Job.objects.filter(status=JobStatus.RUNNING, lease_expires_at__lt=timezone.now())
            .order_by("lease_expires_at")
            .values_list("tenant_id", "pk")[:limit]
        )
        waiting = list(
            Job.objects.raw(
                "SELECT id, tenant_id FROM jobs_job WHERE status = 'queued' AND run_after <= now() "
                "AND (woken_at < run_after OR woken_at < now() - make_interval(secs => %s)) "
                "ORDER BY run_after LIMIT %s",
                [LOST_WAKE_UP_S, limit],
            )
        )
    for tenant_id, pk in expired:
        with tenant_scope(tenant_id):
            _take_back(pk)
    for row in waiting:
        with tenant_scope(row.tenant_id), transaction.atomic():
            job = (
                Job.objects.select_for_update(skip_locked=True)
                .filter(pk=row.pk, status=JobStatus.QUEUED)
                .first()
            )
            if job is not None:
                job.woken_at = timezone.now()
                job.save(update_fields=["woken_at"])
                wake(job)
    return len(expired) + len(waiting) + registry.run_sweeps()


def _take_back(pk: int) -> None:
    """Requeue a job whose worker is gone, or end it when its attempts are used up."""
    with transaction.atomic():
        job = (
            Job.objects.select_for_update(skip_locked=True)
            .filter(pk=pk, status=JobStatus.RUNNING, lease_expires_at__lt=timezone.now())
            .first()
        )
        if job is None:
            return
        log.warning(
            "job_worker_lost", job=pk, kind=job.kind, worker=job.worker, attempt=job.attempts
        )
        if job.cancel_requested_at is not None:
            job_end(job, JobStatus.CANCELLED, "cancelled", "Cancelled on request.")
        elif job.attempts >= job.max_attempts:
            job_end(
                job,
                JobStatus.FAILED,
                "worker_lost",
                f"The worker died {job.attempts} times while it worked on this, so it was given up. "
                "Try again; if it happens again, the file or question needs more memory than there is.",
            )
        else:
            job_requeue(job)

"""Find jobs that nobody works on any more: expired leases, due retries, lost wake-ups; and what else waits for a time."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from basics.texts import gettext as _
from basics.texts import ngettext
from jobs import registry
from jobs.heartbeat import worker_is_dead
from jobs.models import Job, JobStatus, Worker
from jobs.services import job_end, job_requeue, wake
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)
LOST_WAKE_UP_S = 60
WORKER_KEPT = timedelta(days=1)
# Asked twice a second by each worker command, and nearly always all that is asked.
_HOLDERS = """
SELECT worker, bool_or(lease_expires_at < statement_timestamp()) FROM jobs_job WHERE status = 'running' GROUP BY worker
"""


def sweep(limit: int = 100) -> int:
    """Bring stuck jobs on; returns how many. Safe to run in several processes at once (rows are locked, others skipped)."""
    orphaned = sweep_orphaned(limit)
    with platform_scope():
        waiting = list(
            Job.objects.raw(
                "SELECT id, tenant_id FROM jobs_job WHERE status = 'queued' AND run_after <= now() "
                "AND (woken_at < run_after OR woken_at < now() - make_interval(secs => %s)) "
                "ORDER BY run_after LIMIT %s",
                [LOST_WAKE_UP_S, limit],
            )
        )
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
    return orphaned + len(waiting) + registry.run_sweeps()


def workers_forget() -> int:
    """Forget workers that have not shown themselves for a day: each that was killed has left a row behind."""
    return Worker.objects.filter(seen_at__lt=timezone.now() - WORKER_KEPT).delete()[0]


def sweep_orphaned(limit: int = 100) -> int:
    """Take back the jobs whose worker is gone; returns how many.

    A worker of this machine that has died is seen at once; one of another machine, when its leases expire.
    """
    with platform_scope():
        with connection.cursor() as cursor:
            cursor.execute(_HOLDERS)
            holders = cursor.fetchall()
        dead = [name for name, _ in holders if worker_is_dead(name)]
        if not dead and not any(is_late for _, is_late in holders):
            return 0
        running = Job.objects.filter(status=JobStatus.RUNNING)
        gone = Q(lease_expires_at__lt=timezone.now()) | Q(worker__in=dead)
        found = list(running.filter(gone).order_by("lease_expires_at").values_list("tenant_id", "pk")[:limit])
    for tenant_id, pk in found:
        with tenant_scope(tenant_id):
            _take_back(pk, gone)
    return len(found)


def _take_back(pk: int, gone: Q) -> None:
    """Requeue a job whose worker is gone, or end it when workers die of the step that it is in."""
    with transaction.atomic():
        job = (
            Job.objects.select_for_update(skip_locked=True)
            .filter(gone, pk=pk, status=JobStatus.RUNNING)
            .first()
        )
        if job is None:
            return
        job.deaths += 1
        job.save(update_fields=["deaths"])
        log.warning(
            "job_worker_lost",
            job=pk,
            kind=job.kind,
            worker=job.worker,
            attempt=job.attempts,
            deaths=job.deaths,
        )
        if job.cancel_requested_at is not None:
            job_end(job, JobStatus.CANCELLED, "cancelled", _("Cancelled on request."))
        elif job.deaths >= _most_deaths(job):
            job_end(
                job,
                JobStatus.FAILED,
                "worker_lost",
                ngettext(
                    "The worker crashed in this step, so this job was given up. Try again; if it happens again, "
                    "the file or question needs more memory than the server has.",
                    "The worker crashed %(n)s times in a row in the same step, so this job was given up. Try "
                    "again; if it happens again, the file or question needs more memory than the server has.",
                    job.deaths,
                )
                % {"n": job.deaths},
            )
        else:
            job_requeue(job)


def _most_deaths(job: Job) -> int:
    try:
        return registry.get(job.kind).max_deaths
    except LookupError:  # of a release whose code is gone
        return registry.MAX_DEATHS

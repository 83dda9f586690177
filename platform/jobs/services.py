"""Enqueue and cancel jobs; end them in one place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django_q.tasks import async_task

from basics.errors import Conflict
from basics.metrics import JOBS_ENDED
from basics.texts import gettext as _
from jobs import registry
from jobs.broker import KeptBroker
from jobs.context import JobContext
from jobs.models import ACTIVE, Job, JobStatus
from jobs.notify import notify
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from toolloop.storable import text_storable

BACKOFF_S = (2, 10, 60, 300)


def job_enqueue(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    payload: dict[str, int | str],
    dedupe_key: str = "",
    topic: str = "",
    weight: int | None = None,
) -> Job:
    """Create a job and wake a worker when the current transaction commits.

    Args:
        payload: ids only; the handler reads everything else when it runs.
        dedupe_key: while a job of this kind and key is queued or running, that one is returned instead.
        topic: channel that is told about progress and the end, for example ``collection:5``.
        weight: bytes to be worked on, where that is known; see ``jobs.fairness``.

    Raises:
        LookupError: nothing runs this kind.
    """
    fields = _fields(tenant, actor, kind, payload, dedupe_key=dedupe_key, topic=topic, weight=weight)
    with transaction.atomic(savepoint=False):
        if not dedupe_key:
            job: Job = Job.objects.create(**fields)
        else:
            same = {"tenant": tenant, "kind": kind, "dedupe_key": dedupe_key}
            active = Job.objects.filter(**same, status__in=ACTIVE)
            if (found := active.first()) is not None:
                return found
            try:
                with transaction.atomic():
                    job = Job.objects.create(**fields)
            except IntegrityError:  # another transaction was first
                return active.get()
        wake(job)
    return job


def job_follow(
    ctx: JobContext | None, *, tenant: Tenant, actor: Actor, kind: str, payload: dict[str, int | str]
) -> list[Job]:
    """Have a job of the loop lane come after another one, which its caller ends in the current transaction.

    The worker does it at once, in the slot that becomes free: no entry of the queue, no claim. Elsewhere it is enqueued.

    Args:
        ctx: of the job that ends; None where no worker holds it.

    Returns:
        The job that the caller stores in this transaction, with its own rows (``rows_insert``); none if it is enqueued.

    Raises:
        LookupError: nothing runs this kind.
    """
    if ctx is None or not ctx.takes_following:
        job_enqueue(tenant=tenant, actor=actor, kind=kind, payload=payload)
        return []
    job = job_new(tenant=tenant, actor=actor, kind=kind, payload=payload)
    ctx.follow(job, timedelta(seconds=settings.JOB_LEASE_S))
    return [job]


def job_new(*, tenant: Tenant, actor: Actor, kind: str, payload: dict[str, int | str]) -> Job:
    """Return a job that isn't stored yet; whoever stores it wakes a worker in the same transaction: ``wake_with``.

    Raises:
        LookupError: nothing runs this kind.
    """
    return Job(**_fields(tenant, actor, kind, payload))


def _fields(
    tenant: Tenant,
    actor: Actor,
    kind: str,
    payload: dict[str, int | str],
    *,
    dedupe_key: str = "",
    topic: str = "",
    weight: int | None = None,
) -> dict[str, Any]:
    known = registry.get(kind)
    return {
        "tenant": tenant,
        "kind": kind,
        "payload": payload,
        "lane": known.lane,
        "max_attempts": known.max_attempts,
        "dedupe_key": dedupe_key,
        "topic": topic,
        "user_id": actor.user_id,
        "weight": weight,
        "woken_at": timezone.now(),
    }


def wake(job: Job) -> None:
    """Put an entry for the job into the queue underneath.

    On Postgres that is part of the current transaction; Redis is told after the commit (a lost message is found by the
    sweeper).
    """
    if settings.BROKER == "redis":
        transaction.on_commit(lambda: async_task(*_entry(job)))
    else:
        async_task(*_entry(job))


def wake_with(jobs: Sequence[Job]) -> list[tuple[str, list[str]]]:
    """Do what ``wake`` does for jobs that aren't stored yet, by statements that ``rows_insert`` sends with theirs.

    Returns:
        Each statement and its values; none where the queue is no table.
    """
    if settings.BROKER == "redis":
        for job in jobs:
            wake(job)
        return []
    broker = KeptBroker()
    for job in jobs:
        async_task(*_entry(job), broker=broker)
    return broker.kept


def _entry(job: Job) -> tuple[str, int, int]:
    return f"jobs.runner.run_{job.lane}", job.tenant_id, job.pk


def job_hasten(*, tenant: Tenant, kind: str, dedupe_key: str) -> None:
    """Have a job that waits for a later time start now, in the current transaction; harmless where there is none.

    One that is just being taken up is passed over.
    """
    rows = Job.objects.select_for_update(skip_locked=True).filter(
        tenant=tenant, kind=kind, dedupe_key=dedupe_key, status=JobStatus.QUEUED
    )
    if (job := rows.first()) is not None:
        job.run_after = job.woken_at = timezone.now()
        job.save(update_fields=["run_after", "woken_at"])
        wake(job)


def job_cancel(*, tenant: Tenant, actor: Actor, job: Job) -> Job:
    """Cancel a job: at once while it waits, at its next check while it runs.

    Raises:
        Conflict: it has ended already.
    """
    with transaction.atomic():
        row: Job = Job.objects.select_for_update().get(pk=job.pk, tenant=tenant)
        if row.status == JobStatus.QUEUED:
            job_end(row, JobStatus.CANCELLED, "cancelled", _("Cancelled before it started."))
        elif row.status == JobStatus.RUNNING:
            row.cancel_requested_at = timezone.now()
            row.save(update_fields=["cancel_requested_at"])
            notify(tenant.pk, f"job:{row.pk}", "cancel")
        else:
            raise Conflict(
                "job_ended", _("This job has already ended (%(status)s).") % {"status": row.status}
            )
    return row


def job_retry(*, tenant: Tenant, actor: Actor, job: Job) -> None:
    """Have a failed job's work done by a new one, with the application's own row as it was before.

    Args:
        actor: who asks; an operator's may act in any workspace.

    Raises:
        Conflict: it hasn't failed, or was retried already (``job_not_failed``); jobs of its kind are started again
            where they were started (``job_not_retryable``); or what the application says of its own row.
        Missing: what it was about is gone.
    """
    with tenant_scope(tenant.pk), transaction.atomic():
        row: Job = Job.objects.select_for_update().get(pk=job.pk, tenant=tenant)
        if row.status != JobStatus.FAILED or row.retried_at is not None:
            raise Conflict(
                "job_not_failed", _("This job isn't waiting for a retry: it was retried, or hasn't failed.")
            )
        try:
            kind = registry.get(row.kind)
        except LookupError:
            kind = None
        if kind is None or not kind.is_retryable:
            raise Conflict(
                "job_not_retryable",
                _("Jobs of this kind can't be retried here. Start it again in its workspace."),
            )
        if kind.on_retry is not None:
            kind.on_retry(tenant, actor, row)
        else:
            job_enqueue(
                tenant=tenant,
                actor=actor,
                kind=row.kind,
                payload=row.payload,
                dedupe_key=row.dedupe_key,
                topic=row.topic,
                weight=row.weight,
            )
        row.retried_at = timezone.now()
        row.save(update_fields=["retried_at"])
        audit_record(tenant=tenant, actor=actor, action="job.retry", object=row, data={"kind": row.kind})


def job_end(job: Job, status: str, code: str = "", message: str = "") -> None:
    """Give a job its terminal state and let the application's own row end with it, in the current transaction.

    Args:
        message: may quote what a file or a server said; what Postgres does not take is replaced.
    """
    job.status = status
    job.error_code, job.error_message = code, text_storable(message)
    job.finished_at, job.lease_expires_at = timezone.now(), None
    job.save(update_fields=["status", "error_code", "error_message", "finished_at", "lease_expires_at"])
    transaction.on_commit(lambda: JOBS_ENDED.add(job.kind, str(status)))
    if status != JobStatus.SUCCEEDED:
        try:
            on_end = registry.get(job.kind).on_end
        except LookupError:
            on_end = None
        if on_end is not None:
            on_end(job)
    if job.topic:
        notify(job.tenant_id, job.topic)


def job_requeue(job: Job, *, delay_s: float = 0, count_attempt: bool = True) -> None:
    """Put a job back into the queue, in the current transaction.

    Args:
        delay_s: seconds before it may start again; the sweeper wakes it then.
        count_attempt: False when the worker shut down, or a slice of the job was over: that was not its fault.
    """
    now = timezone.now()
    job.status, job.worker, job.lease_expires_at = JobStatus.QUEUED, "", None
    job.run_after = now + timedelta(seconds=delay_s)
    job.woken_at = now
    job.save(update_fields=["status", "worker", "lease_expires_at", "run_after", "woken_at"])
    if not count_attempt:
        Job.objects.filter(pk=job.pk).update(attempts=F("attempts") - 1)
    if delay_s <= 0:
        wake(job)

"""Background work as rows. The queue underneath only wakes a worker up; these rows are the truth."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from tenancy.fields import ToldCharField, ToldTextField
from tenancy.models import TenantModel


class JobStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (JobStatus.QUEUED, JobStatus.RUNNING)


class Job(TenantModel):
    """One piece of work; ``payload`` holds ids only.

    ``attempts`` is counted at each claim and, with ``worker``, fences what the job writes. Two counts can end a job:
    ``failures``, the errors its handler raised, and ``deaths``, the workers that died in a row while the same step was
    under way. A step that is finished for good sets ``deaths`` back to 0 (``JobContext.advanced``).

    While it runs, ``lease_expires_at`` is pushed forward by the worker's heartbeat; when it passes, another worker may
    take the job over (``worker`` then changes, and the old one finds out at its next heartbeat).
    """

    kind = models.CharField(max_length=60)
    payload = models.JSONField(default=dict)
    lane = models.CharField(max_length=4, default="cpu")
    status = models.CharField(max_length=10, choices=JobStatus.choices, default=JobStatus.QUEUED)
    dedupe_key = models.CharField(max_length=120, blank=True)
    topic = models.CharField(max_length=60, blank=True, help_text="Channel on which progress is published.")
    user_id = models.BigIntegerField(null=True, help_text="Id of the user on whose behalf it runs.")
    attempts = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    failures = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Errors raised by its handler."
    )
    deaths = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Workers that died in a row during the current step."
    )
    worker = models.CharField(max_length=80, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    weight = models.BigIntegerField(null=True, help_text="Bytes to process, if known.")
    worked_s = models.FloatField(default=0, help_text="Seconds worked in the cpu lane so far.")
    recent_s = models.FloatField(
        default=0, help_text="Seconds worked in the cpu lane recently, as of ``turn_at``."
    )
    turn_at = models.DateTimeField(null=True, help_text="When its last slice ended.")
    run_after = models.DateTimeField(db_default=Now())
    woken_at = models.DateTimeField(db_default=Now(), help_text="When the queue was last notified.")
    progress_current = models.BigIntegerField(default=0)
    progress_total = models.BigIntegerField(default=0)
    progress_message = ToldCharField(max_length=200, blank=True)
    cancel_requested_at = models.DateTimeField(null=True)
    waits_since = models.DateTimeField(
        null=True, help_text="Since when something the job needs hasn't responded."
    )
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldTextField(blank=True)
    retried_at = models.DateTimeField(
        null=True, help_text="When another job took over what this failed one was to do."
    )
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(status__in=JobStatus.values), name="job_status_known"),
            models.UniqueConstraint(
                fields=["tenant", "kind", "dedupe_key"],
                condition=models.Q(status__in=["queued", "running"]) & ~models.Q(dedupe_key=""),
                name="job_one_active_per_dedupe_key",
            ),
        ]
        indexes = [
            models.Index(
                fields=["status", "run_after"], name="job_queue", condition=models.Q(status="queued")
            ),
            models.Index(
                fields=["lease_expires_at"], name="job_leases", condition=models.Q(status="running")
            ),
            models.Index(fields=["tenant", "-created_at"], name="job_tenant_newest"),
            models.Index(fields=["tenant", "turn_at"], name="job_turns", condition=models.Q(lane="cpu")),
            models.Index(
                fields=["-finished_at"],
                name="job_failed",
                condition=models.Q(status="failed", retried_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk} ({self.status})"


class Worker(models.Model):
    """A worker command that is alive; ``manage.py doctor`` looks for a fresh ``seen_at``."""

    name = models.CharField(max_length=80, unique=True)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    processes = models.PositiveSmallIntegerField(default=1)
    version = models.CharField(max_length=40, blank=True, db_default="", help_text="Of the code it runs.")

    def __str__(self) -> str:
        return self.name

"""A run of the tool-calling loop and its journal: enough to show it, to stop it and to go on after a crash."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class RunStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING)


class Run(TenantModel):
    """One run. ``request`` is what it was started with (system prompt, history, tool names, limits), as JSON."""

    kind = models.CharField(max_length=40)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="runs")
    model = models.CharField(max_length=120, help_text="With its routing prefix.")
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    request = models.JSONField(default=dict)
    answer = models.TextField(blank=True)
    last_seq = models.BigIntegerField(default=0)
    stop_requested_at = models.DateTimeField(null=True)
    stop_reason = models.CharField(max_length=20, blank=True)
    limit_reached = models.CharField(max_length=30, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    is_retryable = models.BooleanField(default=False)
    usage = models.JSONField(default=dict)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=RunStatus.values), name="run_status_known"
            )
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="run_tenant_newest")]

    def __str__(self) -> str:
        return f"{self.kind} run #{self.pk} ({self.status})"


class RunEvent(TenantModel):
    """What a watcher must see, in order. ``seq`` is given by the one process that holds the run's job."""

    run = TenantForeignKey(Run, related_name="events")
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=20)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="run_event_seq")]

    def __str__(self) -> str:
        return f"{self.kind} {self.run_id}/{self.seq}"


class RunStep(TenantModel):
    """A finished model turn, with the provider's own form verbatim in ``turn["native"]``."""

    run = TenantForeignKey(Run, related_name="steps")
    index = models.PositiveIntegerField()
    turn = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="run_step_index")]

    def __str__(self) -> str:
        return f"step {self.index} of run {self.run_id}"


class ToolCallStatus(models.TextChoices):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    UNKNOWN = "unknown", "unknown (started, outcome lost)"


class ToolCall(TenantModel):
    """One tool call, written before it runs and after it ended."""

    run = TenantForeignKey(Run, related_name="tool_calls")
    step = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=100)
    arguments = models.JSONField(null=True)
    has_side_effects = models.BooleanField(
        default=False, help_text="Not run again when its outcome is unknown."
    )
    status = models.CharField(
        max_length=10, choices=ToolCallStatus.choices, default=ToolCallStatus.RUNNING
    )
    content = models.TextField(blank=True, help_text="What the model was told.")
    payload = models.JSONField(null=True, help_text="What stays with the application.")
    error_code = models.CharField(max_length=60, blank=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "call_id"], name="tool_call_once")
        ]
        indexes = [models.Index(fields=["tenant", "name", "-started_at"], name="tool_call_by_name")]

    def __str__(self) -> str:
        return f"{self.name} in run {self.run_id}"

"""A run of the tool-calling loop and its journal: enough to show it, to stop it and to go on after a crash."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.fields import SET_NULL, TenantForeignKey, ToldTextField
from tenancy.models import TenantModel


class RunStatus(models.TextChoices):
    QUEUED = "queued", gettext_lazy("Queued")
    RUNNING = "running", gettext_lazy("Running")
    PARKED = "parked", gettext_lazy("parked (waiting for a decision)")
    COMPLETED = "completed", gettext_lazy("Completed")
    STOPPED = "stopped", gettext_lazy("Stopped")
    FAILED = "failed", gettext_lazy("Failed")


ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PARKED)


class Run(TenantModel):
    """One run. ``request`` is what it was started with (system prompt, history, tool names, limits), as JSON."""

    kind = models.CharField(max_length=40)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="runs")
    model = models.CharField(max_length=120, help_text="Model with its provider prefix.")
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    request = models.JSONField(default=dict)
    answer = models.TextField(blank=True)
    last_seq = models.BigIntegerField(default=0)
    stop_requested_at = models.DateTimeField(null=True)
    stop_reason = models.CharField(max_length=20, blank=True)
    limit_reached = models.CharField(max_length=30, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldTextField(blank=True)
    is_retryable = models.BooleanField(default=False)
    usage = models.JSONField(default=dict)
    background = models.JSONField(
        default=dict,
        db_default={},
        help_text="The provider's id of an answer that it continues in the background, and the step it belongs to.",
    )
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    pruned_at = models.DateTimeField(null=True, help_text="When the retention rule removed its content.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(status__in=RunStatus.values), name="run_status_known")
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="run_tenant_newest"),
            models.Index(
                fields=["tenant", "finished_at"],
                name="run_to_prune",
                condition=models.Q(pruned_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} run #{self.pk} ({self.status})"


class RunEvent(TenantModel):
    """What a watcher must see, in order. ``seq`` is given by the one process that holds the run's job."""

    run = TenantForeignKey(Run, related_name="events", db_index=False)
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

    run = TenantForeignKey(Run, related_name="steps", db_index=False)
    index = models.PositiveIntegerField()
    turn = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="run_step_index")]

    def __str__(self) -> str:
        return f"step {self.index} of run {self.run_id}"


class ToolCallStatus(models.TextChoices):
    RUNNING = "running", gettext_lazy("Running")
    WAITING = "waiting", gettext_lazy("waiting for a decision")
    SUCCEEDED = "succeeded", gettext_lazy("Succeeded")
    FAILED = "failed", gettext_lazy("Failed")
    DENIED = "denied", gettext_lazy("Denied")
    UNKNOWN = "unknown", gettext_lazy("unknown (started, outcome lost)")
    STOPPED = "stopped", gettext_lazy("stopped (with the answer)")


UNENDED = (ToolCallStatus.RUNNING, ToolCallStatus.WAITING)


class CallDecision(models.TextChoices):
    ALLOW = "allow", gettext_lazy("allowed")
    ASK = "ask", gettext_lazy("asked (each call needs approval)")
    DENY = "deny", gettext_lazy("denied")


class CallPath(models.TextChoices):
    CHAT = "chat", gettext_lazy("Chat")
    JOB = "job", gettext_lazy("Job")
    CODE = "code", gettext_lazy("code (made by a tool or program)")
    REST = "rest", "REST"
    MCP = "mcp", "MCP"


class ToolCall(TenantModel):
    """One tool call, written before it runs and after it ended: the log that people read, and what a run resumes from."""

    run = TenantForeignKey(Run, related_name="tool_calls", db_index=False)
    user_id = models.BigIntegerField(
        null=True, help_text="Id of the run's user, kept when the user is deleted."
    )
    step = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    parent_call_id = models.CharField(
        max_length=200, blank=True, help_text="Call of the tool or program that made this call."
    )
    path = models.CharField(max_length=4, choices=CallPath.choices, blank=True)
    name = models.CharField(max_length=100)
    tool_version = models.CharField(max_length=64, blank=True)
    arguments = models.JSONField(null=True)
    arguments_masked = models.JSONField(
        null=True, help_text="Shown instead of arguments that contain secrets."
    )
    decision = models.CharField(
        max_length=5,
        choices=CallDecision.choices,
        blank=True,
        help_text="The policy's decision, if it was asked.",
    )
    rule_id = models.BigIntegerField(null=True, help_text="Id of the grant that decided.")
    decision_why = models.TextField(blank=True)
    has_side_effects = models.BooleanField(
        default=False, help_text="Not run again if its outcome is unknown."
    )
    status = models.CharField(max_length=10, choices=ToolCallStatus.choices, default=ToolCallStatus.RUNNING)
    content = models.TextField(blank=True, help_text="The result that the model received.")
    payload = models.JSONField(
        null=True, help_text="The part of the result that only the application receives."
    )
    result_size = models.PositiveIntegerField(
        null=True, help_text="Characters in the full output; the model may have received less."
    )
    cost_usd = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        null=True,
        help_text="Its share of the cost of the model turn that made it; empty: unknown, or not made by a model.",
    )
    error_code = models.CharField(max_length=60, blank=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step", "call_id"], name="tool_call_once")]
        indexes = [
            models.Index(fields=["tenant", "name", "-started_at"], name="tool_call_by_name"),
            models.Index(fields=["tenant", "-id"], name="tool_call_newest"),
            models.Index(fields=["tenant", "user_id", "-id"], name="tool_call_by_person"),
            models.Index(fields=["tenant", "started_at"], name="tool_call_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in run {self.run_id}"

    @property
    def arguments_shown(self) -> Any:
        """The arguments as anybody may see them who may see the call."""
        return self.arguments if self.arguments_masked is None else self.arguments_masked


class DecisionStatus(models.TextChoices):
    PENDING = "pending", gettext_lazy("Pending")
    APPROVED = "approved", gettext_lazy("Approved")
    REJECTED = "rejected", gettext_lazy("Rejected")
    ANSWERED = "answered", gettext_lazy("Answered")
    EXPIRED = "expired", gettext_lazy("Expired")
    CANCELLED = "cancelled", gettext_lazy("cancelled (the run ended)")


class ApproverKind(models.TextChoices):
    """Who decides about a call; see ``runs.approvals.deciders``."""

    SELF = "self", gettext_lazy("the requester")
    ROLE = "role", gettext_lazy("someone else with this role or higher")
    MEMBER = "member", gettext_lazy("one other person")


class PendingDecision(TenantModel):
    """What a parked run waits for, and what was decided. One call can wait several times, each time in a row of its own.

    ``name`` and ``arguments`` are those of the call that is decided about; ``call_id`` is the model's call, which is
    another one when a tool (a program, say) made the call.
    """

    class Kind(models.TextChoices):
        APPROVAL = "approval"
        EXTERNAL = "external", "external (answered from outside)"

    run = TenantForeignKey(Run, related_name="decisions", db_index=False)
    step = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=100)
    arguments = models.JSONField(null=True)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    reason = models.TextField(blank=True, help_text="The tool's message to the approver.")
    state = models.JSONField(null=True, help_text="What the tool gets back when it continues; opaque.")
    status = models.CharField(max_length=10, choices=DecisionStatus.choices, default=DecisionStatus.PENDING)
    approver_kind = models.CharField(
        max_length=6,
        choices=ApproverKind.choices,
        default=ApproverKind.SELF,
        help_text="Who decides; the requester is the run's user.",
    )
    approver = models.CharField(max_length=20, blank=True, help_text="The role, or the id of the person.")
    needs_reason = models.BooleanField(default=False, help_text="Rejecting requires a reason.")
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Member it was handed over to.",
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    edited_arguments = models.JSONField(null=True, help_text="Arguments that the call runs with instead.")
    decision_reason = models.TextField(blank=True, help_text="The reason that the model reads.")
    answer = models.TextField(blank=True, help_text="The call's result, given from outside.")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=DecisionStatus.values), name="decision_status_known"
            ),
            models.UniqueConstraint(
                fields=["run", "step", "call_id"],
                condition=models.Q(status="pending"),
                name="decision_one_pending_a_call",
            ),
            models.CheckConstraint(
                condition=models.Q(approver_kind="self", approver="")
                | models.Q(approver_kind__in=["role", "member"]) & ~models.Q(approver=""),
                name="decision_approver",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "step"], name="decision_of_run"),
            models.Index(
                fields=["tenant", "approver_kind", "approver"],
                name="decision_inbox",
                condition=models.Q(status="pending"),
            ),
            models.Index(fields=["tenant", "-id"], name="decision_newest"),
            models.Index(fields=["expires_at"], name="decision_expiry", condition=models.Q(status="pending")),
        ]

    def __str__(self) -> str:
        return f"{self.name} in run {self.run_id} ({self.status})"


class UsageRecord(TenantModel):
    """Tokens and money of one request to a model. Append-only, and it outlives its run: ids, no references.

    Written in the transaction of the step it paid for, so that a resumed run counts nothing twice.
    """

    append_only = True

    run_id = models.BigIntegerField(null=True)
    user_id = models.BigIntegerField(null=True)
    step = models.PositiveIntegerField(null=True, help_text="The model turn of the run that it paid for.")
    kind = models.CharField(max_length=30, help_text='What it was for; "turn" for a model turn.')
    provider = models.CharField(max_length=40)
    model = models.CharField(max_length=120)
    service_tier = models.CharField(
        max_length=40,
        blank=True,
        db_default="",
        help_text="The provider's service tier it was priced by; empty for the default.",
    )
    input_tokens = models.BigIntegerField(default=0, help_text="All input tokens, including cached ones.")
    cached_tokens = models.BigIntegerField(default=0, help_text="Input tokens read from the prompt cache.")
    cache_write_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0, help_text="Output tokens, including reasoning.")
    reasoning_tokens = models.BigIntegerField(default=0)
    cost_usd = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="Empty: the price is unknown."
    )
    charged_usd = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        null=True,
        help_text="What budgets count: the cost, or an estimate if the price is unknown.",
    )
    hold_id = models.BigIntegerField(null=True, help_text="Id of the BudgetHold that this settles.")
    duration_ms = models.PositiveIntegerField(
        null=True, help_text="Milliseconds from the request to the end of its answer."
    )
    attribution = models.JSONField(default=dict, help_text="On whose behalf, and for what.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run_id", "step"], condition=models.Q(kind="turn"), name="usage_one_a_turn"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-at"], name="usage_tenant_newest"),
            models.Index(fields=["tenant", "user_id", "-at"], name="usage_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.provider}/{self.model}"


class ChunkRead(TenantModel):
    """A passage of a document, or a document's file, that reached a run's model, once a run. Append-only, and it outlives both.

    Written with the result of the call that fetched it; ids and names, no references.
    """

    append_only = True

    run_id = models.BigIntegerField()
    user_id = models.BigIntegerField(null=True)
    chunk_id = models.BigIntegerField(null=True, help_text="Empty if lines of the file itself were read.")
    document_id = models.BigIntegerField()
    document_name = models.CharField(max_length=255)
    version = models.PositiveIntegerField(null=True, help_text="Version of the document.")
    collection_name = models.CharField(max_length=120, blank=True)
    tool = models.CharField(max_length=100)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "passage read"
        constraints = [
            models.UniqueConstraint(fields=["run_id", "chunk_id"], name="chunk_read_once_a_run"),
            models.UniqueConstraint(
                fields=["run_id", "document_id"],
                condition=models.Q(chunk_id=None),
                name="file_read_once_a_run",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="chunk_read_newest"),
            models.Index(fields=["tenant", "document_id", "-id"], name="chunk_read_of_document"),
            models.Index(fields=["tenant", "chunk_id", "-id"], name="chunk_read_of_chunk"),
            models.Index(fields=["tenant", "user_id", "-id"], name="chunk_read_by_person"),
        ]

    def __str__(self) -> str:
        what = "file" if self.chunk_id is None else f"chunk {self.chunk_id} of"
        return f"{what} {self.document_name} in run {self.run_id}"


class RunRetention(TenantModel):
    """How long a workspace keeps what was said in its runs; without a row the operator's default holds."""

    days = models.PositiveIntegerField(help_text="0 keeps it forever.")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="run_retention_one_a_tenant")]

    def __str__(self) -> str:
        return f"{self.days} days"

"""Generation as rows: a job, one item for each candidate row, and each call that was paid for."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.datasets.models.dataset import Dataset, DatasetRow, Difficulty, QuestionType
from tenancy.fields import SET_NULL, TenantForeignKey, ToldCharField, ToldJSONField
from tenancy.models import TenantModel


class GenerationState(models.TextChoices):
    QUEUED = "queued", gettext_lazy("Waiting")
    RUNNING = "running", gettext_lazy("Running")
    PAUSED = "paused", gettext_lazy("Paused")
    STOPPED = "stopped", gettext_lazy("Stopped")
    COMPLETED = "completed", gettext_lazy("Completed")
    FAILED = "failed", gettext_lazy("Failed")


JOB_ACTIVE = (GenerationState.QUEUED, GenerationState.RUNNING)


class GenerationJob(TenantModel):
    """A request for rows, and how far it is. What it costs stands here only for ended items; see ``job_spend``."""

    dataset = TenantForeignKey(Dataset, related_name="jobs")
    options = models.JSONField(help_text="See apps.datasets.generation.settings.Settings.")
    model = models.CharField(max_length=120, help_text="Model with its provider prefix.")
    state = models.CharField(max_length=9, choices=GenerationState.choices, default=GenerationState.QUEUED)
    reason = ToldCharField(max_length=300, blank=True, help_text="Why the job is waiting or has ended.")
    actor = models.JSONField(default=dict, help_text="Who requested it, as runs.actors stores it.")
    probe = models.PositiveIntegerField(
        default=0, help_text="Pause after this many finished items to estimate the rest; 0: don't pause."
    )
    estimate = models.JSONField(
        default=dict,
        help_text="Estimated total cost: low, middle, high in USD, and the number of items it is based on.",
    )
    budget_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    spent_usd = models.DecimalField(
        max_digits=14, decimal_places=8, default=0, help_text="USD spent on items that have ended."
    )
    wanted = models.PositiveIntegerField(default=0, help_text="Rows requested.")
    kept = models.PositiveIntegerField(default=0)
    dropped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    shortfall = ToldJSONField(
        default=list, told=("why",), help_text="Quotas that were not met: type, difficulty, missing, why."
    )
    manifest = models.JSONField(
        default=dict, help_text="Corpus fingerprint, collections and prompts when the job started."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=GenerationState.values), name="generation_job_state_known"
            )
        ]
        indexes = [models.Index(fields=["tenant", "-id"], name="generation_job_newest")]

    def __str__(self) -> str:
        return f"generation #{self.pk} ({self.state})"

    @property
    def is_batched(self) -> bool:
        """Tell whether its models are asked by batch; see ``Settings.delivery``."""
        return bool(self.options.get("delivery") == "batch")

    @property
    def topic(self) -> str:
        """Return the channel that is told when the job has moved; the name of its batches' owner as well."""
        return f"generation:{self.pk}"


class ItemState(models.TextChoices):
    """What is done next with an item; the last three are ends, and a spare waits for the one before it to be dropped."""

    SPARE = "spare", gettext_lazy("Spare")
    QUESTION = "question", gettext_lazy("Question")
    FILTER = "filter", pgettext_lazy("noun", "Filter")
    ANSWER = "answer", gettext_lazy("Answer")
    FOLLOW_UP = "follow_up", gettext_lazy("Follow-up")
    SYNTHESIS = "synthesis", gettext_lazy("Synthesis")
    JUDGE = "judge", gettext_lazy("Judge")
    REPAIR = "repair", pgettext_lazy("noun", "Repair")
    ASSEMBLE = "assemble", gettext_lazy("Assembly")
    KEPT = "kept", gettext_lazy("Kept")
    DROPPED = "dropped", gettext_lazy("Dropped")
    FAILED = "failed", gettext_lazy("Failed")


ITEM_OPEN = tuple(s for s in ItemState if s not in ("spare", "kept", "dropped", "failed"))


class GenerationItem(TenantModel):
    """One candidate for a row of a quota. A slot whose item is dropped gets another one in the next round.

    While ``driver`` names a job's attempt that still runs, the item is that worker's; the lease is the job's.
    """

    job = TenantForeignKey(GenerationJob, related_name="items", db_index=False)
    slot = models.PositiveIntegerField()
    round = models.PositiveSmallIntegerField(default=0)
    type = models.CharField(max_length=14, choices=QuestionType.choices)
    difficulty = models.CharField(max_length=6, choices=Difficulty.choices)
    chunks = ArrayField(models.BigIntegerField(), default=list)
    state = models.CharField(max_length=9, choices=ItemState.choices, default=ItemState.QUESTION)
    reason = ToldCharField(max_length=300, blank=True, help_text="Why it was dropped or failed.")
    data = models.JSONField(default=dict, help_text="Results of its stages so far.")
    repairs = models.PositiveSmallIntegerField(default=0)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Failed attempts.")
    deaths = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Workers that died in a row while the item made no progress."
    )
    not_before = models.DateTimeField(null=True, help_text="Earliest time of the next attempt.")
    driver = models.CharField(max_length=40, blank=True, help_text="Job and attempt that are working on it.")
    reserved_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    spent_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    row = TenantForeignKey(DatasetRow, db_on_delete=SET_NULL, null=True, related_name="+")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "slot", "round"], name="generation_item_once")]
        indexes = [
            models.Index(fields=["job", "state", "id"], name="generation_item_state"),
            models.Index(fields=["job", "-updated_at"], name="generation_item_latest"),
        ]

    def __str__(self) -> str:
        return f"item {self.slot}.{self.round} of generation {self.job_id} ({self.state})"


class PaidCall(TenantModel):
    """A request to a model that was answered. Written before anything depends on the answer, read instead of asking
    again. Append-only.
    """

    append_only = True

    job = TenantForeignKey(GenerationJob, related_name="paid_calls", db_index=False)
    item = TenantForeignKey(GenerationItem, related_name="paid_calls", db_index=False)
    stage = models.CharField(max_length=9, choices=ItemState.choices)
    attempt = models.PositiveSmallIntegerField(help_text="0, or the number of the repair it belongs to.")
    step = models.PositiveSmallIntegerField(help_text="Turn in the stage's loop.")
    turn = models.JSONField(help_text="The model's turn, as the tool loop stores it.")
    results = models.JSONField(default=list, help_text="Results of the tools that the previous turn called.")
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="Empty: the price is unknown."
    )
    duration_ms = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "stage", "attempt", "step"], name="paid_call_once")
        ]
        indexes = [models.Index(fields=["job", "stage"], name="paid_call_stage")]

    def __str__(self) -> str:
        return f"{self.stage} {self.attempt}.{self.step} of item {self.item_id}"

"""Experiments: arms over the rows of a dataset version, and one trial per arm, row and repeat."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.datasets.models import Dataset, DatasetVersion, RowContent
from batches.delivery import Delivery
from jobs.models import Job
from runs.models import Run
from tenancy.fields import RESTRICT, SET_NULL, TenantForeignKey, ToldCharField, ToldTextField
from tenancy.models import TenantModel


class ExperimentState(models.TextChoices):
    RUNNING = "running", gettext_lazy("Running")
    PAUSED = "paused", gettext_lazy("Paused")
    STOPPED = "stopped", gettext_lazy("Stopped")
    COMPLETED = "completed", gettext_lazy("Completed")


EXPERIMENT_ACTIVE = (ExperimentState.RUNNING, ExperimentState.PAUSED)


class Experiment(TenantModel):
    """What is measured: which rows, which arms, which scorers, how often."""

    name = models.CharField(max_length=120)
    version = TenantForeignKey(
        DatasetVersion,
        db_on_delete=RESTRICT,
        related_name="+",
        help_text="Dataset version whose rows are asked.",
    )
    dataset = TenantForeignKey(Dataset, related_name="+", help_text="Dataset of the version.")
    split = models.CharField(max_length=10, blank=True, help_text="Empty: all rows.")
    repeats = models.PositiveSmallIntegerField(default=1)
    judge_repeats = models.PositiveSmallIntegerField(
        default=1, help_text="How often a model judges each answer; the mean counts."
    )
    stops_dominated = models.BooleanField(
        default=False, help_text="Stop an arm once another is shown to answer better at no higher cost."
    )
    scorers = models.JSONField(help_text="List of kind and options; see apps.evaluations.scorers.registry.")
    concurrency = models.PositiveSmallIntegerField(default=4, help_text="Trials run in parallel.")
    delivery = models.CharField(
        max_length=5,
        choices=Delivery.choices,
        default=Delivery.NOW,
        help_text="How requests are sent to models.",
    )
    budget_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    budget_job = models.BigIntegerField(
        null=True, help_text="Id of the job whose budget pays for all its trials; see budgets."
    )
    # Kept with each trial, under the lock that ends it: what goes on is decided without reading all trials.
    spent_usd = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        default=0,
        help_text="Cost of answers and judges in USD, where known.",
    )
    dearest_usd = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        null=True,
        help_text="Cost in USD of the most expensive trial so far.",
    )
    ended_count = models.PositiveIntegerField(default=0, help_text="Trials that are done or have failed.")
    next_look = models.PositiveIntegerField(
        default=0, help_text="Number of ended trials at which to look for losing arms next."
    )
    state = models.CharField(max_length=9, choices=ExperimentState.choices, default=ExperimentState.RUNNING)
    reason = ToldCharField(max_length=300, blank=True, help_text="Why it is paused or was stopped.")
    corpus = models.CharField(
        max_length=64, blank=True, help_text="Fingerprint of the documents its arms search."
    )
    actor = models.JSONField(default=dict, help_text="Who requested it, as runs.actors stores it.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=ExperimentState.values), name="experiment_state_known"
            ),
            models.CheckConstraint(condition=models.Q(repeats__gte=1), name="experiment_repeats_positive"),
            models.CheckConstraint(
                condition=models.Q(delivery__in=Delivery.values), name="experiment_delivery_known"
            ),
            models.CheckConstraint(
                condition=models.Q(judge_repeats__gte=1), name="experiment_judge_repeats_positive"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-id"], name="experiment_newest")]

    def __str__(self) -> str:
        return self.name

    @property
    def topic(self) -> str:
        """Return the channel that is told of it, which is the owner of its batches as well."""
        return f"experiment:{self.pk}"

    @property
    def is_batched(self) -> bool:
        """Tell whether its models are asked by batch."""
        return self.delivery == Delivery.BATCH


class Arm(TenantModel):
    """One of the things that an experiment compares: a target with its settings."""

    experiment = TenantForeignKey(Experiment, related_name="arms", db_index=False)
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=160)
    target = models.JSONField(help_text="See apps.evaluations.arms.targets.")
    stopped_at = models.DateTimeField(
        null=True, help_text="When it was stopped early because another arm did better."
    )
    stop_reason = ToldCharField(max_length=400, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "position"], name="arm_position")]

    def __str__(self) -> str:
        return self.name


class TrialState(models.TextChoices):
    """What is done next with a trial; done, failed and skipped are ends, stopped waits for its experiment to go on.

    One that is away waits for answers that come with a batch, and has no job meanwhile.
    """

    PENDING = "pending", gettext_lazy("Waiting")
    ANSWERING = "answering", gettext_lazy("Answering")
    SCORING = "scoring", gettext_lazy("Scoring")
    AWAY = "away", gettext_lazy("With the provider")
    DONE = "done", gettext_lazy("Done")
    FAILED = "failed", gettext_lazy("Failed")
    STOPPED = "stopped", gettext_lazy("Stopped")
    SKIPPED = "skipped", gettext_lazy("Skipped because its arm was stopped early")


TRIAL_ENDED = (TrialState.DONE, TrialState.FAILED, TrialState.SKIPPED)


class Trial(TenantModel):
    """One row asked of one arm once. Its job has it while one is set."""

    experiment = TenantForeignKey(Experiment, related_name="trials", db_index=False)
    arm = TenantForeignKey(Arm, related_name="trials", db_index=False)
    row_ref = models.BigIntegerField(help_text="The row's id, the same in every version.")
    position = models.PositiveIntegerField(help_text="Position of the row in the version.")
    content = TenantForeignKey(RowContent, db_on_delete=RESTRICT, related_name="+")
    repeat = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=9, choices=TrialState.choices, default=TrialState.PENDING)
    answer = models.TextField(blank=True)
    outcome = models.JSONField(
        default=dict, help_text="Passages, citations, calls, labels; see apps.evaluations.results.outcomes."
    )
    error = ToldCharField(max_length=500, blank=True, help_text="Why there is no answer.")
    latency_ms = models.FloatField(null=True)
    cost_usd = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="Empty: the price is unknown."
    )
    judge_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    judge_asked = models.PositiveIntegerField(
        default=0, help_text="Judge requests, including those answered from the cache."
    )
    judge_cached = models.PositiveIntegerField(
        default=0, help_text="Judge requests answered from the cache, at no cost."
    )
    answered_at = models.DateTimeField(
        null=True,
        help_text="When it was answered, in commit order; of two trials, the later one has the pair judged.",
    )
    job = TenantForeignKey(Job, db_on_delete=SET_NULL, null=True, related_name="+")
    run = TenantForeignKey(Run, db_on_delete=SET_NULL, null=True, related_name="+")
    waits_for = ArrayField(
        models.CharField(max_length=39), default=list, help_text="Keys of the batch lines it is waiting for."
    )
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["arm", "row_ref", "repeat"], name="trial_once"),
            models.CheckConstraint(condition=models.Q(state__in=TrialState.values), name="trial_state_known"),
        ]
        indexes = [
            models.Index(fields=["experiment", "state", "id"], name="trial_state"),
            models.Index(fields=["arm", "position", "repeat"], name="trial_order"),
            models.Index(
                fields=["tenant", "experiment", "repeat", "position", "arm"],
                condition=models.Q(state="pending"),
                name="trial_next",
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.row_ref}.{self.repeat} of arm {self.arm_id} ({self.state})"


class KeptScores(TenantModel):
    """What an arm of a completed experiment scored, packed: comparisons read this and not a score for each row. Append-only."""

    append_only = True

    arm = TenantForeignKey(Arm, related_name="kept_scores", unique=True)
    data = models.BinaryField(help_text="See apps.evaluations.results.series.pack.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = verbose_name_plural = "kept scores"

    def __str__(self) -> str:
        return f"scores of arm {self.arm_id}"


class Preference(TenantModel):
    """Which of two arms' answers to a row a judge prefers, asked in both orders. Append-only; empty: it could not tell."""

    append_only = True

    class Better(models.TextChoices):
        A = "a", "A"
        B = "b", "B"
        TIE = "tie", gettext_lazy("Tie")

    experiment = TenantForeignKey(Experiment, related_name="preferences", db_index=False)
    a = TenantForeignKey(
        Trial, related_name="+", help_text="Trial of the arm that comes first.", db_index=False
    )
    b = TenantForeignKey(Trial, related_name="+")
    better = models.CharField(max_length=3, choices=Better.choices, blank=True)
    is_flip = models.BooleanField(
        default=False, help_text="The verdict depended on the order of the answers."
    )
    reason = ToldTextField(blank=True)
    author = models.CharField(max_length=300, help_text="The judge and its version.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["a", "b", "author"], name="preference_once")]
        indexes = [models.Index(fields=["experiment", "id"], name="preference_of_experiment")]

    def __str__(self) -> str:
        return f"{self.better or 'unscored'} of trials {self.a_id} and {self.b_id}"


class ScoreCache(TenantModel):
    """An answer of a judge's model, by everything that it depends on. Append-only."""

    append_only = True

    key = models.CharField(max_length=64, help_text="SHA-256 of the judge's prompt, form, model and input.")
    model = models.CharField(max_length=120)
    value = models.JSONField(help_text="The judge's answer, checked.")
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "key"], name="score_cache_once")]

    def __str__(self) -> str:
        return self.key


class Baseline(TenantModel):
    """Which arm a gate compares with. The newest of a name counts; the older ones are its history. Append-only."""

    append_only = True

    dataset = TenantForeignKey(Dataset, related_name="+", db_index=False)
    name = models.SlugField(max_length=60, default="main")
    arm = TenantForeignKey(Arm, related_name="+")
    note = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["dataset", "name", "-id"], name="baseline_newest")]

    def __str__(self) -> str:
        return f"{self.name} of dataset {self.dataset_id}"

"""Scores of live answers: which answers of conversations are sampled, and what their scorers gave."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.conversations.models import Assistant, Turn
from apps.evaluations.models.score import ScoreAuthor
from jobs.models import Job
from tenancy.fields import SET_NULL, TenantForeignKey, ToldCharField, ToldTextField
from tenancy.models import TenantModel


class SamplingRule(TenantModel):
    """Which live answers are scored, by what, and what that may cost in a month."""

    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    rate = models.FloatField(help_text="Share of answers that are scored, 0 to 1.")
    takes_doubtful = models.BooleanField(
        default=False, help_text="Also score every answer without a source or with an unsupported sentence."
    )
    assistant = TenantForeignKey(
        Assistant,
        null=True,
        related_name="+",
        help_text="Only score this assistant's answers; empty: all answers.",
    )
    scorers = models.JSONField(help_text="As in an experiment, without scorers that need a reference answer.")
    budget_usd = models.DecimalField(max_digits=12, decimal_places=6, help_text="USD per month.")
    actor = models.JSONField(default=dict, help_text="Who requested it, as runs.actors stores it.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(rate__gte=0, rate__lte=1), name="sampling_rate_range")
        ]
        indexes = [models.Index(fields=["tenant", "is_active"], name="sampling_rule_active")]

    def __str__(self) -> str:
        return self.name


class SampleState(models.TextChoices):
    WAITING = "waiting", gettext_lazy("Waiting")
    DONE = "done", gettext_lazy("Scored")
    FAILED = "failed", gettext_lazy("Failed")
    SKIPPED = "skipped", gettext_lazy("Skipped")


class LiveSample(TenantModel):
    """An answer that a rule chose. It keeps no text: that stays with the conversation."""

    rule = TenantForeignKey(SamplingRule, related_name="samples", db_index=False)
    turn = TenantForeignKey(Turn, related_name="+")
    is_doubtful = models.BooleanField(
        default=False, help_text="Chosen because the answer is doubtful, not by the sampling rate."
    )
    state = models.CharField(max_length=7, choices=SampleState.choices, default=SampleState.WAITING)
    error = ToldCharField(max_length=500, blank=True)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    job = TenantForeignKey(Job, db_on_delete=SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "turn"], name="live_sample_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=SampleState.values), name="live_sample_state_known"
            ),
        ]
        indexes = [models.Index(fields=["rule", "-created_at"], name="live_sample_newest")]

    def __str__(self) -> str:
        return f"sample of turn {self.turn_id} ({self.state})"


class LiveScore(TenantModel):
    """One score of a sampled answer. Append-only; an empty value is "unscored"."""

    append_only = True

    sample = TenantForeignKey(LiveSample, related_name="scores", db_index=False)
    name = models.CharField(max_length=60)
    value = models.FloatField(null=True, help_text="0 to 1; empty: unscored.")
    author_kind = models.CharField(max_length=6, choices=ScoreAuthor.choices)
    author = models.CharField(max_length=300)
    reason = ToldTextField(blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sample", "name", "author"], name="live_score_once"),
            models.CheckConstraint(
                condition=models.Q(value__isnull=True) | models.Q(value__gte=0, value__lte=1),
                name="live_score_value_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of sample {self.sample_id} by {self.author}"

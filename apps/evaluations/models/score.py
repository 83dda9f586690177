"""Scores: immutable, each with its author."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.evaluations.models.annotation import Assignment
from apps.evaluations.models.experiment import Experiment, Trial
from apps.evaluations.models.rubric import RubricVersion
from tenancy.fields import SET_NULL, TenantForeignKey, ToldTextField
from tenancy.models import TenantModel


class ScoreAuthor(models.TextChoices):
    RULE = "rule", gettext_lazy("Rule")
    JUDGE = "judge", gettext_lazy("Judge")
    PERSON = "person", gettext_lazy("Person")


class Score(TenantModel):
    """One score of one trial. Append-only; an empty value is "unscored", and the reason says why."""

    append_only = True

    trial = TenantForeignKey(Trial, related_name="scores", db_index=False)
    name = models.CharField(max_length=60)
    value = models.FloatField(null=True, help_text="0 to 1; empty: unscored.")
    level = models.FloatField(null=True, help_text="On the scorer's scale, 1 to 5.")
    reason = ToldTextField(blank=True)
    evidence = models.TextField(blank=True)
    details = models.JSONField(default=dict)
    author_kind = models.CharField(max_length=6, choices=ScoreAuthor.choices)
    author = models.CharField(max_length=300, help_text="Scorer and its version, or person:<user id>.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    rubric_version = TenantForeignKey(RubricVersion, db_on_delete=SET_NULL, null=True, related_name="+")
    assignment = TenantForeignKey(Assignment, db_on_delete=SET_NULL, null=True, related_name="scores")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "name", "author"], name="score_once"),
            models.CheckConstraint(
                condition=models.Q(value__isnull=True) | models.Q(value__gte=0, value__lte=1),
                name="score_value_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of trial {self.trial_id} by {self.author}"


class JudgeCalibration(TenantModel):
    """How a judge's score is read on the scale of people, as they graded up to one moment. Append-only; the newest counts."""

    append_only = True

    rubric_version = TenantForeignKey(RubricVersion, related_name="+", db_index=False)
    name = models.CharField(max_length=60, help_text="Name of the score.")
    author = models.CharField(max_length=300, help_text="The judge and its version.")
    number = models.PositiveIntegerField()
    curve = models.JSONField(help_text="See apps.evaluations.statistics.calibration.Band.")
    n = models.PositiveIntegerField(help_text="Answers graded by both the judge and people.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rubric_version", "name", "author", "number"], name="judge_calibration_number"
            )
        ]

    def __str__(self) -> str:
        return f"calibration {self.number} of {self.name} by {self.author}"


class JudgeCheck(TenantModel):
    """What a judge gave the gold answers of its rubric at one moment, and whether it has drifted. Append-only."""

    append_only = True

    rubric_version = TenantForeignKey(RubricVersion, related_name="+", db_index=False)
    experiment = TenantForeignKey(
        Experiment,
        related_name="judge_checks",
        help_text="The experiment it was made for, before its start.",
        db_index=False,
    )
    author = models.CharField(max_length=300, help_text="The judge and its version.")
    levels = models.JSONField(help_text="Gold item -> score -> level, null where unscored.")
    findings = models.JSONField(help_text="See apps.evaluations.judges.drift.DriftFinding.")
    is_drifted = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "author"], name="judge_check_once")]
        indexes = [models.Index(fields=["rubric_version", "author", "id"], name="judge_check_of_judge")]

    def __str__(self) -> str:
        return f"check of {self.author} before experiment {self.experiment_id}"

"""Queues in which people grade answers without seeing what others, or judges, gave."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.evaluations.models.experiment import Experiment, Trial
from apps.evaluations.models.rubric import RubricVersion
from tenancy.fields import RESTRICT, SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class AnnotationQueue(TenantModel):
    """Answers that people grade by a rubric, each as many times as ``reviews`` says."""

    name = models.CharField(max_length=120)
    experiment = TenantForeignKey(Experiment, db_on_delete=SET_NULL, null=True, related_name="+")
    rubric_version = TenantForeignKey(
        RubricVersion, db_on_delete=RESTRICT, related_name="+", help_text="The rubric that people grade by."
    )
    reviews = models.PositiveSmallIntegerField(default=2, help_text="People per answer.")
    assignees = models.JSONField(
        default=list, help_text="Ids of the people who grade; empty: everyone who can grade."
    )
    instructions = models.TextField(blank=True, help_text="Instructions shown next to the rubric.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(reviews__gte=1), name="annotation_reviews_positive")
        ]

    def __str__(self) -> str:
        return self.name


class AnnotationItem(TenantModel):
    """An answer in a queue. Judges' disagreement decides about its place."""

    queue = TenantForeignKey(AnnotationQueue, related_name="items", db_index=False)
    trial = TenantForeignKey(Trial, related_name="+")
    position = models.PositiveIntegerField()
    gold = models.JSONField(
        default=dict,
        help_text="Levels known to be correct, by score, used to check graders; empty: none.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "trial"], name="annotation_item_once"),
            models.UniqueConstraint(fields=["queue", "position"], name="annotation_item_position"),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of queue {self.queue_id}"


class AssignmentState(models.TextChoices):
    OPEN = "open", pgettext_lazy("state", "Open")
    DONE = "done", gettext_lazy("Done")
    SKIPPED = "skipped", gettext_lazy("Skipped")


class Assignment(TenantModel):
    """An answer and the person who grades it; taken when the person opens the next one."""

    item = TenantForeignKey(AnnotationItem, related_name="assignments", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    state = models.CharField(max_length=7, choices=AssignmentState.choices, default=AssignmentState.OPEN)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "user"], name="assignment_one_a_person")]
        indexes = [models.Index(fields=["user", "state"], name="assignment_of_person")]

    def __str__(self) -> str:
        return f"{self.user_id} grades item {self.item_id}"

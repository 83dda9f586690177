"""What is found and said about the rows that an arm fails: groups that are alike, and people's tags."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.evaluations.models.experiment import Arm, Trial
from jobs.models import Job
from tenancy.fields import SET_NULL, TenantForeignKey, ToldCharField
from tenancy.models import TenantModel


class FailureGroups(TenantModel):
    """Failing rows of an arm in groups that are alike, one page of the list at a time, as its last job found them."""

    arm = TenantForeignKey(Arm, related_name="failure_groups", db_index=False)
    page = models.PositiveIntegerField(default=1)
    key = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 of the embedder and the texts it compared."
    )
    groups = models.JSONField(
        default=list, help_text="Lists of row ids: largest group first, most typical row first."
    )
    problem = ToldCharField(max_length=500, blank=True, help_text="Why the last job found nothing.")
    job = TenantForeignKey(Job, db_on_delete=SET_NULL, null=True, related_name="+")
    actor = models.JSONField(default=dict, help_text="Who requested it last, as runs.actors stores it.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    made_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = verbose_name_plural = "failure groups"
        constraints = [models.UniqueConstraint(fields=["arm", "page"], name="failure_groups_of_page")]

    def __str__(self) -> str:
        return f"groups of page {self.page} of arm {self.arm_id}"


class FailureTag(TenantModel):
    """A short name that a person gave to a failing answer."""

    trial = TenantForeignKey(Trial, related_name="failure_tags", db_index=False)
    name = models.CharField(max_length=40, help_text="In lower case.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "name"], name="failure_tag_once")]
        indexes = [models.Index(fields=["tenant", "name"], name="failure_tag_names")]

    def __str__(self) -> str:
        return f"{self.name} of trial {self.trial_id}"

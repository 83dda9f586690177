"""Rubrics of a workspace, in versions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


class Rubric(TenantModel):
    """What answers are graded by. What it asks is in its versions."""

    slug = models.SlugField(max_length=40)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="rubric_one_per_slug")]

    def __str__(self) -> str:
        return self.name


class RubricVersion(TenantModel):
    """The criteria of a rubric, once and for all. Append-only: scores name the version that they were given by."""

    append_only = True

    rubric = TenantForeignKey(Rubric, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    criteria = models.JSONField(help_text="See apps.datasets.records.rubric.Criterion.")
    note = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubric_version_number")]

    def __str__(self) -> str:
        return f"version {self.number} of rubric {self.rubric_id}"

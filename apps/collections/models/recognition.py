"""Text recognition (OCR) in a workspace: whether, in which languages, and how much processor time it may cost."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from tenancy.models import TenantModel


class Recognition(TenantModel):
    """A workspace's rules for reading scans, and what it has used in the month that is noted."""

    is_on = models.BooleanField(default=True, db_default=True)
    languages = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        help_text="Tesseract language codes joined with +; empty: the included models (English, Chinese).",
    )
    cpu_seconds = models.PositiveIntegerField(
        null=True, help_text="CPU seconds per month; empty: the server's default."
    )
    used_seconds = models.FloatField(default=0, db_default=0)
    used_month = models.DateField(null=True, help_text="First day of the month of ``used_seconds``.")
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="recognition_once")]

    def __str__(self) -> str:
        return f"text recognition of tenant {self.tenant_id}"

"""A picture that a tool returned: it belongs to the run, and goes with it."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from runs.models import Run
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


class Picture(TenantModel):
    """A picture as it is shown: written anew from its pixels, so that nothing else of the tool's file is in it.

    Its bytes are in the row: whatever deletes, exports or backs up the run has them with it (decision 211).
    """

    run = TenantForeignKey(Run, related_name="pictures", db_index=False)
    step = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200, help_text="The tool call that returned it.")
    index = models.PositiveSmallIntegerField(help_text="Its place among the call's pictures, from 0.")
    name = models.CharField(
        max_length=200, blank=True, help_text="What the tool calls it; shown as alternative text."
    )
    media_type = models.CharField(max_length=20)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    size = models.PositiveIntegerField(help_text="In bytes.")
    sha256 = models.CharField(max_length=64, help_text="Of the bytes, in hex.")
    content = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "call_id", "index"], name="picture_place"),
        ]

    def __str__(self) -> str:
        return f"picture {self.pk} of run {self.run_id}"

"""Vectors of tools' texts, made in the background, for search by meaning."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from tenancy.models import TenantModel


class ToolVector(TenantModel):
    """What one text about a tool means to one embedder; it says nothing of which tool that is."""

    digest = models.BinaryField(max_length=32, help_text="SHA-256 of the embedder's space and the text.")
    vector = models.BinaryField(help_text="Half-precision numbers, little-endian.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "digest"], name="tool_vector_once")]

    def __str__(self) -> str:
        return f"tool vector {bytes(self.digest).hex()[:12]}"

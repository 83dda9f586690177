"""Embedders that the operator has installed beside the built-in one."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class InstalledEmbedder(models.Model):
    """A sentence model in a folder of the server, as it was when it was checked. Shared by all tenants: it holds no content."""

    name = models.CharField(max_length=60, unique=True, help_text="Selected as local/<name>.")
    folder = models.CharField(
        max_length=1000, help_text="Folder of the model, the same path on every machine."
    )
    options = models.JSONField(
        help_text="How texts become vectors: file, pooling, prefixes, maximum text length."
    )
    digests = models.JSONField(
        help_text="SHA-256 of each file that affects the vectors, by its name in the folder."
    )
    dimensions = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=80)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"local/{self.name}"

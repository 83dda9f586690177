"""What the edge counts and keeps for all processes together."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class AttemptWindow(models.Model):
    """When something was last tried, for a limit on it (``web.windows``); of no workspace, because nobody is known yet.

    Unlogged: an attempt waits for no disk; after a crash of the database all windows are empty.
    """

    key = models.CharField(
        max_length=64, primary_key=True, help_text="Keyed hash of what the limit applies to."
    )
    taken = ArrayField(models.DateTimeField(), help_text="Times of the attempts, oldest first.")
    forget_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key[:12]


class SharedValue(models.Model):
    """A value of Django's cache (``web.shared_cache``). Unlogged, as ``AttemptWindow`` is."""

    key = models.CharField(max_length=64, primary_key=True, help_text="Keyed hash of the cache key.")
    value = models.JSONField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key[:12]

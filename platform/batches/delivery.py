"""When models answer, and for how much: the choice that products with batches offer."""

from __future__ import annotations

from django.db import models


class Delivery(models.TextChoices):
    NOW = "now", "Now, at the full price"
    BATCH = "batch", "Within a day, at half the price"

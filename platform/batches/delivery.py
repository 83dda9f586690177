"""When models answer, and for how much: the choice that products with batches offer."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy


class Delivery(models.TextChoices):
    NOW = "now", gettext_lazy("Now, at the full price")
    BATCH = "batch", gettext_lazy("Within a day, at half the price")

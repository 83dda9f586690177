"""What people think of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.conversations.models.conversation import Turn
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor


class FeedbackQuerySet(TenantQuerySet["Feedback"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the actor's own, and everybody's to those who may read the audit log: its form says so."""
        rows = super().visible_to(actor)
        if actor.can("audit.read"):
            return rows
        return rows.filter(user_id=actor.user_id, user_id__isnull=False)


class Feedback(TenantModel):
    """What a person thinks of an answer."""

    class Verdict(models.TextChoices):
        GOOD = "good"
        BAD = "bad"

    turn = TenantForeignKey(Turn, related_name="feedback", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=4, choices=Verdict.choices)
    reason = models.CharField(max_length=40, blank=True, help_text="Code of one of the offered reasons.")
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    objects = FeedbackQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "user"], name="feedback_one_a_person")]

    def __str__(self) -> str:
        return f"{self.verdict} for turn {self.turn_id}"

"""Questions that wait for the answer under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

from apps.conversations.models.conversation import Conversation
from tenancy.fields import TenantForeignKey, ToldTextField
from tenancy.models import TenantModel

if TYPE_CHECKING:
    pass


class QueuedQuestion(TenantModel):
    """A question that was sent while an answer was being written; it is asked when that has ended."""

    conversation = TenantForeignKey(Conversation, related_name="queued", db_index=False)
    text = models.TextField()
    model = models.CharField(max_length=120, blank=True)
    client_id = models.UUIDField()
    request = models.JSONField(
        help_text="Who asks, in the form of a run's request, and the ids of the attached files."
    )
    problem = ToldTextField(blank=True, help_text="Why it wasn't asked when its turn came.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "client_id"], name="queued_question_client_id")
        ]

    def __str__(self) -> str:
        return f"queued question of conversation {self.conversation_id}"

"""Links to conversations, and who has opened them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.conversations.models.conversation import Conversation
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel

if TYPE_CHECKING:
    pass


class ConversationShare(TenantModel):
    """A snapshot of a conversation that members of the workspace can open by its link.

    Sources are shown to each reader as far as they may see them at the time of reading.
    """

    conversation = TenantForeignKey(Conversation, related_name="shares")
    key = models.UUIDField(unique=True, help_text="Random key in the link.")
    title = models.CharField(max_length=200, blank=True)
    snapshot = models.JSONField(help_text="The turns when they were shared: question, answer, citations.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"share of conversation {self.conversation_id}"


class ShareReader(TenantModel):
    """Who has opened a share."""

    share = TenantForeignKey(ConversationShare, related_name="readers", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    first_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["share", "user"], name="share_reader_once")]

    def __str__(self) -> str:
        return f"user {self.user_id} has opened share {self.share_id}"

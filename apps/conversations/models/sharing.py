"""What people do around an answer: rate it, share it, queue the next question, bring files."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.collections.models import Document
from apps.conversations.models.conversation import Conversation, Turn
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class Feedback(TenantModel):
    """What a person thinks of an answer; datasets are made from it."""

    class Rating(models.IntegerChoices):
        BAD = -1
        GOOD = 1

    class Reason(models.TextChoices):
        NONE = "", "no reason given"
        WRONG = "wrong", "it is wrong"
        INCOMPLETE = "incomplete", "it leaves something out"
        SOURCES = "sources", "its sources do not say that"
        UNCLEAR = "unclear", "it is hard to understand"
        UNSAFE = "unsafe", "it should not have said that"
        OTHER = "other"

    turn = TenantForeignKey(Turn, related_name="feedback")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    rating = models.SmallIntegerField(choices=Rating.choices)
    reason = models.CharField(max_length=12, choices=Reason.choices, blank=True)
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["turn", "user"], name="feedback_once"),
            models.CheckConstraint(condition=models.Q(rating__in=[-1, 1]), name="feedback_rating"),
        ]

    def __str__(self) -> str:
        return f"{self.get_rating_display()} for turn {self.turn_id}"


class ConversationShare(TenantModel):
    """A link to a conversation as it was: members of the workspace read the snapshot, each with their own rights to its
    sources. Only the token's SHA-256 is stored.
    """

    conversation = TenantForeignKey(Conversation, related_name="shares")
    token_sha256 = models.CharField(max_length=64, unique=True)
    title = models.CharField(max_length=200, blank=True)
    snapshot = models.JSONField(help_text="Questions, answers and citations of the shared branch.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"share of conversation {self.conversation_id}"


class QueuedQuestion(TenantModel):
    """A question that waits for the answer under way; asked by itself when that one has ended."""

    conversation = TenantForeignKey(Conversation, related_name="queue")
    client_id = models.UUIDField()
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "client_id"], name="queued_question_client_id"
            )
        ]

    def __str__(self) -> str:
        return f"queued in conversation {self.conversation_id}"


class Attachment(TenantModel):
    """A file of a conversation: small ones go to the model as text, others are ingested and searched."""

    conversation = TenantForeignKey(Conversation, related_name="attachments")
    turn = TenantForeignKey(Turn, db_on_delete=SET_NULL, null=True, related_name="attachments")
    document = TenantForeignKey(
        Document, db_on_delete=SET_NULL, null=True, related_name="+",
        help_text="Where it was ingested: in the conversation's own collection.",
    )  # fmt: skip
    name = models.CharField(max_length=255)
    text = models.TextField(blank=True, help_text="The whole text of a small file.")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name

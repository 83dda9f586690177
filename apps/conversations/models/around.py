"""What stands around a conversation: feedback, shares, questions that wait, the rules for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.conversations.models.conversation import Conversation, Turn
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


class QueuedQuestion(TenantModel):
    """A question that was sent while an answer was being written; it is asked when that has ended."""

    conversation = TenantForeignKey(Conversation, related_name="queued", db_index=False)
    text = models.TextField()
    model = models.CharField(max_length=120, blank=True)
    client_id = models.UUIDField()
    request = models.JSONField(
        help_text="Who asks, in the form of a run's request, and the ids of the attached files."
    )
    problem = models.TextField(blank=True, help_text="Why it wasn't asked when its turn came.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "client_id"], name="queued_question_client_id")
        ]

    def __str__(self) -> str:
        return f"queued question of conversation {self.conversation_id}"


class ConversationRules(TenantModel):
    """What a workspace says about all its conversations; without a row the operator's defaults hold."""

    keep_days = models.PositiveIntegerField(
        null=True,
        help_text="Days after the last question before a conversation is deleted; 0: never; empty: the server's default.",
    )
    makes_titles = models.BooleanField(
        default=True, help_text="A model names each conversation after its first answer."
    )
    support_model = models.CharField(
        max_length=120,
        blank=True,
        help_text="Model that checks each answer against its sources again; empty: none.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="conversation_rules_one_a_tenant")]

    def __str__(self) -> str:
        return "rules of conversations"

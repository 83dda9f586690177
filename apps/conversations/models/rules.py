"""What a workspace says about all its conversations."""

from __future__ import annotations

from django.db import models

from tenancy.models import TenantModel


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
    instructions = models.TextField(
        blank=True,
        db_default="",
        help_text="What every model is told first, whoever asks and whichever assistant answers.",
    )
    allows_memory = models.BooleanField(
        default=True,
        db_default=True,
        help_text="People can keep notes that models are given with their questions.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="conversation_rules_one_a_tenant")]

    def __str__(self) -> str:
        return "rules of conversations"

"""What the REST API of these rules takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from apps.conversations.rules.instructions import MAX_INSTRUCTIONS
from erasure.retention import MOST_DAYS

_NULL = "null for the server's default; 0 keeps them forever."


@extend_schema_serializer(deprecate_fields=["keep_days"])
class ConversationRulesInput(serializers.Serializer[Any]):
    keep_days = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MOST_DAYS,
        help_text=f"Days after the last question before a conversation is deleted; {_NULL} Omitted: unchanged. "
        "It is the rule `conversations` of `retention_rules_set`.",
    )
    makes_titles = serializers.BooleanField(
        allow_null=True, default=None, help_text="Omitted or null: unchanged."
    )
    support_model = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=120,
        help_text="Model that checks each finished answer against its sources again; empty for none; "
        "omitted or null: unchanged.",
    )


class ConversationRulesOutput(serializers.Serializer[Any]):
    keep_days = serializers.IntegerField(
        source="own_days", allow_null=True, help_text=f"The workspace's own rule; {_NULL}"
    )
    days = serializers.IntegerField(help_text="The rule in effect; 0 keeps them forever.")
    makes_titles = serializers.BooleanField(
        help_text="A model names each conversation after its first answer."
    )
    support_model = serializers.CharField(
        help_text="Model that checks each answer against its sources again; empty for none."
    )

    class Meta:
        ref_name = "ConversationRules"


class InstructionsInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_INSTRUCTIONS,
        help_text="What every model is told first; empty for none. Omitted: unchanged.",
    )
    allows_memory = serializers.BooleanField(
        required=False,
        help_text="People can keep notes that models are given with their questions. Omitted: unchanged.",
    )


class InstructionsOutput(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="What every model is told first; empty for none.")
    allows_memory = serializers.BooleanField(
        help_text="People can keep notes that models are given with their questions."
    )

    class Meta:
        ref_name = "Instructions"


class KeepDaysFilter(serializers.Serializer[Any]):
    keep_days = serializers.IntegerField(
        required=False,
        default=None,
        min_value=0,
        max_value=MOST_DAYS,
        help_text="The rule to try; default: the server's.",
    )


class RulesPreviewOutput(serializers.Serializer[Any]):
    days = serializers.IntegerField(help_text="The rule that was tried; 0 keeps them forever.")
    count = serializers.IntegerField(help_text="Conversations that it would delete now.")
    users = serializers.IntegerField(help_text="Number of people they belong to.")
    oldest_at = serializers.DateTimeField(allow_null=True, help_text="Last question in the oldest one.")

    class Meta:
        ref_name = "RulesPreview"

"""What REST says about work that is with a provider's batch API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class BatchRoundOutput(serializers.Serializer[Any]):
    """The calls that a provider has at half the price, and since when."""

    number = serializers.IntegerField(
        help_text="From 1; each turn of an answer that calls tools takes one round."
    )
    total = serializers.IntegerField(help_text="Requests in this round.")
    done = serializers.IntegerField(help_text="Answers received, as reported by the provider.")
    sent_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When the provider gives up on unanswered requests."
    )
    is_stopping = serializers.BooleanField(help_text="The provider was asked to stop.")

    class Meta:
        ref_name = "BatchRound"

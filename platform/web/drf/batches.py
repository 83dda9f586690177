"""What REST says about work that is with a provider's batch API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class BatchRoundOutput(serializers.Serializer[Any]):
    """The calls that a provider has at half the price, and since when."""

    number = serializers.IntegerField(
        help_text="From 1; each turn of an answer that calls tools takes a round."
    )
    total = serializers.IntegerField(help_text="Requests in it.")
    done = serializers.IntegerField(help_text="Answers that are back, as far as the provider tells.")
    sent_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When the provider gives up on what it has not answered."
    )
    is_stopping = serializers.BooleanField(help_text="The provider was told to stop.")

    class Meta:
        ref_name = "BatchRound"

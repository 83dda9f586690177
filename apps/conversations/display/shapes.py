"""How the REST API gives what is shown beside an answer."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.display.marks import LABELS


class MarkOutput(serializers.Serializer[Any]):
    """A sentence of an answer that its reader should check."""

    start = serializers.IntegerField(help_text="First character in the answer.")
    end = serializers.IntegerField(help_text="The character after its last one.")
    reason = serializers.ChoiceField(
        choices=list(LABELS),
        help_text="unsupported, number, name and polarity: compared with its sources and not confirmed; "
        "language: not compared, because its source is in another language.",
    )
    text = serializers.CharField(help_text="The sentence.")
    note = serializers.CharField(help_text="The reason in words.")

    class Meta:
        ref_name = "Mark"

"""What the REST API of a person's memory takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.models.memory import MAX_ENTRY


class MemoryInput(serializers.Serializer[Any]):
    is_on = serializers.BooleanField(help_text="Whether models are given your notes with your questions.")


class MemoryOutput(serializers.Serializer[Any]):
    is_on = serializers.BooleanField(help_text="You have switched it on.")
    is_allowed = serializers.BooleanField(
        help_text="The workspace allows memory; if not, no model is given any note."
    )
    count = serializers.IntegerField(help_text="Number of notes.")

    class Meta:
        ref_name = "Memory"


class MemoryEntryInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        max_length=MAX_ENTRY, help_text="The note, in one line; line breaks become spaces."
    )


class MemoryEntryOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    by_model = serializers.BooleanField(help_text="A model wrote it, with the tool `remember`.")
    conversation = serializers.IntegerField(
        source="turn.conversation_id",
        default=None,
        allow_null=True,
        help_text="The conversation in which you said it; null if you wrote it yourself, or if it is deleted.",
    )
    turn = serializers.IntegerField(
        source="turn_id", allow_null=True, help_text="The question in which you said it."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "MemoryEntry"

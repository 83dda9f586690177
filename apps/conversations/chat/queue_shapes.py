"""What the REST API of drafts and waiting questions takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.chat.shapes import NarrowingShape
from apps.conversations.transcript.locks import MAX_TEXT
from apps.conversations.turns.narrowing import narrowing_kept


class DraftInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        allow_blank=True, max_length=MAX_TEXT, trim_whitespace=False, help_text="Empty: no draft."
    )


class QueuedUpdate(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=MAX_TEXT, help_text="The question.")


class QueuedOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    model = serializers.CharField(help_text="Empty: the conversation's model.")
    client_id = serializers.UUIDField()
    compare_with = serializers.SerializerMethodField(help_text="The second model that answers; empty: none.")
    only = serializers.SerializerMethodField(help_text="What the question is limited to.")
    problem = serializers.CharField(help_text="Why it wasn't asked when its turn came; empty: it is waiting.")
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "QueuedQuestion"

    def get_compare_with(self, row: Any) -> str:
        return str(row.request.get("compare_with", ""))

    @extend_schema_field(NarrowingShape)
    def get_only(self, row: Any) -> Any:
        return NarrowingShape(narrowing_kept(row.request)).data

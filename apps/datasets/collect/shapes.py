"""What the REST API of rows from conversations and feedback takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.collect.services import MAX_TURNS

_TRIAL = "Preview the rows without adding them."


def _id() -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class FromConversationInput(serializers.Serializer[Any]):
    conversation = _id()
    turns = serializers.ListField(child=_id(), min_length=1, max_length=MAX_TURNS)
    is_trial = serializers.BooleanField(required=False, default=False, help_text=_TRIAL)

    class Meta:
        ref_name = "DatasetRowsFromConversation"


class FromFeedbackInput(serializers.Serializer[Any]):
    feedback = serializers.ListField(child=_id(), min_length=1, max_length=MAX_TURNS)
    is_trial = serializers.BooleanField(required=False, default=False, help_text=_TRIAL)

    class Meta:
        ref_name = "DatasetRowsFromFeedback"


class HiddenOutput(serializers.Serializer[Any]):
    kind = serializers.CharField()
    field = serializers.CharField()
    shown = serializers.CharField(help_text="What was hidden, masked.")

    class Meta:
        ref_name = "DatasetHidden"


class RedactionOutput(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The field it was in.")
    before = serializers.CharField()
    after = serializers.CharField()

    class Meta:
        ref_name = "DatasetRedaction"


class CollectedRowOutput(serializers.Serializer[Any]):
    turn = serializers.IntegerField()
    feedback = serializers.IntegerField(allow_null=True)
    verdict = serializers.CharField(help_text="good, bad or empty.")
    reason = serializers.CharField()
    question = serializers.CharField(help_text="As it would be stored.")
    answer = serializers.CharField()
    changes = RedactionOutput(many=True)
    hidden = HiddenOutput(many=True)

    class Meta:
        ref_name = "DatasetCollectedRow"


class CollectedOutput(serializers.Serializer[Any]):
    rows = CollectedRowOutput(many=True)
    created = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of new rows.")
    duplicates = serializers.IntegerField(help_text="Rows that already existed.")

    class Meta:
        ref_name = "DatasetCollected"

"""What the REST API of feedback takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.feedback.selectors import REASONS
from apps.conversations.feedback.services import MAX_COMMENT
from apps.conversations.models import Feedback, Message

_REASONS = sorted({code for codes in REASONS.values() for code in codes})


class FeedbackInput(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=list(REASONS))
    reason = serializers.ChoiceField(
        choices=_REASONS,
        required=False,
        allow_blank=True,
        default="",
        help_text="; ".join(f"{verdict}: {', '.join(codes)}" for verdict, codes in REASONS.items()),
    )
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=MAX_COMMENT)


class FeedbackFilter(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=list(REASONS), required=False, allow_blank=True, default="")


class FeedbackOutput(serializers.Serializer[Feedback]):
    id = serializers.IntegerField()
    turn_id = serializers.IntegerField()
    user = serializers.CharField(source="user.email")
    verdict = serializers.CharField()
    reason = serializers.CharField()
    comment = serializers.CharField()
    question = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField()
    model = serializers.CharField(source="turn.run.model")
    other_model = serializers.CharField(
        allow_null=True,
        help_text="The model whose answer to the same question it was compared with; null for none.",
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Feedback"

    def get_question(self, row: Feedback) -> str:
        return _said(row, Message.Author.USER)

    def get_answer(self, row: Feedback) -> str:
        return _said(row, Message.Author.ASSISTANT)


def _said(row: Feedback, author: str) -> str:
    return next((str(m.text) for m in row.turn.messages.all() if m.author == author), "")

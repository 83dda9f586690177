"""What the REST API of attached files gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.display.attached_files import kind_of, problem_of, state_of
from apps.conversations.models import Attachment


class AttachmentOutput(serializers.Serializer[Attachment]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    kind = serializers.SerializerMethodField(
        help_text="text: read and searched; image, audio (MP3, WAV, OGG, FLAC), and scan (a short PDF "
        "without text): sent as it is to a model that supports it."
    )
    state = serializers.SerializerMethodField(
        help_text="reading, ready or failed. You can already ask a question: the answer waits for the file."
    )
    problem = serializers.SerializerMethodField(help_text="Why it could not be read; otherwise empty.")
    turn_id = serializers.IntegerField(
        allow_null=True, help_text="The question it was sent with; null: not sent yet."
    )
    document_id = serializers.IntegerField(allow_null=True, help_text="The document that citations point to.")
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Attachment"

    @extend_schema_field(serializers.ChoiceField(choices=["text", "image", "audio", "scan"]))
    def get_kind(self, row: Attachment) -> str:
        return kind_of(row)

    @extend_schema_field(serializers.ChoiceField(choices=["reading", "ready", "failed"]))
    def get_state(self, row: Attachment) -> str:
        return state_of(row)

    def get_problem(self, row: Attachment) -> str:
        return problem_of(row)


class AttachmentInput(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="The file, as multipart/form-data.")

"""What the REST API of links and exports takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.display.shapes import FigureOutput, MarkOutput
from apps.conversations.models import ConversationShare


class ReaderOutput(serializers.Serializer[Any]):
    user = serializers.CharField(source="user.email")
    first_at = serializers.DateTimeField()

    class Meta:
        ref_name = "ShareReader"


class ShareOutput(serializers.Serializer[ConversationShare]):
    id = serializers.IntegerField()
    key = serializers.UUIDField(help_text="Read it at /shares/{key}.")
    title = serializers.CharField()
    created_at = serializers.DateTimeField()
    readers = serializers.SerializerMethodField(help_text="Who has opened it.")

    class Meta:
        ref_name = "Share"

    def get_readers(self, row: ConversationShare) -> list[dict[str, Any]]:
        return [dict(ReaderOutput(reader).data) for reader in row.readers.all()]


class ShareMadeOutput(ShareOutput):
    limited_sources = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names of its source documents that not everyone here can read; other readers don't see "
        "their content.",
    )

    class Meta:
        ref_name = "ShareMade"


class SharedCitationOutput(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    document_name = serializers.CharField(help_text="A placeholder if you can't see the source.")
    collection_name = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    quote = serializers.CharField(help_text="Empty if you can't see the source.")
    header = serializers.CharField(
        help_text="The table's column header if the quote is a table row; otherwise empty."
    )

    class Meta:
        ref_name = "SharedCitation"


class SharedTurnOutput(serializers.Serializer[Any]):
    question = serializers.CharField()
    answer = serializers.CharField(help_text="Markdown with markers [1].")
    model = serializers.CharField(source="model_label")
    asked_at = serializers.DateTimeField()
    comparison = serializers.CharField(
        help_text="Of one of two answers to a question: whether it was kept, and what wrote the other; empty otherwise."
    )
    marks = MarkOutput(many=True, help_text="Sentences to check, in the order of the answer.")
    compared = serializers.CharField(
        help_text="What the sentences were compared with; empty if not recorded."
    )
    figures = FigureOutput(
        many=True,
        help_text="Read its pictures at /shares/{key}/pictures/{picture_id}; none if you can't see a source.",
    )
    citations = SharedCitationOutput(many=True)
    hidden_citations = serializers.IntegerField(source="hidden")

    class Meta:
        ref_name = "SharedTurn"


class SharedOutput(serializers.Serializer[Any]):
    title = serializers.CharField()
    by = serializers.CharField()
    created_at = serializers.DateTimeField()
    turns = SharedTurnOutput(many=True)

    class Meta:
        ref_name = "SharedConversation"


class ExportFilter(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=["json", "markdown"], default="json")


class FileFilter(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=["docx", "pdf"], default="docx")


class AnswerFileFilter(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=["docx", "pdf", "md"], default="docx")


class AnswerSaveInput(serializers.Serializer[Any]):
    collection = serializers.IntegerField(help_text="The collection to add it to.")
    form = serializers.ChoiceField(choices=["md", "docx", "pdf"], default="md")
    name = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200, help_text="Default: the question."
    )

    class Meta:
        ref_name = "AnswerSave"


class ExportOutput(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Suggested file name.")
    markdown = serializers.CharField(help_text="The current branch, with sources; for form=markdown.")
    conversation = serializers.JSONField(
        allow_null=True, help_text="All branches as a tree by `parent`; for form=json."
    )

    class Meta:
        ref_name = "ConversationExport"

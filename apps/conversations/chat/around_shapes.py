"""What the REST API of what stands around a conversation takes and gives: waiting questions, feedback, shares, search, rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from apps.conversations.chat.shapes import MarkOutput
from apps.conversations.feedback.selectors import REASONS
from apps.conversations.feedback.services import MAX_COMMENT
from apps.conversations.models import ConversationShare, Feedback, Message
from apps.conversations.transcript.locks import MAX_TEXT
from apps.conversations.transcript.search import MAX_QUERY
from erasure.retention import MOST_DAYS

_REASONS = sorted({code for codes in REASONS.values() for code in codes})


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
    problem = serializers.CharField(help_text="Why it wasn't asked when its turn came; empty: it is waiting.")
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "QueuedQuestion"


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
    marks = MarkOutput(many=True, help_text="Sentences to check, in the order of the answer.")
    compared = serializers.CharField(
        help_text="What the sentences were compared with; empty if not recorded."
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


class SearchFilter(serializers.Serializer[Any]):
    q = serializers.CharField(max_length=MAX_QUERY, allow_blank=True, default="")


class FoundOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    updated_at = serializers.DateTimeField()
    turn_id = serializers.IntegerField(
        source="turn_pk", allow_null=True, help_text="Null if only the title matches."
    )
    author = serializers.CharField(help_text="user or assistant; empty if only the title matches.")
    excerpt = serializers.CharField(help_text="Plain text.")
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="Where the words are in the excerpt: [start, end) in characters.",
    )

    class Meta:
        ref_name = "FoundConversation"


class ExportFilter(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=["json", "markdown"], default="json")


class ExportOutput(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Suggested file name.")
    markdown = serializers.CharField(help_text="The current branch, with sources; for form=markdown.")
    conversation = serializers.JSONField(
        allow_null=True, help_text="All branches as a tree by `parent`; for form=json."
    )

    class Meta:
        ref_name = "ConversationExport"


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

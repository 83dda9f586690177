"""What the REST API of conversations and runs takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.attachments.shapes import AttachmentOutput
from apps.conversations.display.figures import turn_figures
from apps.conversations.display.marks import compared_of, marks_of
from apps.conversations.display.shapes import FigureOutput, MarkOutput
from apps.conversations.models import Message, Turn
from apps.conversations.transcript.locks import MAX_TEXT
from apps.conversations.transcript.search import MAX_QUERY
from apps.conversations.transcript.selectors import live_state
from apps.conversations.turns.bulk import MOST
from apps.conversations.turns.narrowing import MOST_NARROWED, narrowing_of
from runs.models import RunStatus
from web.drf.shared import shown

_BIGINT = 2**63 - 1


class ConversationInput(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=200, default="")
    model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=120,
        default="",
        help_text="An id from /models; default: the workspace's default model.",
    )
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=500,
        help_text="Ids of the collections to search; empty for all.",
    )
    assistant = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=60,
        default="",
        help_text="Slug of the assistant that answers; empty for general chat.",
    )
    assistant_version = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=2**31 - 1,
        default=None,
        help_text="Number of a version to try instead of the published one; needs the right assistant.write.",
    )
    project = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_BIGINT,
        default=None,
        help_text="Id of the project it belongs to; without `collections` it searches the project's.",
    )


class ConversationUpdate(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, max_length=200)
    is_pinned = serializers.BooleanField(
        required=False, help_text="Keep the conversation at the top of its owner's list in the portal."
    )
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=500,
        help_text="Ids of the collections to search from now on; empty for all.",
    )
    project = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_BIGINT,
        help_text="Id of the project to move it to; null for none. What it searches stays.",
    )
    is_archived = serializers.BooleanField(
        required=False, help_text="Archive it, or bring it back; the next question also brings it back."
    )


class ConversationsFilter(serializers.Serializer[Any]):
    archived = serializers.BooleanField(default=False)
    project = serializers.IntegerField(required=False, min_value=1, max_value=_BIGINT)


class BulkInput(serializers.Serializer[Any]):
    do = serializers.ChoiceField(
        choices=["move", "archive", "unarchive", "delete", "undelete"],
        help_text="`undelete` brings back what `delete` removed less than an hour ago.",
    )
    conversations = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        min_length=1,
        max_length=MOST,
        help_text="Ids of your conversations.",
    )
    project = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_BIGINT,
        default=None,
        help_text="For `move`: id of the project; null for none.",
    )


class BulkOutput(serializers.Serializer[Any]):
    changed = serializers.ListField(
        child=serializers.IntegerField(), help_text="Ids of the conversations that were changed."
    )


class ConversationOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    title = serializers.CharField()
    model = serializers.CharField()
    assistant = serializers.CharField(
        source="assistant.slug",
        default=None,
        allow_null=True,
        help_text="Who answers; null for general chat.",
    )
    is_answering = serializers.BooleanField(help_text="A turn is in progress.")
    state = serializers.SerializerMethodField(
        help_text="running, waiting (for a decision), failed (the last answer), done (and not viewed yet), "
        "or empty."
    )
    draft = serializers.CharField(help_text="Text typed but not sent.")
    is_pinned = serializers.BooleanField(help_text="At the top of its owner's list in the portal.")
    head_id = serializers.IntegerField(
        allow_null=True, help_text="Last turn of the current branch; the next question follows it."
    )
    forked_from_id = serializers.IntegerField(allow_null=True)
    project_id = serializers.IntegerField(
        allow_null=True, help_text="The project it belongs to; null for none."
    )
    is_archived = serializers.SerializerMethodField(
        help_text="Archived: only in the list of archived conversations."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Conversation"

    def get_state(self, row: Any) -> str:
        return live_state(row)

    def get_is_archived(self, row: Any) -> bool:
        return row.archived_at is not None


class NarrowingShape(serializers.Serializer[Any]):
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=MOST_NARROWED,
        help_text="Ids of the only collections to search, of those that the conversation searches; empty for all of them.",
    )
    documents = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=MOST_NARROWED,
        help_text="Ids of the only documents to search and read; empty for all. Not together with `collections`.",
    )
    tools = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=MOST_NARROWED,
        help_text="Names of the only tools to use besides those that search and read documents; empty for all.",
    )

    class Meta:
        ref_name = "Narrowing"


class TurnInput(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=MAX_TEXT, help_text="The question.")
    client_id = serializers.UUIDField(
        required=False,
        help_text="An id you create for each question; the header Idempotency-Key does the same. Sending "
        "it again returns the existing turn.",
    )
    model = serializers.CharField(required=False, allow_blank=True, max_length=120, default="")
    assistant = serializers.CharField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=60,
        default=None,
        help_text="Slug of the assistant that answers from now on; empty for general chat; null or omitted changes nothing.",
    )
    attachments = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=20,
        help_text="Ids of files that were attached to the conversation for this question.",
    )


class AskInput(TurnInput):
    only = NarrowingShape(
        required=False,
        allow_null=True,
        default=None,
        help_text="What this question alone is limited to; null or omitted for the conversation's own scope.",
    )
    compare_with = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=120,
        default="",
        help_text="A second model, which answers at the same time. The turn returned is the first one; its "
        "`alongside_id` is the second. Keep one with /keep, or ask on: then the one shown is kept.",
    )
    when_busy = serializers.ChoiceField(
        choices=["refuse", "queue"],
        default="refuse",
        help_text="While an answer is in progress: `refuse` returns 409 `conversation_busy`; `queue` "
        "returns 202 with the queued question, which is asked when its turn comes. Sending it again with "
        "the same client_id returns its current state.",
    )


class BranchesInput(serializers.Serializer[Any]):
    branches = serializers.ChoiceField(choices=["shown", "all"], default="shown")


class AgainInput(serializers.Serializer[Any]):
    client_id = serializers.UUIDField(
        required=False, help_text="As for a question: sending it again returns the existing turn."
    )
    model = serializers.CharField(required=False, allow_blank=True, max_length=120, default="")


class KeepInput(serializers.Serializer[Any]):
    feedback = serializers.BooleanField(
        default=False, help_text="Rate the answer too: good, because it is better than the other one."
    )


class RetryInput(serializers.Serializer[Any]):
    model = serializers.CharField(required=False, allow_blank=True, max_length=120, default="")


class CitationOutput(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="The marker [1] in the answer.")
    chunk_id = serializers.IntegerField(allow_null=True, help_text="Null after the passage was deleted.")
    document_id = serializers.IntegerField(allow_null=True)
    document_name = serializers.CharField()
    collection_name = serializers.CharField()
    page = serializers.IntegerField(allow_null=True, help_text="The page where the quote begins.")
    quote = serializers.CharField(
        help_text="Whole sentences or a table row, with lines joined; “…” marks where a very long one was cut."
    )
    header = serializers.CharField(
        help_text="Column header of the table if the quote is a table row; otherwise empty."
    )
    char_start = serializers.IntegerField(help_text="Offset of the quote in the document's text.")
    char_end = serializers.IntegerField()

    class Meta:
        ref_name = "Citation"


class TurnOutput(serializers.Serializer[Turn]):
    id = serializers.IntegerField()
    index = serializers.IntegerField(
        help_text="Counts the questions in the order they were asked, over all branches, from 0."
    )
    parent_id = serializers.IntegerField(
        allow_null=True, help_text="The turn it follows; turns with the same one are branches."
    )
    alongside_id = serializers.IntegerField(
        allow_null=True,
        help_text="The turn in which another model answers the same question (`compare_with`); null for none.",
    )
    is_kept = serializers.BooleanField(
        allow_null=True,
        help_text="Of two answers: whether the conversation continued with this one; null if not chosen yet.",
    )
    run_id = serializers.IntegerField(help_text="Follow it at /runs/{id}/events.")
    status = serializers.ChoiceField(choices=RunStatus.choices, source="run.status")
    model = serializers.CharField(source="run.model")
    assistant_version = serializers.IntegerField(
        source="assistant_version.number",
        default=None,
        allow_null=True,
        help_text="Number of the assistant version that answers; null for general chat.",
    )
    question = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField(
        help_text="Markdown with markers [1]; empty until it is finished."
    )
    output = serializers.SerializerMethodField(
        help_text="The answer in the assistant's output format; null for text."
    )
    problem = serializers.SerializerMethodField(help_text="Why the answer doesn't have the required format.")
    marks = serializers.SerializerMethodField(help_text="Sentences of the answer to check, in its order.")
    unsupported = serializers.SerializerMethodField(
        help_text="The `marks` that were not confirmed: [start, end] in characters."
    )
    compared = serializers.SerializerMethodField(
        help_text="What the sentences were compared with; empty if not recorded."
    )
    citations = CitationOutput(many=True)
    figures = serializers.SerializerMethodField(help_text="Charts and pictures from its tools.")
    attachments = AttachmentOutput(many=True, help_text="Files sent with the question.")
    only = serializers.SerializerMethodField(help_text="What the question was limited to.")
    removed_citations = serializers.IntegerField(
        source="removed_markers",
        help_text="Citation markers that pointed to no retrieved passage and were removed.",
    )
    error_code = serializers.CharField(source="run.error_code")
    error_message = serializers.CharField(source="run.error_message")
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Turn"

    @extend_schema_field(NarrowingShape)
    def get_only(self, turn: Turn) -> Any:
        return shown(NarrowingShape, narrowing_of(turn.run))

    @extend_schema_field(FigureOutput(many=True))
    def get_figures(self, turn: Turn) -> Any:
        return [shown(FigureOutput, figure) for figure in turn_figures(turn)]

    def get_question(self, turn: Turn) -> str:
        return _said(turn, Message.Author.USER)

    def get_answer(self, turn: Turn) -> str:
        return _said(turn, Message.Author.ASSISTANT)

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_output(self, turn: Turn) -> Any:
        return getattr(_answer(turn), "data", None)

    def get_problem(self, turn: Turn) -> str:
        return str(getattr(_answer(turn), "problem", ""))

    @extend_schema_field(MarkOutput(many=True))
    def get_marks(self, turn: Turn) -> list[dict[str, Any]]:
        return [mark.to_json() for mark in marks_of(_answer(turn))]

    def get_unsupported(self, turn: Turn) -> list[list[int]]:
        return [[mark.start, mark.end] for mark in marks_of(_answer(turn)) if mark.is_doubt]

    def get_compared(self, turn: Turn) -> str:
        return compared_of(_answer(turn))


def _answer(turn: Turn) -> Message | None:
    return next((m for m in turn.messages.all() if m.author == Message.Author.ASSISTANT), None)


def _said(turn: Turn, author: str) -> str:
    return next((str(m.text) for m in turn.messages.all() if m.author == author), "")


class RunOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    model = serializers.CharField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    answer = serializers.CharField(help_text="As the model wrote it, with markers such as [c123].")
    text = serializers.CharField(
        help_text="The finished answer as people read it: Markdown with markers [1]; empty until then."
    )
    marks = MarkOutput(many=True, help_text="Sentences of `text` to check, in its order.")
    last_seq = serializers.IntegerField(help_text="Number of the newest event.")
    limit_reached = serializers.CharField()
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    is_retryable = serializers.BooleanField()
    usage = serializers.DictField(child=serializers.IntegerField())
    cost_usd = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Run"


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

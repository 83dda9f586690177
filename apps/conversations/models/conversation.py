"""Conversations: turns of question and answer, in branches, attached files, and the citations under each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models.functions import Left, Now
from django.utils.translation import gettext as _

from apps.collections.models import Chunk, Collection, Document
from apps.conversations.models.assistant import Assistant, AssistantVersion
from apps.conversations.models.project import Project
from runs.models import Run
from tenancy.fields import RESTRICT, SET_NULL, OrderedJSONField, TenantForeignKey, ToldTextField
from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor


SEARCHED = 200_000
"""Characters of a message that search looks at; Postgres takes at most 1 MB of words."""


class ConversationQuerySet(TenantQuerySet["Conversation"]):
    def visible_to(self, actor: Actor) -> Self:
        """A conversation is its owner's alone; a key for chosen collections sees none in which anybody else asked.

        One that was deleted is nobody's, although it can still be brought back.
        """
        return self.kept_for(actor).filter(removed_at=None)

    def kept_for(self, actor: Actor) -> Self:
        """Return what ``visible_to`` does, and those that were deleted and can still be brought back."""
        rows = super().visible_to(actor).filter(user_id=actor.user_id, user_id__isnull=False)
        if actor.collections is None:
            return rows
        own = Run.objects.filter(pk=models.OuterRef("run_id"), request__actor__api_key_id=actor.api_key_id)
        # Not ``exclude`` by the key: a run that names none would be let through.
        others = Turn.objects.filter(~models.Exists(own), conversation_id=models.OuterRef("pk"))
        return rows.exclude(models.Exists(others))


class Conversation(TenantModel):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=120)
    searches_all = models.BooleanField(
        default=True,
        help_text="Searches all collections, including future ones. Deleting a chosen collection doesn't widen the search.",
    )
    assistant = TenantForeignKey(
        Assistant,
        db_on_delete=SET_NULL,
        null=True,
        related_name="conversations",
        help_text="Assistant that answers, in the version published at the time of each question.",
    )
    pinned_version = TenantForeignKey(
        AssistantVersion,
        db_on_delete=SET_NULL,
        null=True,
        related_name="+",
        help_text="Version being tried: it answers instead of the published one.",
    )
    head = TenantForeignKey(
        "conversations.Turn",
        db_on_delete=SET_NULL,
        null=True,
        related_name="+",
        help_text="Last turn of the current branch; the next question follows it.",
    )
    forked_from = TenantForeignKey(
        "conversations.Conversation", db_on_delete=SET_NULL, null=True, related_name="+"
    )
    project = TenantForeignKey(
        Project,
        db_on_delete=SET_NULL,
        null=True,
        related_name="conversations",
        db_index=False,  # found by its owner, who has an index, or when a project is deleted
        help_text="Project it belongs to; empty: none.",
    )
    tools_off = models.JSONField(
        default=list,
        blank=True,
        help_text="Names of tools that the owner has switched off in this conversation.",
    )
    draft = models.TextField(blank=True, help_text="Text typed but not sent.")
    is_pinned = models.BooleanField(
        default=False, db_default=False, help_text="Kept at the top of its owner's list."
    )
    archived_at = models.DateTimeField(
        null=True, help_text="When its owner archived it; the next question brings it back."
    )
    removed_at = models.DateTimeField(
        null=True,
        help_text="When its owner deleted it; it is gone for good within the hour that undoes this.",
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(
        db_default=Now(), help_text="When the owner last had it open; later answers count as new."
    )

    objects = ConversationQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "user", "-updated_at"], name="conversation_recent"),
            models.Index(fields=["tenant", "user", "-is_pinned", "-updated_at"], name="conversation_listed"),
        ]

    def __str__(self) -> str:
        return self.title or _("New conversation")


class ConversationCollection(TenantModel):
    """A collection that a conversation searches."""

    conversation = TenantForeignKey(Conversation, related_name="scope", db_index=False)
    collection = TenantForeignKey(Collection, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "collection"], name="conversation_collection_once"
            )
        ]

    def __str__(self) -> str:
        return f"collection {self.collection_id} in conversation {self.conversation_id}"


class Turn(TenantModel):
    """A question and its run. At most one turn of a conversation is active; ``client_id`` makes a retry harmless.

    Turns form a tree: an edited question and an answer asked for again are siblings, children of the same parent.
    ``index`` counts them in the order they were asked, over all branches.

    The two answers of a comparison are siblings that were asked at once, with indexes next to each other. Their runs go
    on at the same time; the active one of them is the first until it ends, then the second until it ends.
    """

    conversation = TenantForeignKey(Conversation, related_name="turns", db_index=False)
    parent = TenantForeignKey(
        "conversations.Turn", null=True, related_name="children", help_text="The turn it follows."
    )
    assistant_version = TenantForeignKey(
        AssistantVersion,
        db_on_delete=SET_NULL,
        null=True,
        related_name="+",
        help_text="Assistant version that answers; empty: general chat.",
    )
    run = TenantForeignKey(Run, db_on_delete=RESTRICT, related_name="turns")
    index = models.PositiveIntegerField()
    client_id = models.UUIDField()
    is_active = models.BooleanField(default=True)
    side = models.PositiveSmallIntegerField(
        null=True,
        help_text="Of two answers to one question: 1 for the first, 2 for the second; empty: the only one.",
    )
    is_kept = models.BooleanField(
        null=True,
        help_text="Of two answers to one question: whether its reader continued with this one; empty: not chosen yet.",
    )
    removed_markers = models.PositiveIntegerField(
        default=0, help_text="Citation markers that pointed to no retrieved passage and were removed."
    )
    created_at = models.DateTimeField(db_default=Now())

    asked: str | None = None
    """The question, on a turn that was just made by ``turn_submit``; not stored here."""
    attached: Sequence[Attachment] = ()
    """Its files, likewise; stored as ``attachments``."""
    second: Turn | None = None
    """The second turn of a comparison, likewise."""
    has_decided = False
    """Whether it was asked after a comparison, and so kept one of the two answers; likewise."""
    alongside_id: int | None = None
    """Id of the other turn of a comparison, on a turn that ``transcript.selectors`` has read; None without one."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "index"], name="turn_index"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="turn_client_id"),
            models.UniqueConstraint(
                fields=["conversation"], condition=models.Q(is_active=True), name="turn_one_active"
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.index} of conversation {self.conversation_id}"

    @property
    def is_undecided(self) -> bool:
        """Whether it is one of two answers to one question of which none is kept yet."""
        return self.side is not None and self.is_kept is None


class Message(TenantModel):
    """What was said: the question as typed, or the finished answer with its markers as ``[1]``."""

    class Author(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    turn = TenantForeignKey(Turn, related_name="messages", db_index=False)
    author = models.CharField(max_length=10, choices=Author.choices)
    text = models.TextField()
    data = OrderedJSONField(
        null=True, help_text="The answer in the assistant's output format; empty: text only."
    )
    problem = ToldTextField(
        blank=True, help_text="Why an answer that needs a certain format is shown as text."
    )
    unsupported = models.JSONField(
        default=list,
        help_text="Statements that no cited passage supports: [start, end, reason], in characters of the text. The reason is unsupported, number, name, polarity, or language (not checked). Older rows hold pairs, which count as unsupported.",
    )
    compared = ToldTextField(
        blank=True, help_text="What its statements were compared with, in one line; empty: nothing."
    )
    words = models.GeneratedField(
        expression=SearchVector(Left("text", SEARCHED), config="simple"),
        output_field=SearchVectorField(),
        db_persist=True,
        help_text="Search terms of the message. Not indexed, because row-level security would keep the index from being used.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "author"], name="message_per_author")]

    def __str__(self) -> str:
        return f"{self.author} in turn {self.turn_id}"

    @property
    def was_formed(self) -> bool:
        """Whether the answer was asked for in a form, so that ``Run.answer`` is JSON, or should be."""
        return self.data is not None or bool(self.problem)


class Citation(TenantModel):
    """A source of an answer. The names stay when the chunk is gone; the link does not."""

    turn = TenantForeignKey(Turn, related_name="citations", db_index=False)
    number = models.PositiveIntegerField()
    chunk_ref = models.BigIntegerField(help_text="The passage's id as the answer cites it.")
    chunk = TenantForeignKey(Chunk, db_on_delete=SET_NULL, null=True, related_name="+")
    document = TenantForeignKey(Document, db_on_delete=SET_NULL, null=True, related_name="+")
    document_name = models.CharField(max_length=255)
    collection_name = models.CharField(max_length=120, blank=True)
    page = models.PositiveIntegerField(null=True)
    quote = models.TextField(
        blank=True, help_text="Whole sentences or a table row, with lines joined; “…” marks an excerpt."
    )
    header = models.TextField(
        blank=True, db_default="", help_text="Column header of the table if the quote is one of its rows."
    )
    markers = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Which of the answer's markers for the passage refer to this quote, counted from 0; empty: all.",
    )
    char_start = models.PositiveIntegerField(
        default=0, help_text="Offset of the quote in the document's text."
    )
    char_end = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "number"], name="citation_number")]

    def __str__(self) -> str:
        return f"[{self.number}] {self.document_name}"


class AttachmentQuerySet(TenantQuerySet["Attachment"]):
    def visible_to(self, actor: Actor) -> Self:
        """An attached file is its conversation's owner's alone; of a key for chosen collections, those that it has given."""
        rows = super().visible_to(actor)
        rows = rows.filter(conversation__in=Conversation.objects.visible_to(actor))
        if actor.collections is None:
            return rows
        return rows.filter(document__collection_id__in=actor.collections)


class Attachment(TenantModel):
    """A file given with a question. Its bytes and passages are a document of a private collection.

    A question that is edited or answered again, and a fork, have rows of their own for the same document.
    """

    conversation = TenantForeignKey(Conversation, related_name="attachments")
    turn = TenantForeignKey(
        Turn,
        db_on_delete=SET_NULL,
        null=True,
        related_name="attachments",
        help_text="The question it was sent with; empty: not sent yet.",
    )
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    document = TenantForeignKey(Document, db_on_delete=SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    objects = AttachmentQuerySet.as_manager()  # type: ignore[misc]

    def __str__(self) -> str:
        return self.name

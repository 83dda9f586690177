"""Conversations in the admin: to look at, for nobody to change. An owner can read what was asked in the workspace."""

from __future__ import annotations

from django.contrib import admin

from apps.conversations.assistants import admin as assistant_admin  # noqa: F401 - registers its pages
from apps.conversations.models import (
    Citation,
    Conversation,
    ConversationCollection,
    ConversationShare,
    Feedback,
    MemoryEntry,
    MemorySetting,
    Message,
    Picture,
    Project,
    ProjectCollection,
    ProjectMember,
    Prompt,
    QueuedQuestion,
    ShareReader,
    Turn,
)
from tenancy.admin_scope import JournalAdmin, JournalInline


class ScopeInline(JournalInline):
    model = ConversationCollection
    fields = ("collection",)
    readonly_fields = fields


class MessageInline(JournalInline):
    model = Message
    fields = ("author", "text", "created_at")
    readonly_fields = fields


class CitationInline(JournalInline):
    model = Citation
    fields = ("number", "document_name", "page", "quote")
    readonly_fields = fields


@admin.register(Conversation)
class ConversationAdmin(JournalAdmin):
    list_display = ("title", "user", "model", "created_at", "updated_at")
    list_filter = ("model", "created_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("title", "user__email")
    date_hierarchy = "created_at"
    inlines = (ScopeInline,)


@admin.register(Turn)
class TurnAdmin(JournalAdmin):
    list_display = ("conversation", "index", "run", "is_active", "removed_markers", "created_at")
    list_filter = ("is_active", "created_at")
    list_select_related = ("conversation", "run")
    search_fields = ("=conversation__id", "conversation__title", "=run__id")
    inlines = (MessageInline, CitationInline)


@admin.register(Message)
class MessageAdmin(JournalAdmin):
    list_display = ("turn", "author", "created_at")
    list_filter = ("author", "created_at")
    list_select_related = ("turn",)
    search_fields = ("text",)


@admin.register(Citation)
class CitationAdmin(JournalAdmin):
    list_display = ("turn", "number", "document_name", "collection_name", "page")
    list_filter = (("document__collection", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("turn",)
    search_fields = ("document_name", "quote")


@admin.register(Feedback)
class FeedbackAdmin(JournalAdmin):
    list_display = ("turn", "user", "verdict", "reason", "comment", "updated_at")
    list_filter = ("verdict", "reason", "updated_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("turn", "user")
    search_fields = ("comment", "user__email", "=turn__id")
    date_hierarchy = "updated_at"


class ShareReaderInline(JournalInline):
    model = ShareReader
    fields = ("user", "first_at")
    readonly_fields = fields


@admin.register(ConversationShare)
class ConversationShareAdmin(JournalAdmin):
    list_display = ("title", "conversation", "created_by", "created_at", "revoked_at")
    list_filter = ("created_at", ("created_by", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("conversation", "created_by")
    search_fields = ("title", "created_by__email")
    hidden_fields = frozenset({"key", "snapshot"})  # who has the key reads the conversation
    inlines = (ShareReaderInline,)


@admin.register(QueuedQuestion)
class QueuedQuestionAdmin(JournalAdmin):
    list_display = ("conversation", "text", "problem", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("conversation",)
    search_fields = ("text",)


class ProjectScopeInline(JournalInline):
    model = ProjectCollection
    fields = ("collection",)
    readonly_fields = fields


class ProjectMemberInline(JournalInline):
    model = ProjectMember
    fields = ("user",)
    readonly_fields = fields


@admin.register(Project)
class ProjectAdmin(JournalAdmin):
    list_display = ("name", "user", "sharing", "created_at", "updated_at")
    list_filter = ("sharing", "created_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("name", "user__email")
    inlines = (ProjectScopeInline, ProjectMemberInline)


@admin.register(Prompt)
class PromptAdmin(JournalAdmin):
    list_display = ("name", "user", "is_shared", "updated_at")
    list_filter = ("is_shared", "updated_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("name", "description", "user__email")


@admin.register(Picture)
class PictureAdmin(JournalAdmin):
    """That a tool returned a picture, and never the picture: it is its conversation's."""

    list_display = ("id", "run", "name", "media_type", "width", "height", "size", "created_at")
    list_filter = ("media_type", "created_at")
    list_select_related = ("run",)
    search_fields = ("name", "call_id")
    hidden_fields = frozenset({"content"})


@admin.register(MemoryEntry)
class MemoryEntryAdmin(JournalAdmin):
    """That there is a note, and never what it says: it is its person's alone."""

    list_display = ("id", "user", "by_model", "created_at")
    list_filter = ("by_model", "created_at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__email",)
    hidden_fields = frozenset({"text", "turn"})


@admin.register(MemorySetting)
class MemorySettingAdmin(JournalAdmin):
    list_display = ("user", "is_on", "updated_at")
    list_filter = ("is_on", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__email",)

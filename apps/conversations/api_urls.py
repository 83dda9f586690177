"""REST of conversations, runs and models (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.conversations.assistants import api as assistant_api
from apps.conversations.attachments import api as attachment_api
from apps.conversations.branches import api as branch_api
from apps.conversations.chat import api, list_api, queue_api
from apps.conversations.feedback import api as feedback_api
from apps.conversations.memory import api as memory_api
from apps.conversations.openai.api import ChatCompletionsView
from apps.conversations.openai.embeddings_api import EmbeddingsView
from apps.conversations.openai.models_api import ModelsView, ModelView
from apps.conversations.openai.responses_api import (
    ResponseCancelView,
    ResponseInputsView,
    ResponsesView,
    ResponseView,
)
from apps.conversations.pictures import api as picture_api
from apps.conversations.projects import api as project_api
from apps.conversations.prompts import api as prompt_api
from apps.conversations.rules import api as rules_api
from apps.conversations.sharing import api as share_api
from apps.conversations.traces import api as trace_api

_VERSIONS = "assistants/<int:pk>/versions"
_ONE = "conversations/<int:pk>"
_TURNS = f"{_ONE}/turns"
_FILES = f"{_ONE}/attachments"
urlpatterns = [
    path("conversations", api.ConversationsView.as_view(), name="conversations-list"),
    path("conversations/search", list_api.ConversationSearchView.as_view(), name="conversations-search"),
    path("conversations/bulk", list_api.ConversationsBulkView.as_view(), name="conversations-bulk"),
    path("conversations/rules", rules_api.ConversationRulesView.as_view(), name="conversations-rules"),
    path("conversations/instructions", rules_api.InstructionsView.as_view(), name="instructions"),
    path("me/memory", memory_api.MemoryView.as_view(), name="memory"),
    path("me/memory/entries", memory_api.MemoryEntriesView.as_view(), name="memory-entries-list"),
    path("me/memory/entries/<int:pk>", memory_api.MemoryEntryView.as_view(), name="memory-entries-detail"),
    path(
        "conversations/rules/preview",
        rules_api.ConversationRulesPreviewView.as_view(),
        name="conversations-rules-preview",
    ),
    path("conversations/<int:pk>", api.ConversationView.as_view(), name="conversations-detail"),
    path(f"{_ONE}/erasure", api.ConversationErasureView.as_view(), name="conversations-erasure"),
    path(_TURNS, api.TurnsView.as_view(), name="turns-list"),
    path(f"{_TURNS}/<int:turn_pk>", api.TurnView.as_view(), name="turns-detail"),
    path(f"{_TURNS}/<int:turn_pk>/retry", api.TurnRetryView.as_view(), name="turns-retry"),
    path(f"{_TURNS}/<int:turn_pk>/edit", branch_api.TurnEditView.as_view(), name="turns-edit"),
    path(
        f"{_TURNS}/<int:turn_pk>/regenerate", branch_api.TurnRegenerateView.as_view(), name="turns-regenerate"
    ),
    path(f"{_TURNS}/<int:turn_pk>/continue", branch_api.TurnContinueView.as_view(), name="turns-continue"),
    path(f"{_TURNS}/<int:turn_pk>/choose", branch_api.TurnChooseView.as_view(), name="turns-choose"),
    path(f"{_TURNS}/<int:turn_pk>/keep", branch_api.TurnKeepView.as_view(), name="turns-keep"),
    path(f"{_TURNS}/<int:turn_pk>/fork", branch_api.TurnForkView.as_view(), name="turns-fork"),
    path(f"{_TURNS}/<int:turn_pk>/feedback", feedback_api.TurnFeedbackView.as_view(), name="turns-feedback"),
    path(_FILES, attachment_api.AttachmentsView.as_view(), name="attachments-list"),
    path(f"{_FILES}/<int:attachment_pk>", attachment_api.AttachmentView.as_view(), name="attachments-detail"),
    path(
        f"{_FILES}/<int:attachment_pk>/retry",
        attachment_api.AttachmentRetryView.as_view(),
        name="attachments-retry",
    ),
    path(f"{_ONE}/pictures/<int:picture_pk>", picture_api.PictureView.as_view(), name="pictures-detail"),
    path("feedback", feedback_api.FeedbackListView.as_view(), name="feedback-list"),
    path(f"{_ONE}/draft", queue_api.DraftView.as_view(), name="conversations-draft"),
    path(f"{_ONE}/queue", queue_api.QueueView.as_view(), name="queue-list"),
    path(f"{_ONE}/queue/<int:queued_pk>", queue_api.QueuedView.as_view(), name="queue-detail"),
    path(f"{_ONE}/shares", share_api.SharesView.as_view(), name="shares-list"),
    path(f"{_ONE}/shares/<int:share_pk>", share_api.ShareView.as_view(), name="shares-detail"),
    path("shares/<uuid:key>", share_api.SharedView.as_view(), name="shares-read"),
    path(
        "shares/<uuid:key>/pictures/<int:picture_pk>",
        share_api.SharedPictureView.as_view(),
        name="shares-picture",
    ),
    path(f"{_ONE}/export", share_api.ConversationExportView.as_view(), name="conversations-export"),
    path(f"{_ONE}/file", share_api.ConversationFileView.as_view(), name="conversations-file"),
    path(f"{_TURNS}/<int:turn_pk>/file", share_api.AnswerFileView.as_view(), name="turns-file"),
    path(f"{_TURNS}/<int:turn_pk>/document", share_api.AnswerSaveView.as_view(), name="turns-document"),
    path("prompts", prompt_api.PromptsView.as_view(), name="prompts-list"),
    path("prompts/<int:pk>", prompt_api.PromptView.as_view(), name="prompts-detail"),
    path("runs/<int:pk>", api.RunView.as_view(), name="runs-detail"),
    path("runs/<int:pk>/trace", trace_api.RunTraceView.as_view(), name="runs-trace"),
    path("runs/<int:pk>/stop", api.RunStopView.as_view(), name="runs-stop"),
    path("runs/<int:pk>/decisions", api.DecisionsView.as_view(), name="decisions-list"),
    path("runs/<int:pk>/decisions/<int:decision_pk>", api.DecisionView.as_view(), name="decisions-detail"),
    path("runs/<int:pk>/events", api.RunEventsView.as_view(), name="runs-events"),
    path("projects", project_api.ProjectsView.as_view(), name="projects-list"),
    path("projects/<int:pk>", project_api.ProjectView.as_view(), name="projects-detail"),
    path("assistants", assistant_api.AssistantsView.as_view(), name="assistants-list"),
    path("assistants/<int:pk>", assistant_api.AssistantView.as_view(), name="assistants-detail"),
    path(
        "assistants/<int:pk>/publish", assistant_api.AssistantPublishView.as_view(), name="assistants-publish"
    ),
    path(_VERSIONS, assistant_api.AssistantVersionsView.as_view(), name="assistant-versions-list"),
    path(
        f"{_VERSIONS}/<int:number>",
        assistant_api.AssistantVersionView.as_view(),
        name="assistant-versions-detail",
    ),
    path(
        f"{_VERSIONS}/<int:number>/changes",
        assistant_api.AssistantChangesView.as_view(),
        name="assistant-versions-changes",
    ),
    path("chat/completions", ChatCompletionsView.as_view(), name="chat-completions"),
    path("responses", ResponsesView.as_view(), name="responses-list"),
    path("responses/<str:response_id>", ResponseView.as_view(), name="responses-detail"),
    path("responses/<str:response_id>/cancel", ResponseCancelView.as_view(), name="responses-cancel"),
    path("responses/<str:response_id>/input_items", ResponseInputsView.as_view(), name="responses-inputs"),
    path("embeddings", EmbeddingsView.as_view(), name="embeddings"),
    path("models", ModelsView.as_view(), name="models-list"),
    path("models/<path:model>", ModelView.as_view(), name="models-detail"),
]

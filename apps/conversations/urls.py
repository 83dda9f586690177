"""Pages of conversations, under /t/<slug>/chat/."""

from __future__ import annotations

from django.urls import path

from apps.conversations.branches import views as branch_views
from apps.conversations.chat import (
    attachment_views,
    bulk_views,
    list_views,
    queue_views,
    suggestion_views,
    views,
)
from apps.conversations.feedback import views as feedback_views
from apps.conversations.memory import views as memory_views
from apps.conversations.pictures import views as picture_views
from apps.conversations.projects import views as project_views
from apps.conversations.prompts import views as prompt_views
from apps.conversations.rules import views as rules_views
from apps.conversations.sharing import views as share_views
from apps.conversations.traces import views as trace_views

app_name = "conversations"
urlpatterns = [
    path("", views.home, name="home"),
    path("new/", views.create, name="create"),
    path("attachments/", attachment_views.begin, name="attachment-begin"),
    path("all/", list_views.index, name="list"),
    path("all/change/", bulk_views.change, name="bulk"),
    path("all/undo/", bulk_views.undo, name="bulk-undo"),
    path("projects/", project_views.index, name="projects"),
    path("projects/new/", project_views.create, name="project-create"),
    path("projects/side/", project_views.side, name="projects-side"),
    path("projects/choices/", project_views.choices, name="project-choices"),
    path("projects/<int:pk>/", project_views.detail, name="project"),
    path("projects/<int:pk>/edit/", project_views.edit, name="project-edit"),
    path("projects/<int:pk>/delete/", project_views.delete, name="project-delete"),
    path("recent/", list_views.recent, name="recent"),
    path("prompts/", prompt_views.prompts, name="prompts"),
    path("prompts/new/", prompt_views.create, name="prompt-create"),
    path("prompts/<int:pk>/", prompt_views.edit, name="prompt"),
    path("prompts/<int:pk>/delete/", prompt_views.delete, name="prompt-delete"),
    path("settings/", rules_views.rules, name="settings-rules"),
    path("instructions/", rules_views.instructions, name="settings-instructions"),
    path("memory/", memory_views.memory, name="settings-memory"),
    path("memory/switch/", memory_views.memory_switch, name="memory-switch"),
    path("memory/erase/", memory_views.memory_erase, name="memory-erase"),
    path("memory/<int:entry_pk>/", memory_views.entry_change, name="memory-change"),
    path("memory/<int:entry_pk>/remove/", memory_views.entry_remove, name="memory-remove"),
    path("shared/<uuid:key>/", share_views.shared, name="shared"),
    path("shared/<uuid:key>/pictures/<int:picture_pk>/", share_views.shared_picture, name="shared-picture"),
    path("suggest/", suggestion_views.suggest, name="suggest"),
    path("tools/", suggestion_views.tools_new, name="tools-new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/attachments/", attachment_views.add, name="attachment-add"),
    path("<int:pk>/attachments/<int:attachment_pk>/", attachment_views.chip, name="attachment"),
    path("<int:pk>/attachments/<int:attachment_pk>/sound/", attachment_views.sound, name="attachment-sound"),
    path(
        "<int:pk>/attachments/<int:attachment_pk>/remove/", attachment_views.remove, name="attachment-remove"
    ),
    path("<int:pk>/attachments/<int:attachment_pk>/retry/", attachment_views.retry, name="attachment-retry"),
    path("<int:pk>/pictures/<int:picture_pk>/", picture_views.picture, name="picture"),
    path("<int:pk>/draft/", queue_views.draft, name="draft"),
    path("<int:pk>/queue/", queue_views.queue, name="queue"),
    path("<int:pk>/queue/ask/", queue_views.queue_ask, name="queue-ask"),
    path("<int:pk>/queue/<int:queued_pk>/remove/", queue_views.queue_remove, name="queue-remove"),
    path("<int:pk>/turns/<int:turn_pk>/feedback/", feedback_views.feedback, name="feedback"),
    path("<int:pk>/shares/", share_views.shares, name="shares"),
    path("<int:pk>/shares/<int:share_pk>/revoke/", share_views.share_revoke, name="share-revoke"),
    path("<int:pk>/export/", share_views.export, name="export"),
    path("<int:pk>/turns/", views.turn_create, name="turn-create"),
    path("<int:pk>/turns/<int:turn_pk>/answer.md", share_views.answer, name="turn-answer"),
    path("<int:pk>/turns/<int:turn_pk>/file/", share_views.answer_file, name="turn-file"),
    path("<int:pk>/turns/<int:turn_pk>/document/", share_views.answer_document, name="turn-document"),
    path("<int:pk>/turns/<int:turn_pk>/document/save/", share_views.answer_save, name="turn-save"),
    path("<int:pk>/turns/<int:turn_pk>/retry/", views.turn_retry, name="turn-retry"),
    path("<int:pk>/turns/<int:turn_pk>/edit/", branch_views.turn_edit, name="turn-edit"),
    path("<int:pk>/turns/<int:turn_pk>/regenerate/", branch_views.turn_regenerate, name="turn-regenerate"),
    path("<int:pk>/turns/<int:turn_pk>/continue/", branch_views.turn_continue, name="turn-continue"),
    path("<int:pk>/turns/<int:turn_pk>/choose/", branch_views.turn_choose, name="turn-choose"),
    path("<int:pk>/turns/<int:turn_pk>/keep/", branch_views.turn_keep, name="turn-keep"),
    path("<int:pk>/turns/<int:turn_pk>/fork/", branch_views.turn_fork, name="turn-fork"),
    path("<int:pk>/runs/<int:run_pk>/stream/", views.run_stream, name="run-stream"),
    path("<int:pk>/runs/<int:run_pk>/trace/", trace_views.run_trace, name="run-trace"),
    path("<int:pk>/runs/<int:run_pk>/calls/<int:call_pk>/output/", trace_views.run_output, name="run-output"),
    path(
        "<int:pk>/runs/<int:run_pk>/calls/<int:call_pk>/remembered/",
        memory_views.remembered,
        name="remembered",
    ),
    path("<int:pk>/runs/<int:run_pk>/stop/", views.run_stop, name="run-stop"),
    path("<int:pk>/runs/<int:run_pk>/decisions/<int:decision_pk>/", views.run_decide, name="run-decide"),
    path("<int:pk>/sources/<slug:source>/", views.source, name="source"),
    path("<int:pk>/rename/", views.rename, name="rename"),
    path("<int:pk>/pin/", list_views.pin, name="pin"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/erase/", views.erase, name="erase"),
    path("<int:pk>/scope/", suggestion_views.scope, name="scope"),
    path("<int:pk>/tools/", suggestion_views.tools, name="tools"),
]
